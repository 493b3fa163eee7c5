"""Why a GPU's clock is not the highest: the bits that the vendors' libraries give, and their meaning.

This is the only list of these bits. ``vendor`` tells their names, the sampler their meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..contract.sampling import Reason

NVML: tuple[tuple[int, str, Reason], ...] = (
    (0x1, "gpu_idle", "idle"),
    (0x2, "applications_clocks_setting", "set clocks"),
    (0x4, "sw_power_cap", "power cap"),
    (0x8, "hw_slowdown", "hardware slowdown"),
    (0x10, "sync_boost", "sync boost"),
    (0x20, "sw_thermal_slowdown", "thermal"),
    (0x40, "hw_thermal_slowdown", "thermal"),
    (0x80, "hw_power_brake_slowdown", "power brake"),
    (0x100, "display_clock_setting", "display clocks"),
)
"""Bit, name and meaning of NVML's clocks event reasons (nvml.h, ``nvmlClocksEventReason*``; before driver 535
``nvmlClocksThrottleReason*``)."""

AMD: tuple[tuple[range, Reason], ...] = (
    (range(16), "power cap"),
    (range(16, 32), "hardware slowdown"),  # a limit of the current
    (range(32, 48), "thermal"),
    (range(48, 64), "hardware slowdown"),
)
"""Bits and their meaning of amdgpu's ``indep_throttle_status`` (Linux, amdgpu_smu.h, ``SMU_THROTTLER_*``:
power, current, temperature and other throttlers)."""


def nvml_names(mask: int) -> list[str]:
    """Names of the reasons whose bits are set in NVML's mask."""
    return [name for bit, name, _ in NVML if mask & bit]


def nvml_reasons(mask: int) -> int:
    """NVML's mask as a sum of the bits of ``contract.sampling.REASONS``."""
    return _sum(reason for bit, _, reason in NVML if mask & bit)


def amd_reasons(mask: int) -> int:
    """amdgpu's ``indep_throttle_status`` as a sum of the bits of ``contract.sampling.REASONS``."""
    return _sum(reason for bits, reason in AMD if any(mask >> bit & 1 for bit in bits))


def _sum(reasons: Iterable[Reason]) -> int:
    from ..contract.sampling import REASONS  # only the sampler needs it, and importing it costs time

    found = 0
    for reason in reasons:
        found |= REASONS[reason]
    return found
