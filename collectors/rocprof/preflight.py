"""What stands against rocprofv3 on a machine, and which version of ROCm it is of. Shipped into the job."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...contract.machine import ROCM, rocm_version, version_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...contract.finding import Finding
    from ...contract.machine import Machine

_STATED = re.compile(r"rocm[_ -]?version\s*[:=]\s*(\d+\.\d+(?:\.\d+)?)", re.I)


def check(options: Mapping[str, object], machine: Machine) -> list[Finding]:
    """It needs the GPU's device. Where the job states an AMD GPU, a device that is not here is no reason."""
    found = machine.amd_device()
    if found is None:
        return []
    believed = machine.stated and found.code == "amd-device-missing"
    return [found if believed else replace(found, severity="critical")]


def version(path: str, stated: str) -> tuple[int, ...] | None:
    """The version of ROCm, because flags follow it: as stated, else of the installation, else of the tool."""
    found = _STATED.search(stated)
    if found is not None:
        return version_in(found.group(1))
    return rocm_version(Path(path).resolve().parent.parent, ROCM) or version_in(stated)
