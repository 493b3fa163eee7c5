"""Checks of what is recorded of each kernel: occupancy, grid, and a name that tells what it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.frame import Frame, frame
from profrun.analysis.trace.quality import QualityFinding, above
from profrun.analysis.trace.roles import kernel_names
from profrun.contract.units import counted, percent_text

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

NO_GRID_SHARE = 0.05
"""Kernels without a grid from which the estimated SM efficiency is marked."""
UNKNOWN_SHARE = 0.2
"""Kernel time of unknown category from which the categories are marked."""
LARGE_GRID = 16384
"""Threads of a grid in x that no GPU runs with an occupancy that rounds to 0."""


def launch_columns(trace: Trace) -> Iterator[QualityFinding]:
    """Kernels without an occupancy, with an occupancy of 0, or without a grid."""
    row = trace.sql(
        "SELECT count(*), count(est_occupancy), count(registers), count(grid_x), "
        f"count(*) FILTER (est_occupancy = 0 AND grid_x::DOUBLE * block_x >= {LARGE_GRID}) FROM kernels"
    ).rows[0]
    kernels, occupancy, registers, grid, zero = (int(value) for value in row)
    if kernels and not occupancy:
        yield QualityFinding(
            code="no_occupancy",
            severity="info",
            what=f"the profiler gave no occupancy: {_estimate(frame(trace), registers)}",
            affects=("devices.est_achieved_occupancy",),
            count=kernels,
            share=1.0,
            share_of="kernels",
        )
    if zero:
        yield QualityFinding(
            code="zero_occupancy",
            severity="warning",
            what=f"the profiler gave {zero} of {kernels} kernels an occupancy of 0, though they ran",
            affects=("devices.est_achieved_occupancy",),
            count=zero,
            share=zero / kernels,
            share_of="kernels",
        )
    if kernels and grid < kernels:
        share = (kernels - grid) / kernels
        yield QualityFinding(
            code="no_grid",
            severity="critical" if share == 1.0 else above(share, NO_GRID_SHARE),
            what=f"{kernels - grid} of {kernels} kernels have no grid: they are not in the estimated SM "
            "efficiency",
            affects=("devices.est_sm_efficiency",),
            count=kernels - grid,
            share=share,
            share_of="kernels",
        )


def _estimate(source: Frame, registers: int) -> str:
    """Whether occupancy can be estimated, and why not; ``registers`` is how many kernels have them."""
    if not registers:
        return "it cannot be estimated, because registers were not recorded either"
    if any(device["sm_count"] and device["arch"] for device in source.devices):
        return "it is estimated from registers and shared memory"
    return "it cannot be estimated, because the recording does not say which GPU this was"


def unknown_kernels(trace: Trace) -> Iterator[QualityFinding]:
    """Kernels whose names tell no category."""
    source = frame(trace)
    kernels = source.of("kernel")
    unknown = [number for number, kernel in kernel_names(source).items() if kernel.category == "unknown"]
    if not unknown or not len(kernels):
        return
    mine = kernels[np.isin(source.name[kernels], unknown)]
    share = float(source.durs(mine).sum() / max(1, source.durs(kernels).sum()))
    yield QualityFinding(
        code="unknown_kernels",
        severity=above(share, UNKNOWN_SHARE),
        what=f"{counted(len(unknown), 'kernel')} of unknown category: {percent_text(share)} of kernel time",
        affects=("categories",),
        count=len(mine),
        share=share,
        share_of="kernel time",
    )
