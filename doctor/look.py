"""``look`` gathers everything that the checks read: from this machine, its engine and its images."""

from __future__ import annotations

import importlib.metadata
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from profrun.backends.docker.survey import Engine, survey
from profrun.backends.gpu_choice import survey_gpus
from profrun.backends.host import probe_host
from profrun.contract.preflight import Preflight
from profrun.contract.profilers import profiler, tools
from profrun.doctor.model import Machine
from profrun.images.inspect import required_packages


def look(runs: Path, images: Sequence[str] = (), *, inside: bool = True) -> Machine:
    """Look at this machine; nothing is changed and nothing stays.

    Args:
        runs: folder of the runs: its disk is looked at, and whose runs are driven.
        images: further images to look into; those that profrun built are always looked into.
        inside: False does not run any image.
    """
    found = survey(probe_host(), images, inside=inside)
    folder = next((path for path in (runs.absolute(), *runs.absolute().parents) if path.is_dir()), Path("/"))
    own = [getattr(profiler(name).part("doctor"), "check_host", None) for name in tools()]
    return Machine(
        found=found,
        preflight=_preflight(folder),
        packages={name: version for name in required_packages() if (version := _version(name))},
        reading=tuple(check() for check in own if check is not None),
        shm=_bytes("/dev/shm", "total"),
        disks=tuple(_disks(folder, found.engine)),
        gpu_names=_gpu_names(),
        gpus=survey_gpus(found.host),
    )


def _preflight(folder: Path) -> Preflight:
    """The wrapper's own preflight, asked of this machine itself."""
    from profrun.in_job.preflight import probe

    return probe(tools(), folder, where="on this machine")


def _disks(folder: Path, engine: Engine | None) -> Iterable[tuple[str, str, int]]:
    free = _bytes(str(folder), "free")
    if free is not None:
        yield "runs", str(folder), free
    if engine and engine.root and engine.free is not None:
        yield "images", engine.root, engine.free


def _bytes(folder: str, what: str) -> int | None:
    """``total`` or ``free`` bytes of a folder's filesystem; None when there is no such folder."""
    try:
        return int(getattr(shutil.disk_usage(folder), what))
    except OSError:
        return None


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
