"""What is inside an image, measured by running it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from profrun.errors import UnavailableError
from profrun.images.engine import docker_errors, explain, one_line
from profrun.images.resolve import Image

if TYPE_CHECKING:
    import docker

PROFILERS = ("nsys", "ncu", "rocprofv3")


@dataclass(frozen=True)
class Contents:
    """What running an image found.

    Attributes:
        image: the image that was run.
        python, os, cuda, rocm, nvtx: versions, None where there is none.
        torch: {"version", "cuda", "hip"} or None.
        tools: profiler -> {"path", "version", "problem"}; a profiler that is not there is not in it.
        raw: everything the probe said.
    """

    image: Image
    python: str | None
    os: str | None
    cuda: str | None
    rocm: str | None
    nvtx: str | None
    torch: dict[str, Any] | None
    tools: dict[str, dict[str, Any]]
    raw: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The same as JSON-safe values."""
        return {
            "reference": self.image.reference,
            "id": self.image.id,
            "digest": self.image.digest,
            "architecture": self.image.architecture,
            "size_bytes": self.image.size,
            "user": self.image.user,
            "labels": dict(self.image.labels),
            "python": self.python,
            "os": self.os,
            "cuda": self.cuda,
            "rocm": self.rocm,
            "nvtx": self.nvtx,
            "torch": self.torch,
            "profilers": {name: self.tools.get(name) for name in PROFILERS},
        }


def inspect(client: docker.DockerClient, image: Image) -> Contents:
    """Run the image once, without network, capabilities or devices, and ask what it has.

    Raises:
        UnavailableError: it cannot run here, or has no Python 3.
    """
    found = _run_probe(client, image)
    return Contents(
        image=image,
        python=found.get("python"),
        os=found.get("os"),
        cuda=found.get("cuda"),
        rocm=found.get("rocm"),
        nvtx=found.get("nvtx"),
        torch=found.get("torch"),
        tools={name: found[name] for name in PROFILERS if found.get(name)},
        raw=found,
    )


def _run_probe(client: docker.DockerClient, image: Image) -> dict[str, Any]:
    source = (resources.files("profrun.images") / "probe.py").read_text()
    with docker_errors(f"{image.reference} cannot be run"):
        container = client.containers.create(
            image.id,
            entrypoint=["python3", "-c", source],
            command=[],
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            init=True,
            environment={"NVIDIA_VISIBLE_DEVICES": "void", "HOME": "/tmp"},
            labels={"profrun.role": "probe"},
        )
        try:
            container.start()
            code = container.wait(timeout=300)["StatusCode"]
            out = container.logs(stdout=True, stderr=False).decode(errors="replace")
            err = container.logs(stdout=False, stderr=True).decode(errors="replace")
        finally:
            container.remove(force=True, v=True)
    last = (out.strip().splitlines() or [""])[-1]
    if code == 0 and last.startswith("{"):
        return dict(json.loads(last))
    what = f"what is inside {image.reference} cannot be asked"
    known = explain(RuntimeError(err or out), what)
    if isinstance(known, UnavailableError):
        raise known
    raise UnavailableError(
        what,
        why=f"its python3 ended with {code}: {one_line(err or out)}",
        fix="use an image with Python 3.9 or later",
    )
