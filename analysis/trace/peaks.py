"""Peaks of a device by its name, with overrides; the table is ``peak_table``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from profrun.analysis.trace.peak_table import TABLE, Peaks
from profrun.errors import UsageError

__all__ = ["Peaks", "known_gpus", "peaks_for"]


def known_gpus() -> list[Peaks]:
    """Every entry of the table."""
    return [peaks for _, peaks in TABLE]


def peaks_for(
    name: str,
    *,
    arch: str | None = None,
    sm_count: int | None = None,
    overrides: Mapping[str, float] | None = None,
) -> Peaks | None:
    """Peaks of a device by its product name; None for a GPU that is not in the table.

    Args:
        name: as the driver calls it: 'NVIDIA H200', 'AMD Instinct MI300X'.
        arch, sm_count: used for AMD devices that are only called 'AMD Radeon Graphics' or by their arch.
        overrides: dtype -> TFLOP/s, and 'memory_gb_s'; for an unknown GPU they are all there is.

    Raises:
        UsageError: an override is not a positive number, or a key is not known.
    """
    found = next((peaks for pattern, peaks in TABLE if re.search(pattern, name)), None)
    if found is None and arch == "gfx942" and sm_count in (304, 228):
        model = "MI300X" if sm_count == 304 else "MI300A"  # MI325X has 304 CUs too: stated in the source
        base = next(peaks for pattern, peaks in TABLE if pattern == model)
        told = f"told from gfx942 with {sm_count} CUs, bandwidth may be more"
        found = replace(base, source=f"{base.source}; {told}")
    if not overrides:
        return found
    for key, value in overrides.items():
        if not value > 0:
            raise UsageError(f"peak {key}={value!r} is not a positive number", fix="give TFLOP/s or GB/s")
    if found is None:
        found = Peaks(name, {}, 0.0, "given by the user", "given by the user")
    tflops = dict(found.tflops) | {
        key: float(value) for key, value in overrides.items() if key != "memory_gb_s"
    }
    memory = float(overrides.get("memory_gb_s", found.memory_gb_s))
    if memory <= 0:
        raise UsageError(f"no memory bandwidth is known for {name}", fix="give memory_gb_s as well")
    return replace(
        found,
        tflops=tflops,
        memory_gb_s=memory,
        source=f"{found.source}; overridden: {', '.join(sorted(overrides))}",
        overridden=tuple(sorted(overrides)),
    )
