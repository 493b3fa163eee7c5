"""May this collector collect here? Findings in words: what, why, for which collector, how to fix it.

``error``: the main data cannot be had. ``degraded``: some of it is left
out, the trial runs. ``note``: told only.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..contract import profilers
from . import tools, vendor

_MIB = 1 << 20
_SHM_LOW = 1024 * _MIB
_DISK_LOW = 2048 * _MIB
_DISK_NONE = 64 * _MIB
_CAP_PERFMON, _CAP_SYS_ADMIN, _CAP_SYS_PTRACE = 38, 21, 19


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be."""

    level: str
    what: str
    why: str
    fix: str
    collector: str | None = None

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.fix}"


@dataclass
class Tool:
    """A collector's profiler as found here."""

    name: str | None
    path: str | None = None
    version: tuple[int, ...] | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def missing(self) -> bool:
        """Whether there should be one and is none."""
        return self.name is not None and self.path is None


def find_tool(collector: str, given: str | None = None) -> Tool:
    """Look for the collector's profiler, or take the path that the job gives, and ask for its version."""
    names = profilers.profiler(collector).tools
    if not names:
        return Tool(None)
    for name in names:
        path = tools.find(name) if given is None else given
        if given is not None and not os.access(given, os.X_OK):
            return Tool(name, findings=[_not_there(name, given, collector)])
        if path is not None:
            return Tool(name, path, tools.version(path, name))
    finding = Finding(
        "error",
        f"{names[0]} is not in this image",
        f"it is neither on the PATH nor where its vendor installs it ({collector})",
        f"use an image that has it (profrun images list), install it, or set PROFRUN_{names[0].upper()}",
        collector,
    )
    return Tool(names[0], findings=[finding])


def _not_there(name: str, path: str, collector: str) -> Finding:
    return Finding(
        "error",
        f"there is no {name} at {path} in this image",
        f"the job's {collector}.path says so, and no executable file is there",
        "mend the path, or leave it out to have it looked for",
        collector,
    )


