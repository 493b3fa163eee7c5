"""Looking: everything the checks read, gathered from this machine, its engine and its images."""

from __future__ import annotations

import importlib.metadata
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from profrun.backends.docker.survey import Engine, survey
from profrun.backends.host import probe_host
from profrun.doctor.model import COLLECTORS, Machine


def look(runs: Path, images: Sequence[str] = (), *, inside: bool = True) -> Machine:
    """Look at this machine; nothing is changed and nothing stays.

    Args:
        runs: folder of the runs: its disk is looked at, and whose runs are driven.
        images: further images to look into; ours that are built are looked into anyway.
        inside: False does not run any image.
    """
    found = survey(probe_host(), images, inside=inside)
    return Machine(
        found=found,
        preflight=_host_preflight(runs),
        torch=_version("torch"),
        parser=_parser(),
        shm=_shm(),
        disks=tuple(_disks(runs, found.engine)),
        gpu_names=_gpu_names(),
    )


def _host_preflight(runs: Path) -> dict[str, Any]:
    """The wrapper's own preflight, asked of this machine itself."""
    from profrun.contract.codec import to_json
    from profrun.in_job.preflight import probe

    folder = next((path for path in (runs, *runs.absolute().parents) if path.is_dir()), Path("/"))
    found: dict[str, Any] = to_json(probe(COLLECTORS, folder, where="on this machine"))
    return found


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
