"""Can this profiler record here? Findings from what is common to all and from the profiler's own checks.

``check`` and ``degrade`` serve a trial; ``probe`` is what ``run.py --preflight`` prints.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ..contract import profilers
from ..contract.ends import DISK_FULL
from ..contract.finding import Finding, gravest_first
from ..contract.machine import Machine, dotted
from ..contract.preflight import Preflight, Readiness
from . import vendor
from .tools import Tool, find_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..contract.profilers import Profiler

_MIB = 1 << 20
_SHM_LOW = 1024 * _MIB
_DISK_LOW = 2048 * _MIB
DISK_NEEDED = 64 * _MIB
"""With less room for its files a trial is not started: bytes."""


def machine(gpus: str, *, stated: bool = False, root: Path = Path("/")) -> Machine:
    """This machine with GPUs of this vendor, for the checks."""
    status = Machine(root=root).text("proc/self/status") or ""
    masks = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    return Machine(gpus, stated, int(masks[0], 16) if masks else 0, root)


def check(
    profiler: Profiler, options: Mapping[str, object], here: Machine, tool: Tool, folder: Path
) -> list[Finding]:
    """What stands against this profiler here, the gravest first.

    Args:
        options: the profiler's.
        folder: where its files will be written.
    """
    own = getattr(profiler.part("preflight"), "check", None)
    found: list[Finding] = [] if own is None else own(options, here)
    if tool.problem is not None:
        found.insert(0, tool.problem)
    device = here.amd_device() if here.vendor == "amd" else None
    if device is not None and device.code not in [finding.code for finding in found]:
        found.append(device)
    return gravest_first([*found, *_disk(folder), *_shm(here.root)])


def degrade(profiler: Profiler, options: Mapping[str, object], found: Iterable[Finding]) -> dict[str, object]:
    """The options without what cannot be had here, so that the rest can be recorded."""
    drops: Mapping[str, tuple[str, ...]] = getattr(profiler.part("preflight"), "DROPS", {})
    dropped = {name for finding in found for name in drops.get(finding.code, ())}
    return {name: value for name, value in options.items() if name not in dropped}


def unresolved(collector: str, gpus: str) -> str:
    """Why no profiler can do this collector's work on this vendor's GPUs."""
    where = "there is no GPU" if gpus == "none" else f"no profiler of this bundle does it on {gpus} GPUs"
    return f"no {collector} can be recorded here: {where}; run on another machine, or leave {collector} out"


def probe(collectors: Iterable[str], folder: Path, *, where: str = "in this image") -> Preflight:
    """Everything that this module can say of this image and machine.

    Args:
        collectors: names as in a job.
        folder: where files would be written.
        where: 'in this image' or 'on this machine', for messages.
    """
    gpus, how = vendor.detect()
    here = machine(gpus)
    answers = {name: _readiness(name, here, folder, where) for name in collectors}
    return Preflight(gpus, how, tuple(vendor.state(gpus)), answers)


def _readiness(name: str, here: Machine, folder: Path, where: str) -> Readiness:
    try:
        profiler = profilers.become(name, here.vendor)
    except (profilers.UnknownProfilerError, ImportError) as error:
        return Readiness(False, reason=str(error))
    if profiler is None:
        return Readiness(False, reason=unresolved(name, here.vendor))
    tool = find_tool(profiler, where=where)
    found = check(profiler, {}, here, tool, folder)
    usable = not any(finding.severity == "critical" for finding in found)
    return Readiness(usable, profiler.name, tool.path, dotted(tool.version), findings=tuple(found))


def _disk(folder: Path) -> list[Finding]:
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return []
    if free >= _DISK_LOW:
        return []
    return [
        Finding(
            DISK_FULL if free < DISK_NEEDED else "disk-low",
            "critical" if free < DISK_NEEDED else "warning",
            f"only {free // _MIB} MiB are free in {folder}",
            "profiles take from a few MiB to many GiB",
            "free some room or put the runs folder on a larger disk",
        )
    ]


def _shm(root: Path) -> list[Finding]:
    try:
        seen = os.statvfs(root / "dev/shm")
    except OSError:
        return []
    size = seen.f_frsize * seen.f_blocks
    if size >= _SHM_LOW:
        return []
    return [
        Finding(
            "shm-small",
            "info",
            f"/dev/shm has {size // _MIB} MiB",
            "DataLoader workers and NCCL pass data through it, and a container's default is 64 MiB",
            "set resources.shm in the job (docker: --shm-size, kubernetes: an emptyDir in memory)",
        )
    ]
