"""What stands against Proton on a machine: no GPU. Shipped into the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contract.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...contract.machine import Machine


def check(options: Mapping[str, object], machine: Machine) -> list[Finding]:
    """All that it records are kernels of a GPU."""
    if machine.vendor != "none":
        return []
    return [
        Finding(
            "no-gpu-to-profile",
            "critical",
            "Proton has nothing to profile",
            "there is no GPU here",
            "run on one, or use collectors: [torch]",
        )
    ]
