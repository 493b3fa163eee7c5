"""GPU utilization, estimated SM efficiency and estimated achieved occupancy, as kineto's plugin code
computes them.

The formulas are those of ``torch_tb_profiler`` 0.4.3 (``gpu_metrics_parser.py``, ``range_utils.py``), over
the window of its extended steps (``steps.step_spans``). Its page differs from its code where kernels overlap;
the code is what is followed. Busy time by set algebra follows TraceLens (``gpu_timeline``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from profrun.analysis.trace.columns import distinct
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.intervals import clip, intersect, merge, subtract, sweep, union
from profrun.analysis.trace.kernel_columns import kernel_values, occupancies
from profrun.analysis.trace.roles import COMM, COMPUTE, MEMCPY, MEMSET, kernel_names, on_device, roles
from profrun.analysis.trace.steps import step_spans
from profrun.traces.memo import memoised
from profrun.traces.schema import DeviceRow

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class DeviceMetrics:
    """One GPU; every ratio names its denominator in the ``*_of`` beside it. None: cannot be known.

    Attributes:
        device, name, vendor, ordinal, process, rank: which GPU.
        window_ns: last step's end - first step's start, steps extended by their GPU work.
        utilization: union of kernels in the window / window_ns. Copies do not count.
        est_sm_efficiency: integral over the window of min(sum of blocks per SM of all running kernels, 1) /
            window_ns; None without grid or SM count.
        est_achieved_occupancy: mean over kernels of their occupancy, weighted by their time in the window;
            of the time of kernels that have one (``occupancy_ns``).
        occupancy_source: 'tool' (the profiler's own figure), 'estimated' (from registers and shared memory)
            or 'mixed'.
        occupancy_ns: kernel time in the window with an occupancy.
        kernel_ns: kernel time in the window, concurrent kernels counted each.
        span_ns: first GPU start to last GPU end.
        busy_ns: union of kernels, copies and fills over the whole trace; idle_ns = span_ns - busy_ns.
        compute_ns, comm_ns, memcpy_ns: unions (fills count as compute, as TraceLens has it).
        exposed_comm_ns: communication not covered by computation.
        exposed_memcpy_ns: copies covered by neither.
        overlap_comm_ns: communication covered by computation.
        matrix_core_ns / matrix_core_known_ns: kernel time on tensor cores, and kernel time whose names tell;
            share is of ``total_kernel_ns``, None when the names of less than half of it tell.
    """

    device: int
    name: str
    vendor: str
    ordinal: int
    process: int
    rank: int
    window_ns: int
    utilization: float | None
    est_sm_efficiency: float | None
    est_achieved_occupancy: float | None
    occupancy_source: str | None
    occupancy_ns: int
    kernel_ns: int
    span_ns: int
    busy_ns: int
    idle_ns: int
    compute_ns: int
    comm_ns: int
    memcpy_ns: int
    exposed_comm_ns: int
    exposed_memcpy_ns: int
    overlap_comm_ns: int
    total_kernel_ns: int
    matrix_core_ns: int
    matrix_core_known_ns: int
    matrix_core_share: float | None
    streams: int
    utilization_of: str = field(default="window_ns", init=False)
    est_sm_efficiency_of: str = field(default="window_ns", init=False)
    est_achieved_occupancy_of: str = field(default="occupancy_ns", init=False)
    matrix_core_share_of: str = field(default="total_kernel_ns", init=False)


def window(source: Frame, process: int) -> tuple[int, int]:
    """Start and end of all steps of a process, extended by their GPU work; (0, 0) when there is nothing."""
    starts, ends, _ = step_spans(source, process)
    return (int(starts[0]), int(ends[-1])) if len(starts) else (0, 0)


@memoised
def devices(trace: Trace) -> list[DeviceMetrics]:
    """Metrics of every GPU that ran something."""
    source = frame(trace)
    used = set(distinct(source.device_of(source.gpu)))
    return [_device(trace, row) for row in source.devices if row["device"] in used]


def _device(trace: Trace, row: DeviceRow) -> DeviceMetrics:
    source, process = frame(trace), row["process"]
    gpu = on_device(source, source.gpu_by_time, row["device"])
    kernels = gpu[source.is_kind(gpu, "kernel")]
    start, end = window(source, process)
    running = union(source.ts[kernels], source.end[kernels])
    busy = union(source.ts[gpu], source.end[gpu])
    span = int(source.end[gpu].max() - source.ts[gpu].min())
    core_ns, known_ns = _matrix_core(source, kernels)
    kernel_ns = int(source.durs(kernels).sum())
    size = end - start
    known = size > 0 and len(kernels) > 0
    return DeviceMetrics(
        device=row["device"],
        name=row["name"],
        vendor=row["vendor"],
        ordinal=row["ordinal"],
        process=process,
        rank=source.processes[process]["rank"],
        window_ns=size,
        utilization=clip(running, start, end).total / size if known else None,
        est_sm_efficiency=_sm_efficiency(trace, kernels, row, start, end) if known else None,
        span_ns=span,
        busy_ns=busy.total,
        idle_ns=span - busy.total,
        total_kernel_ns=kernel_ns,
        matrix_core_ns=core_ns,
        matrix_core_known_ns=known_ns,
        matrix_core_share=core_ns / kernel_ns if known_ns and 2 * known_ns >= kernel_ns else None,
        streams=len(distinct(source.track[gpu])),
        **_sets(trace, gpu),
        **_occupancy(trace, kernels, row, start, end),
    )


class _Sets(TypedDict):
    compute_ns: int
    comm_ns: int
    memcpy_ns: int
    exposed_comm_ns: int
    exposed_memcpy_ns: int
    overlap_comm_ns: int


def _sets(trace: Trace, gpu: Index) -> _Sets:
    """Set algebra over what the GPU slices of a device do."""
    source, role = frame(trace), roles(trace)[gpu]
    compute, comm, copy = (
        union(source.ts[gpu[mask]], source.end[gpu[mask]])
        for mask in ((role == COMPUTE) | (role == MEMSET), role == COMM, role == MEMCPY)
    )
    return {
        "compute_ns": compute.total,
        "comm_ns": comm.total,
        "memcpy_ns": copy.total,
        "exposed_comm_ns": subtract(comm, compute).total,
        "exposed_memcpy_ns": subtract(copy, merge(compute, comm)).total,
        "overlap_comm_ns": intersect(comm, compute).total,
    }


def _sm_efficiency(trace: Trace, kernels: Index, row: DeviceRow, start: int, end: int) -> float | None:
    """``est_sm_efficiency`` of the window [start, end); None without a grid or the number of SMs."""
    source, sm_count = frame(trace), row["sm_count"]
    blocks = kernel_values(trace, "blocks", kernels)
    good = blocks > 0
    if not sm_count or not good.any():
        return None
    ids = kernels[good]
    value = sweep(source.ts[ids], source.end[ids], blocks[good] / sm_count, start=start, end=end, cap=1.0)
    return value / (end - start)


class _Occupancy(TypedDict):
    est_achieved_occupancy: float | None
    occupancy_source: str | None
    occupancy_ns: int
    kernel_ns: int


def _occupancy(trace: Trace, kernels: Index, row: DeviceRow, start: int, end: int) -> _Occupancy:
    """Occupancy of the kernels of a device, weighted by their time in the window [start, end)."""
    source = frame(trace)
    inside = np.maximum(np.minimum(source.end[kernels], end) - np.maximum(source.ts[kernels], start), 0)
    value, estimated = occupancies(trace, kernels, row)
    good = ~np.isnan(value) & (inside > 0)
    weight = int(inside[good].sum())
    origin = None
    if weight:
        kinds = np.unique(estimated[good])
        origin = "mixed" if len(kinds) == 2 else ("estimated" if kinds[0] else "tool")
    return {
        "est_achieved_occupancy": float((value[good] * inside[good]).sum() / weight) if weight else None,
        "occupancy_source": origin,
        "occupancy_ns": weight,
        "kernel_ns": int(inside.sum()),
    }


def _matrix_core(source: Frame, kernels: Index) -> tuple[int, int]:
    """(ns on matrix cores, ns of kernels whose name tells whether)."""
    by_name = np.full(len(source.names) + 1, -1, dtype=np.int8)
    for number, kernel in kernel_names(source).items():
        if kernel.matrix_core is not None:
            by_name[number] = int(kernel.matrix_core)
    state, dur = by_name[source.name[kernels]], source.durs(kernels)
    return int(dur[state == 1].sum()), int(dur[state >= 0].sum())
