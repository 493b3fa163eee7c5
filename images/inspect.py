"""What is inside an image, measured by running it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from profrun.contract.codec import DocumentError, from_json, to_json
from profrun.contract.profilers import names, profiler
from profrun.errors import UnavailableError
from profrun.images.engine import docker_errors, explain, one_line
from profrun.images.resolve import Image

if TYPE_CHECKING:
    import docker


@dataclass(frozen=True)
class ToolFound:
    """A program of an image; ``problem`` says why its version is not known."""

    path: str
    version: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class TorchFound:
    """PyTorch of an image, and the CUDA or HIP that it was built for."""

    version: str | None = None
    cuda: str | None = None
    hip: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Contents:
    """What running an image found. Versions are None where there is none.

    Attributes:
        python, os, cuda, rocm, nvtx: versions.
        tools: executable of a profiler -> what was found of it; those that are not there are not in it.
        packages: Python package that a profiler requires -> its version; as ``tools``.
    """

    python: str | None = None
    os: str | None = None
    cuda: str | None = None
    rocm: str | None = None
    nvtx: str | None = None
    torch: TorchFound | None = None
    tools: dict[str, ToolFound] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)

    def version_of(self, package: str) -> str | None:
        """Version of a Python package that a profiler requires."""
        if (
            package == "torch" and self.torch is not None
        ):  # by its version.py: a vendor's build may be no package
            return self.torch.version
        return self.packages.get(package)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of all profilers, of what they require, and of nvtx, where they are there."""
        found = {name: self.version_of(name) for name in ("torch", *self.packages)}
        found |= {name: tool.version for name, tool in self.tools.items()}
        return {name: version for name, version in {**found, "nvtx": self.nvtx}.items() if version}


def tool_places() -> dict[str, tuple[str, ...]]:
    """The preferred executable of every profiler that has one -> where its vendor installs it."""
    found = [profiler(name) for name in names()]
    return {one.tools[0]: one.places for one in found if one.tools}


def required_packages() -> tuple[str, ...]:
    """Python packages that profilers require."""
    return tuple(package for name in names() if (package := profiler(name).requires))


def document(image: Image, contents: Contents) -> dict[str, Any]:
    """An image and what is inside it, as JSON-safe values."""
    return {
        "reference": image.reference,
        "id": image.id,
        "digest": image.digest,
        "architecture": image.architecture,
        "size_bytes": image.size,
        "user": image.user,
        "labels": dict(image.labels),
        "python": contents.python,
        "os": contents.os,
        "cuda": contents.cuda,
        "rocm": contents.rocm,
        "nvtx": contents.nvtx,
        "torch": to_json(contents.torch),
        "profilers": {name: to_json(contents.tools.get(name)) for name in tool_places()},
    }


def inspect(client: docker.DockerClient, image: Image) -> Contents:
    """Run the image once, without network, capabilities or devices, and ask what it has.

    Raises:
        UnavailableError: it cannot run here, or has no Python 3.
    """
    what = f"what is inside {image.reference} cannot be asked"
    code, out, err = _run_probe(client, image)
    last = (out.strip().splitlines() or [""])[-1]
    if code == 0:
        try:
            return from_json(Contents, json.loads(last))
        except (DocumentError, ValueError) as error:
            raise UnavailableError(what, why=f"its answer cannot be read: {error}") from error
    known = explain(RuntimeError(err or out), what)
    if isinstance(known, UnavailableError):
        raise known
    raise UnavailableError(
        what,
        why=f"its python3 ended with {code}: {one_line(err or out)}",
        fix="use an image with Python 3.9 or later",
    )


def _run_probe(client: docker.DockerClient, image: Image) -> tuple[int, str, str]:
    """Exit code, output and error output of the probe in this image."""
    asked = json.dumps({"tools": tool_places(), "packages": required_packages()})
    source = (resources.files("profrun.images") / "probe.py").read_text()
    with docker_errors(f"{image.reference} cannot be run"):
        container = client.containers.create(
            image.id,
            entrypoint=["python3", "-c", source],
            command=[asked],
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
    return int(code), out, err
