"""What this machine's container engine can do, for the doctor: the engine, the images on it, and containers
of profrun whose run nobody drives. Nothing is changed and nothing stays."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.backends.docker.engine_facts import ask
from profrun.backends.docker.gpus import first_ids, gives_gpus, gpus
from profrun.backends.docker.leftovers import Leftover, our_containers, remove
from profrun.backends.docker.request import LABEL_ROLE, Container, user_and_prefix
from profrun.backends.docker.sdk_args import create_container, sdk_arguments
from profrun.backends.host import HostFacts
from profrun.backends.mounts import Mount
from profrun.backends.privileges import DROP_ROOT, capabilities, needs_with, tmpfs
from profrun.contract.codec import from_json
from profrun.contract.preflight import Preflight
from profrun.contract.profilers import COUNTERS, become
from profrun.errors import ProfrunError, UnavailableError
from profrun.images.catalogue import KINDS
from profrun.images.engine import connect, docker_errors, one_line
from profrun.images.engine_kind import stated_kind
from profrun.images.inspect import Contents, inspect
from profrun.images.pins import known_pins
from profrun.images.resolve import Image, resolve
from profrun.jobs.model import Resources

if TYPE_CHECKING:
    import docker

_PREFLIGHT_S = 120


@dataclass(frozen=True)
class Engine:
    """The container engine as it describes itself.

    Attributes:
        runtimes: names of its configured runtimes.
        root: folder of its images, and ``free`` bytes there; None when not on this machine.
    """

    name: str
    version: str
    api: str
    architecture: str
    runtimes: tuple[str, ...] = ()
    root: str | None = None
    free: int | None = None


@dataclass(frozen=True)
class ImageAnswer:
    """One image, as found by running it.

    Attributes:
        preflight: what the wrapper's own preflight says inside (``run.py --preflight --json``).
        contents: versions found inside.
        problem: why it could not be run or must not be used; then there are neither.
    """

    reference: str
    digest: str = ""
    preflight: Preflight | None = None
    contents: Contents | None = None
    problem: ProfrunError | None = None


@dataclass(frozen=True)
class Survey:
    """What was found.

    Attributes:
        host: this machine, with the version of the engine's API when one answers.
        engine: None when no engine answers; then ``problem`` says why.
        leftovers: containers of profrun whose run nobody drives.
    """

    host: HostFacts
    engine: Engine | None = None
    problem: ProfrunError | None = None
    images: tuple[ImageAnswer, ...] = ()
    leftovers: tuple[Leftover, ...] = ()


def survey(host: HostFacts, images: Sequence[str] = (), *, inside: bool = True) -> Survey:
    """Ask the engine that the ``docker`` command would use.

    Args:
        host: this machine.
        images: images to run the preflight in; those that profrun built are always looked into.
        inside: False does not run any image.

    Raises:
        UnavailableError: the engine stops answering in the middle.
    """
    try:
        client = connect(timeout=30)
    except ProfrunError as error:
        return Survey(host, problem=error)
    engine = _describe(client)
    host = ask(host, client)
    found = tuple(_images(client, host, images)) if inside else ()
    return Survey(host, engine, None, found, tuple(_undriven(client)))


def _describe(client: docker.DockerClient) -> Engine:
    with docker_errors("the engine does not describe itself"):
        version, info = client.version(), client.info()
    root = str(info.get("DockerRootDir") or "") or None
    free = None
    if root:
        with contextlib.suppress(OSError):
            free = shutil.disk_usage(root).free
    return Engine(
        name="Podman" if stated_kind(version, info).podman else "Docker",
        version=str(version.get("Version", "")),
        api=str(version.get("ApiVersion", "0")),
        architecture=str(version.get("Arch", "")),
        runtimes=tuple(sorted(info.get("Runtimes") or {})),
        root=root,
        free=free,
    )


def _images(client: docker.DockerClient, host: HostFacts, wanted: Sequence[str]) -> Iterator[ImageAnswer]:
    """The images that profrun built, then those that were named."""
    for kind in KINDS:
        with docker_errors("the engine does not list its images"):
            built = client.images.list(f"profrun/{kind}")
        if built:
            yield _look_inside(client, host, kind)
    for name in wanted:
        yield _look_inside(client, host, name)


def _look_inside(client: docker.DockerClient, host: HostFacts, name: str) -> ImageAnswer:
    shown = f"profrun/{name}:latest" if name in KINDS else name
    try:
        image = resolve(client, name, host.vendor, pins=known_pins(), allow_pull=False)
        contents = inspect(client, image)
        said = preflight_inside(client, host, image)
    except ProfrunError as error:
        return ImageAnswer(shown, problem=error)
    return ImageAnswer(image.reference, image.digest, said, contents)


def preflight_inside(client: docker.DockerClient, host: HostFacts, image: Image) -> Preflight:
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
    for text in (out, out[out.find("{") :]):  # the image may have printed something first
        with contextlib.suppress(ValueError):
            return from_json(Preflight, json.loads(text))
    raise UnavailableError(
        f"the preflight in {image.reference} said nothing that can be read", why=one_line(out)
    )


def _preflight_container(host: HostFacts, image: Image, bundle: Path) -> Container:
    """A container as a ``counters`` trial gets it: no other profiler needs more."""
    devices = gpus(first_ids(host) if gives_gpus(host) else (), host)
    most = become(COUNTERS, host.vendor)
    needs = needs_with(most, most.counters_defaults, host.vendor) if most else ()
    given = capabilities(needs, host)
    user, wrapper = user_and_prefix(given, devices, host)
    return Container(
        name=f"profrun-doctor-{os.getpid()}-{os.urandom(3).hex()}",
        image=image.id,
        argv=(*wrapper, "python3", str(bundle / "run.py"), "--preflight", "--json"),
        user=user,
        cap_add=tuple(sorted({*given, *(DROP_ROOT if wrapper else ())})),
        workdir="/tmp",
        groups=devices.groups,
        env={"HOME": "/tmp", **devices.env},
        mounts=(Mount(str(bundle), str(bundle), True),),
        labels={LABEL_ROLE: "probe"},
        gpus=devices,
        tmpfs=tmpfs(Resources()),
        shm=Resources().shm,
    )


def _run(client: docker.DockerClient, what: Container, image: Image) -> str:
    """Run a container to its end and return what it printed.

    Raises:
        UnavailableError: it cannot run, or ended with another code than 0.
    """
    asked = sdk_arguments(what)
    asked["host_config"]["auto_remove"] = False  # its output is read after its end
    with docker_errors(f"the preflight cannot run in {image.reference}"):
        made = create_container(client, asked, {})
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


def _undriven(client: docker.DockerClient) -> Iterable[Leftover]:
    """Containers of profrun whose run is driven by no process: nobody holds its lock."""
    from profrun.store.lock import is_held
    from profrun.store.runs import Run

    with contextlib.suppress(ProfrunError):
        for item in our_containers(client):
            run = Path(item.path).parent.parent if item.path else None
            driven = run is not None and run.is_dir() and is_held(Run(run).lock)
            if not driven and item.trial:
                yield item
