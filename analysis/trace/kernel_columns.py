"""Columns of the kernels table for kernel slices: blocks, threads, registers, shared memory, occupancy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import int_column
from profrun.analysis.trace.frame import Index, Mask
from profrun.analysis.trace.occupancy import Floats, estimate_occupancy
from profrun.traces.memo import memoised
from profrun.traces.schema import DeviceRow

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

KernelColumn = Literal["blocks", "threads", "registers", "smem", "occupancy"]

_COLUMNS: dict[KernelColumn, str] = {
    "blocks": "grid_x::DOUBLE * grid_y * grid_z",
    "threads": "block_x::DOUBLE * block_y * block_z",
    "registers": "registers",
    "smem": "coalesce(smem_static, 0)::DOUBLE + coalesce(smem_dynamic, 0)",
    "occupancy": "est_occupancy",
}


@memoised
def _by_slice(trace: Trace) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Slices of the kernels table, increasing, and the row of each."""
    slices = int_column(trace.tables, "kernels", "slice::INTEGER", np.int32)
    order = np.argsort(slices, kind="stable")
    return slices[order], order


@memoised
def _column(trace: Trace, name: KernelColumn) -> Floats:
    """A column in the order of ``_by_slice``, and NaN as its last value."""
    got = trace.tables.execute(
        f"SELECT coalesce(({_COLUMNS[name]})::DOUBLE, 'nan'::DOUBLE) AS v FROM kernels"
    )
    return np.append(np.asarray(got.fetchnumpy()["v"], dtype=np.float64)[_by_slice(trace)[1]], np.nan)


def kernel_values(trace: Trace, name: KernelColumn, ids: Index) -> Floats:
    """One column of the kernels table for slices.

    Args:
        trace: the trace.
        name: blocks (of the grid), threads (per block), registers (per thread), smem (bytes per block),
            occupancy (0 to 1).
        ids: slices, shape (n,).

    Returns:
        float64, shape (n,); NaN for NULL and for slices that are no kernels.
    """
    known, _ = _by_slice(trace)
    place = np.searchsorted(known, ids)
    miss = place >= len(known)
    miss[~miss] = known[place[~miss]] != ids[~miss]
    return np.asarray(_column(trace, name)[np.where(miss, len(known), place)])


def occupancies(trace: Trace, kernels: Index, device: DeviceRow) -> tuple[Floats, Mask]:
    """Occupancy of kernels of one device, and whether it is our estimate.

    It is the tool's own figure where it gave one. Else it is estimated from registers, shared memory and
    block size.

    Returns:
        (occupancy from 0 to 1 or NaN, whether it is estimated), both of the shape of ``kernels``.
    """
    found = kernel_values(trace, "occupancy", kernels)
    missing = np.isnan(found)
    if missing.any():
        ids = kernels[missing]
        found[missing] = estimate_occupancy(
            device,
            kernel_values(trace, "blocks", ids),
            kernel_values(trace, "threads", ids),
            kernel_values(trace, "registers", ids),
            kernel_values(trace, "smem", ids),
        )
    return found, missing
