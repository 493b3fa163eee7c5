"""Looking: everything the checks read, gathered from this machine, its engine and its images."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profrun.backends.docker.gpus import count, gpus
from profrun.backends.docker.leftovers import ours, remove
from profrun.backends.docker.privileges import DROP_ROOT, privileges
from profrun.backends.docker.request import LABEL_ROLE, Container, who
from profrun.backends.docker.sdk_args import body, create
from profrun.backends.host import HostFacts, probe_host
from profrun.backends.mounts import Mount
from profrun.doctor.model import COLLECTORS, Engine, Inside, Machine
from profrun.errors import ProfrunError, UnavailableError
from profrun.images.engine import connect, docker_errors, one_line
from profrun.images.inspect import inspect
from profrun.images.resolve import Image, resolve
from profrun.jobs.model import Resources

if TYPE_CHECKING:
    import docker

_PREFLIGHT_S = 120
_COUNTERS: dict[str, tuple[str, dict[str, Any]]] = {"nvidia": ("ncu", {}), "amd": ("rocprof", {"pmc": True})}
"""The most demanding collector of each vendor: what it is given, the others may have while they are asked."""


def look(runs: Path, images: Sequence[str] = (), *, inside: bool = True) -> Machine:
    """Look at this machine; nothing is changed and nothing stays.

    Args:
        runs: folder of the runs: its disk is looked at, and whose runs are driven.
        images: further images to look into; ours that are built are looked into anyway.
        inside: False does not run any image.
    """
    host = probe_host()
    client, problem = _engine_or_problem()
    engine = _describe(client) if client else None
    if engine:
        host = dataclasses.replace(host, api=tuple(int(part) for part in engine.api.split(".")))
    return Machine(
        host=host,
        engine=engine,
        engine_problem=problem,
        preflight=_host_preflight(runs),
        torch=_version("torch"),
        parser=_parser(),
        shm=_shm(),
        disks=tuple(_disks(runs, engine)),
        gpu_names=_gpu_names(),
        images=tuple(_images(client, host, images)) if client and inside else (),
        leftovers=tuple(_undriven(client)) if client else (),
    )


def _engine_or_problem() -> tuple[docker.DockerClient | None, str | None]:
    try:
        return connect(timeout=30), None
    except ProfrunError as error:
        return None, str(error)


def _describe(client: docker.DockerClient) -> Engine:
    with docker_errors("the engine does not describe itself"):
        version, info = client.version(), client.info()
    root = str(info.get("DockerRootDir") or "") or None
    return Engine(
        name="Podman" if "podman" in json.dumps(version).lower() else "Docker",
        version=str(version.get("Version", "")),
        api=str(version.get("ApiVersion", "0")),
        architecture=str(version.get("Arch", "")),
        runtimes=tuple(sorted(info.get("Runtimes") or {})),
        root=root,
        free=_free(Path(root)) if root else None,
    )


def _host_preflight(runs: Path) -> dict[str, Any]:
    """The wrapper's own preflight, asked of this machine itself."""
    from profrun.in_job.preflight import probe

    folder = next((path for path in (runs, *runs.absolute().parents) if path.is_dir()), Path("/"))
    return probe(list(COLLECTORS), folder)


def _images(client: docker.DockerClient, host: HostFacts, wanted: Sequence[str]) -> Iterable[Inside]:
    """Ours that are built, then the ones that were named."""
    for name in ("cuda", "rocm"):
        with contextlib.suppress(UnavailableError):
            if client.images.list(f"profrun/{name}"):
                yield _look_inside(client, host, name)
    for name in wanted:
        yield _look_inside(client, host, name)


def _look_inside(client: docker.DockerClient, host: HostFacts, name: str) -> Inside:
    shown = f"profrun/{name}:latest" if name in ("cuda", "rocm") else name
    try:
        image = resolve(client, name, host.vendor, allow_pull=False)
        contents = inspect(client, image).document()
        said = preflight_inside(client, host, image)
    except ProfrunError as error:
        return Inside(shown, problem=str(error))
    return Inside(image.reference, image.digest, said, contents)


