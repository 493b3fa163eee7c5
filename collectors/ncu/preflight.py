"""What stands against Nsight Compute on a machine: no NVIDIA GPU, or counters that may not be read.

Shipped into the job.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...contract.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...contract.machine import Machine


def check(options: Mapping[str, object], machine: Machine) -> list[Finding]:
    """All that it records are counters of kernels, so without them there is nothing."""
    found = []
    if machine.vendor != "nvidia":
        found.append(
            Finding(
                "no-gpu-to-profile",
                "critical",
                "ncu has nothing to profile",
                f"there is no NVIDIA GPU here (found: {machine.vendor})",
                "run on one, or use collectors: [torch]",
            )
        )
    denied = machine.nvidia_counters()
    if denied is not None:
        found.append(replace(denied, severity="critical"))
    return found