def capabilities(status: Path = Path("/proc/self/status")) -> int:
    """The effective capability mask; 0 when it cannot be read."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)


def has(mask: int, capability: int) -> bool:
    """Whether a capability is in the mask."""
    return bool(mask >> capability & 1)


def check(
    collector: str,
    gpu: str,
    options: dict[str, Any],
    folder: Path,
    root: Path = Path("/"),
    *,
    stated: bool = False,
) -> list[Finding]:
    """What stands against this collector on this machine, worst first.

    Args:
        gpu: the vendor.
        stated: the vendor was stated in the job, not found here: a missing device is told, not refused.
    """
    mask = capabilities(root / "proc/self/status")
    found = [*_disk(folder), *_shm(root)]
    if collector in ("nsys", "ncu"):
        found += _nvidia(collector, gpu, options, mask, root)
    if collector == "nsys":
        found += _sampling(options, mask, root)
    if gpu == "amd" or collector == "rocprof":
        found += _kfd(collector, root, stated)
    order = {"error": 0, "degraded": 1, "note": 2}
    return sorted(found, key=lambda finding: order[finding.level])


def _disk(folder: Path) -> list[Finding]:
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return []
    if free >= _DISK_LOW:
        return []
    level = "error" if free < _DISK_NONE else "degraded"
    return [
        Finding(
            level,
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
            "note",
            f"/dev/shm has {size // _MIB} MiB",
            "DataLoader workers and NCCL pass data through it, and a container's default is 64 MiB",
            "set resources.shm in the job (docker: --shm-size, kubernetes: an emptyDir in memory)",
        )
    ]


def _nvidia(collector: str, gpu: str, options: dict[str, Any], mask: int, root: Path) -> list[Finding]:
    found = []
    if gpu != "nvidia" and collector == "ncu":
        found.append(
            Finding(
                "error",
                "ncu has nothing to profile",
                f"there is no NVIDIA GPU here (found: {gpu})",
                "run on one, or use collectors: [torch]",
                collector,
            )
        )
    try:
        params = (root / "proc/driver/nvidia/params").read_text()
    except OSError:
        return found
    restricted = "RmProfilingAdminOnly: 1" in params and not _may_count(mask, root)
    if restricted and (collector == "ncu" or options.get("gpu_metrics") is not None):
        found.append(
            Finding(
                "error" if collector == "ncu" else "degraded",
                "GPU performance counters may not be read",
                "the driver allows them to administrators only (RmProfilingAdminOnly: 1), and the "
                "capability is absent",
                "load the driver with NVreg_RestrictProfilingToAdminUsers=0 or add CAP_PERFMON (driver 565 "
                "and newer) or CAP_SYS_ADMIN",
                collector,
            )
        )
    return found


def _may_count(mask: int, root: Path) -> bool:
    """CAP_SYS_ADMIN, or CAP_PERFMON with driver 565 and newer (NVIDIA's page on ERR_NVGPUCTRPERM)."""
    if has(mask, _CAP_SYS_ADMIN):
        return True
    try:
        driver = re.search(r"\b(\d{3})\.\d", (root / "proc/driver/nvidia/version").read_text())
    except OSError:
        return False
    return driver is not None and int(driver.group(1)) >= 565 and has(mask, _CAP_PERFMON)


def _sampling(options: dict[str, Any], mask: int, root: Path) -> list[Finding]:
    asked = [name for name in ("sample", "cpuctxsw") if str(options.get(name, "none")) != "none"]
    try:
        level = int((root / "proc/sys/kernel/perf_event_paranoid").read_text())
    except (OSError, ValueError):
        return []
    if level <= 2 or has(mask, _CAP_PERFMON) or has(mask, _CAP_SYS_ADMIN) or not asked:
        return []
    return [
        Finding(
            "degraded",
            f"CPU sampling ({', '.join(asked)}) is not possible",
            f"kernel.perf_event_paranoid is {level}, and neither CAP_PERFMON nor CAP_SYS_ADMIN is there",
            "sysctl kernel.perf_event_paranoid=2 on the host, or add CAP_PERFMON; GPU data is not affected",
            "nsys",
        )
    ]


def _kfd(collector: str, root: Path, stated: bool) -> list[Finding]:
    kfd = root / "dev/kfd"
    if not kfd.exists():
        return [
            Finding(
                "error" if collector == "rocprof" and not stated else "degraded",
                "/dev/kfd is not here",
                "there is no AMD GPU driver on this host, or the container was not given the device",
                "docker: --device=/dev/kfd --device=/dev/dri",
                collector,
            )
        ]
    if os.access(kfd, os.R_OK | os.W_OK):
        return []
    gid = kfd.stat().st_gid
    return [
        Finding(
            "error" if collector == "rocprof" else "degraded",
            "/dev/kfd cannot be opened",
            f"it belongs to group {gid}, and this process is in {sorted({os.getgid(), *os.getgroups()})}",
            f"docker: --group-add {gid} (by number: its name differs between host and image)",
            collector,
        )
    ]


def degrade(collector: str, options: dict[str, Any], findings: list[Finding]) -> dict[str, Any]:
    """The options without what cannot be had here, so that the main data still is."""
    kept = dict(options)
    for finding in findings:
        if finding.level != "degraded" or finding.collector != collector:
            continue
        if "counters" in finding.what:
            kept.pop("gpu_metrics", None)
        if "CPU sampling" in finding.what:
            kept.pop("sample", None)
            kept.pop("cpuctxsw", None)
    return kept


def probe(collectors: list[str], folder: Path) -> dict[str, Any]:
    """Everything this module can say of this image and machine; what ``run.py --preflight --json`` prints."""
    gpu, how = vendor.detect()
    rows: dict[str, Any] = {}
    for name in collectors:
        concrete, why = tools.resolve(name, gpu)
        if concrete is None:
            rows[name] = {"usable": False, "collector": None, "findings": [], "reason": why}
            continue
        try:
            tool = find_tool(concrete)
        except ImportError:
            rows[name] = {
                "usable": False,
                "collector": concrete,
                "findings": [],
                "reason": "not in this bundle",
            }
            continue
        findings = [*tool.findings, *check(concrete, gpu, {}, folder)]
        rows[name] = {
            "usable": not any(finding.level == "error" for finding in findings),
            "collector": concrete,
            "tool": tool.path,
            "version": None if tool.version is None else ".".join(map(str, tool.version)),
            "findings": [asdict(finding) for finding in findings],
        }
    return {"format": 1, "vendor": gpu, "vendor_by": how, "gpus": vendor.state(gpu), "collectors": rows}