def preflight_inside(client: docker.DockerClient, host: HostFacts, image: Image) -> dict[str, Any]:
    """Run the wrapper's preflight in an image as a trial would run: same user, devices and capabilities.

    Raises:
        UnavailableError: the image cannot run it.
    """
    from profrun.plans.bundle import write_bundle

    with tempfile.TemporaryDirectory(prefix="profrun-doctor-") as folder:
        bundle = Path(folder) / "bundle"
        write_bundle(bundle)
        Path(folder).chmod(0o755)
        out = _run(client, _preflight_container(host, image, bundle), image)
    last = (out.strip().splitlines() or [""])[-1]
    for text in (out, last):
        with contextlib.suppress(ValueError):
            return dict(json.loads(text))
    raise UnavailableError(
        f"the preflight in {image.reference} said nothing that can be read", why=one_line(out)
    )


def _preflight_container(host: HostFacts, image: Image, bundle: Path) -> Container:
    devices = gpus(count(Resources(), host), host)
    given = privileges(*_COUNTERS.get(host.vendor, ("none", {})), host)
    user, wrapper = who(given, devices, host)
    return Container(
        name=f"profrun-doctor-{os.getpid()}-{os.urandom(3).hex()}",
        image=image.id,
        argv=(*wrapper, "python3", str(bundle / "run.py"), "--preflight", "--json"),
        user=user,
        cap_add=tuple(sorted({*given.capabilities, *(DROP_ROOT if wrapper else ())})),
        workdir="/tmp",
        groups=devices.groups,
        env={"HOME": "/tmp", **devices.env},
        mounts=(Mount(str(bundle), str(bundle), True),),
        labels={LABEL_ROLE: "probe"},
        gpus=devices,
        shm=Resources().shm,
    )


def _run(client: docker.DockerClient, what: Container, image: Image) -> str:
    asked = body(what)
    asked["host_config"]["auto_remove"] = False  # its output is read after its end
    with docker_errors(f"the preflight cannot run in {image.reference}"):
        made = create(client, asked, {})
        try:
            client.api.start(made)
            code = client.api.wait(made, timeout=_PREFLIGHT_S)["StatusCode"]
            out = client.api.logs(made, stdout=True, stderr=False).decode(errors="replace")
            err = client.api.logs(made, stdout=False, stderr=True).decode(errors="replace")
        finally:
            remove(client, made)
    if code != 0:
        raise UnavailableError(
            f"the preflight cannot run in {image.reference}",
            why=one_line(err or out),
            fix="use an image with Python 3.9 or later",
        )
    return str(out)


def _undriven(client: docker.DockerClient) -> Iterable[tuple[str, str, str, str]]:
    """Our containers whose run's lock nobody holds."""
    from profrun.store.lock import is_held
    from profrun.store.runs import Run

    with contextlib.suppress(ProfrunError):
        for item in ours(client):
            run = Path(item.path).parent.parent if item.path else None
            driven = run is not None and run.is_dir() and is_held(Run(run).lock)
            if not driven and item.trial:
                yield item.id, item.run, item.trial, item.status


def _disks(runs: Path, engine: Engine | None) -> Iterable[tuple[str, str, int]]:
    folder = next((path for path in (runs.absolute(), *runs.absolute().parents) if path.is_dir()), Path("/"))
    free = _free(folder)
    if free is not None:
        yield "runs", str(folder), free
    if engine and engine.root and engine.free is not None:
        yield "images", engine.root, engine.free


def _free(path: Path) -> int | None:
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return None


def _shm() -> int | None:
    try:
        return shutil.disk_usage("/dev/shm").total
    except OSError:
        return None


def _parser() -> bool:
    """Whether traces of torch.profiler are read by the compiled parser."""
    from profrun.collectors.torch.events import library

    return library() is not None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _gpu_names() -> tuple[str, ...]:
    """From nvidia-smi; ROCm's names come from the preflight's own list."""
    from profrun.in_job.vendor import output

    text = (
        output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])
        if shutil.which("nvidia-smi")
        else ""
    )
    return tuple(line.strip() for line in text.splitlines() if line.strip())
