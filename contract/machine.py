"""Where a trial runs, as a profiler's ``preflight.py`` asks it: ``Machine``, and versions that tools state.

The ``preflight.py`` of a profiler is optional and has any of::

    def check(options: Mapping[str, object], machine: Machine) -> list[Finding]
        # what stands against recording here; a critical finding keeps the trial from starting
    DROPS: Mapping[str, tuple[str, ...]]
        # code of a finding -> the options that are left out because of it, so that the rest can be recorded
    def version(path: str, stated: str) -> tuple[int, ...] | None
        # its version, where the first number that ``--version`` prints is not it
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from .finding import Finding

CAP_SYS_ADMIN, CAP_PERFMON = 21, 38
"""Numbers of Linux capabilities (linux/capability.h)."""

ROCM = Path("/opt/rocm")
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True)
class Machine:
    """This machine, or the image that a trial runs in.

    Attributes:
        vendor: whose GPUs are here: nvidia, amd or none.
        stated: the job states the vendor; it was not found out here.
        capabilities: mask of this process's effective capabilities; 0 when it is not known.
        root: where /proc, /sys and /dev are looked for.
    """

    vendor: str = "none"
    stated: bool = False
    capabilities: int = 0
    root: Path = Path("/")

    def has(self, *capabilities: int) -> bool:
        """Whether this process has one of the capabilities."""
        return any(self.capabilities >> number & 1 for number in capabilities)

    def text(self, path: str) -> str | None:
        """Content of a file below ``root``; None when it cannot be read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def nvidia_counters(self) -> Finding | None:
        """Why this process may not read performance counters of NVIDIA's GPUs, as a warning; None: it may.

        The driver allows CAP_SYS_ADMIN and, from version 565 on, CAP_PERFMON:
        https://developer.nvidia.com/ERR_NVGPUCTRPERM
        """
        if "RmProfilingAdminOnly: 1" not in (self.text("proc/driver/nvidia/params") or ""):
            return None
        driver = re.search(r"\b(\d{3})\.\d", self.text("proc/driver/nvidia/version") or "")
        perfmon = driver is not None and int(driver.group(1)) >= 565 and self.has(CAP_PERFMON)
        if perfmon or self.has(CAP_SYS_ADMIN):
            return None
        return Finding(
            "gpu-counters-denied",
            "warning",
            "GPU performance counters may not be read",
            "the driver allows them to administrators only (RmProfilingAdminOnly: 1), and the capability is "
            "absent",
            "load the driver with NVreg_RestrictProfilingToAdminUsers=0 or add CAP_PERFMON (driver 565 and "
            "newer) or CAP_SYS_ADMIN",
        )

    def amd_device(self) -> Finding | None:
        """Why AMD's GPUs cannot be reached from here, as a warning; None when they can."""
        kfd = self.root / "dev/kfd"
        if not kfd.exists():
            return Finding(
                "amd-device-missing",
                "warning",
                "/dev/kfd is not here",
                "there is no AMD GPU driver on this host, or the container was not given the device",
                "docker: --device=/dev/kfd --device=/dev/dri",
            )
        if os.access(kfd, os.R_OK | os.W_OK):
            return None
        if sys.platform == "win32":
            return None  # /dev/kfd is Linux's
        group = kfd.stat().st_gid
        return Finding(
            "amd-device-denied",
            "warning",
            "/dev/kfd cannot be opened",
            f"it belongs to group {group}, and this process is in {sorted({os.getgid(), *os.getgroups()})}",
            f"docker: --group-add {group} (by number: its name differs between host and image)",
        )


def version_in(text: str) -> tuple[int, ...] | None:
    """The first 'a.b' or 'a.b.c' in a text, as numbers."""
    found = _VERSION.search(text)
    return None if found is None else tuple(int(part) for part in found.groups() if part is not None)


def dotted(version: tuple[int, ...] | None) -> str | None:
    """A version as text, like 2024.2.3."""
    return None if version is None else ".".join(map(str, version))


def rocm_version(*homes: Path) -> tuple[int, ...] | None:
    """ROCm's version from ``.info/version`` in the first of its installation folders that has the file."""
    for home in homes:
        try:
            return version_in((home / ".info" / "version").read_text(encoding="ascii", errors="replace"))
        except OSError:
            continue
    return None
