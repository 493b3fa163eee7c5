"""Roofline: work and traffic from recorded shapes against measured GPU time and the table of peaks.

Work is known per op (its input shapes), time per kernel: an op's GPU time is that of the kernels it launched
itself, so TFLOP/s = FLOPs / that time. Bytes are compulsory traffic (each input and output once): achieved
TB/s is a lower bound of what the kernel moved, and arithmetic intensity an upper bound.

Where a sampler read the GPU's clock (``readings``), the peak of arithmetic is also told at the clock that
ran: peak x mean clock while the op's kernels ran / the clock at which the peak holds. The roof is then that
of this clock. The peak of the memory does not follow the SM clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np

from profrun.analysis.trace.columns import groups
from profrun.analysis.trace.flops import parse_list
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.op_cost import OpCost, cost_of
from profrun.analysis.trace.op_shapes import op_shapes
from profrun.analysis.trace.peaks import Peaks, peaks_for
from profrun.analysis.trace.readings import MeanReading, gpu_readings, sm_clock
from profrun.analysis.trace.roles import kernel_names
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from collections.abc import Mapping

    from profrun.traces.trace import Trace

AT_CLOCK, DATASHEET = "clock that ran", "datasheet"
"""The clock of the arithmetic peak of a roofline (``RooflineRow.limit_at``)."""


@dataclass(frozen=True)
class RooflineRow:
    """All calls of one op with the same shapes that ran the same main kernel on one device.

    Attributes:
        op, shapes, dtypes: as recorded; dtype: what the kernel multiplied (tf32 for fp32 inputs on tensor
            cores).
        kernel: the kernel that took most of the time; kernels: how many GPU slices in all.
        device, calls, gpu_ns: GPU time of all calls.
        flops, bytes: per call; None where shapes do not give them.
        tflops, tb_s: achieved rates: flops x calls / gpu_ns, bytes x calls / gpu_ns.
        intensity: flops / bytes.
        peak_tflops, peak_tb_s: of the GPU for that dtype by its datasheet, None for an unknown GPU or dtype.
        compute_share, memory_share: achieved / peak.
        clock_mhz, clock_readings: mean clock while its kernels ran and the number of readings that hold then;
            None and 0 without samples. What is read may be 200 ms old.
        peak_tflops_at_clock: peak_tflops x clock_mhz / the clock at which it holds (``PeakClocks``).
        compute_share_at_clock: achieved / that. Both are None where the clock is not known, and where the
            share would be over 1: what was read is then not the clock at which the kernels ran.
        bound: 'compute' or 'memory', by intensity against the ridge of the peaks; None when not known.
        limit_share: achieved / the roofline at this intensity.
        limit_at: the clock of that roofline: 'clock that ran' or 'datasheet'; None without limit_share.
        cached: the bytes went by faster than the GPU's memory can deliver them, so part of them came from
            caches: neither memory_share nor bound nor limit_share say anything then, and are None.
    """

    op: str
    shapes: str
    dtypes: str | None
    dtype: str | None
    kernel: str
    kernels: int
    device: int
    calls: int
    gpu_ns: int
    flops: int | None
    bytes: int | None
    tflops: float | None
    tb_s: float | None
    intensity: float | None
    peak_tflops: float | None
    peak_tb_s: float | None
    compute_share: float | None
    memory_share: float | None
    bound: str | None
    limit_share: float | None
    cached: bool = False
    clock_mhz: float | None = None
    clock_readings: int = 0
    peak_tflops_at_clock: float | None = None
    compute_share_at_clock: float | None = None
    limit_at: str | None = None
    compute_share_at_clock_of: str = field(default="peak_tflops_at_clock", init=False)
    compute_share_of: str = field(default="peak_tflops", init=False)
    memory_share_of: str = field(default="peak_tb_s", init=False)


@dataclass(frozen=True)
class Roofline:
    """Rows, most GPU time first, and what they cover.

    Attributes:
        rows: see ``RooflineRow``.
        peaks: by device id; None for a GPU that is not in the table.
        covered_ns: GPU time in rows with FLOPs or bytes; total_ns: all GPU time.
    """

    rows: list[RooflineRow]
    peaks: dict[int, Peaks | None]
    covered_ns: int
    total_ns: int
    covered_of: str = field(default="total_ns", init=False)


def device_peaks(source: Frame, overrides: Mapping[str, float] | None = None) -> dict[int, Peaks | None]:
    """Peaks of every device of the trace."""
    return {
        row["device"]: peaks_for(row["name"], arch=row["arch"], sm_count=row["sm_count"], overrides=overrides)
        for row in source.devices
    }


def roofline(trace: Trace, *, peaks: Mapping[str, float] | None = None) -> Roofline:
    """Roofline of every op with recorded shapes that launched GPU work.

    Args:
        peaks: overrides, see ``peaks.peaks_for``.
    """
    source = frame(trace)
    table = device_peaks(source, peaks)
    total = int(source.durs(source.gpu).sum())
    rows = [_row(key, work, source, table) for key, work in _by_op(trace).items()]
    rows.sort(key=lambda row: (-row.gpu_ns, row.op, row.shapes))
    known = sum(row.gpu_ns for row in rows if row.flops is not None or row.bytes is not None)
    return Roofline(rows, table, known, total)


_Key = tuple[str, str, str | None, int]
"""Op, shapes and dtypes as recorded, device."""


class _Kernels(NamedTuple):
    """Kernels of one name that the calls of one op launched: how many calls, how many slices, and their
    ns."""

    calls: int
    slices: int
    ns: int


class _Work(NamedTuple):
    """GPU work of the calls of one op: kernels by name id, and the mean clock while they ran."""

    kernels: dict[int, _Kernels]
    clock: MeanReading | None


@memoised
def _by_op(trace: Trace) -> dict[_Key, _Work]:
    """GPU work of ops with recorded shapes."""
    source = frame(trace)
    owner = source.launching_op(source.launched)
    ids, owner = source.launched[owner >= 0], owner[owner >= 0]
    recorded = op_shapes(trace)
    shape, dtype = recorded.of(len(source), owner)
    keep = shape >= 0
    ids, owner, shape, dtype = ids[keep], owner[keep], shape[keep], dtype[keep]
    op, kernel, device = source.name[owner], source.name[ids], source.device_of(ids)
    first, group = groups(op, shape, dtype, device, kernel)
    slices = np.bincount(group)
    time = np.bincount(group, weights=source.durs(ids))  # exact: sums of ns stay under 2**53
    pair, _ = groups(group, owner)
    calls = np.bincount(group[pair]) if len(pair) else slices
    found: dict[_Key, _Work] = {}
    _, op_group = groups(op, shape, dtype, device)
    clocks = _clocks(trace, ids, op_group)
    for number, place in enumerate(first):
        text = None if dtype[place] < 0 else recorded.dtypes[int(dtype[place])]
        key = (source.names[int(op[place])], recorded.shapes[int(shape[place])], text, int(device[place]))
        work = found.setdefault(key, _Work({}, clocks.get(int(op_group[place]))))
        work.kernels[int(kernel[place])] = _Kernels(
            int(calls[number]), int(slices[number]), int(time[number])
        )
    return found


def _clocks(trace: Trace, ids: Index, group: Index) -> dict[int, MeanReading | None]:
    """Group -> the mean clock while its GPU slices ``ids`` ran, all on one GPU; empty without samples."""
    if not gpu_readings(trace):
        return {}
    source = frame(trace)
    order = np.argsort(group, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if len(order) else []
    found: dict[int, MeanReading | None] = {}
    for part in parts:
        mine = ids[part]
        device = int(source.device_of(mine[:1])[0])
        found[int(group[part[0]])] = sm_clock(trace, device, source.ts[mine], source.end[mine])
    return found


def _row(key: _Key, work: _Work, source: Frame, table: dict[int, Peaks | None]) -> RooflineRow:
    name, shapes, dtypes, device = key
    kernels = work.kernels
    main = max(kernels, key=lambda kernel: kernels[kernel].ns)
    calls = max(one.calls for one in kernels.values())
    time = sum(one.ns for one in kernels.values())
    cost = cost_of(name, parse_list(shapes), parse_list(dtypes))
    reading = kernel_names(source).get(main)
    dtype = reading.dtype if reading is not None and reading.dtype else cost.dtype
    matrix = reading is None or reading.matrix_core is not False
    return RooflineRow(
        op=name,
        shapes=shapes,
        dtypes=dtypes,
        dtype=dtype,
        kernel=source.names[main],
        kernels=sum(one.slices for one in kernels.values()),
        device=device,
        calls=calls,
        gpu_ns=time,
        flops=cost.flops,
        bytes=cost.bytes,
        **_rates(cost, calls, time, table.get(device), dtype, matrix, work.clock),
    )


class _Rates(TypedDict):
    tflops: float | None
    tb_s: float | None
    intensity: float | None
    peak_tflops: float | None
    peak_tb_s: float | None
    compute_share: float | None
    memory_share: float | None
    bound: str | None
    limit_share: float | None
    cached: bool
    clock_mhz: float | None
    clock_readings: int
    peak_tflops_at_clock: float | None
    compute_share_at_clock: float | None
    limit_at: str | None


def _rates(
    cost: OpCost,
    calls: int,
    time: int,
    peaks: Peaks | None,
    dtype: str | None,
    matrix: bool,
    clock: MeanReading | None,
) -> _Rates:
    """Achieved rates against the peaks.

    Args:
        cost: of one call.
        calls, time: number of calls and their GPU time in ns.
        peaks: of the device, None when they are not known.
        dtype, matrix: which peak of arithmetic counts: the type, and whether matrix units could be used.
        clock: mean while its kernels ran; None without samples.
    """
    tflops = cost.flops * calls / time / 1e3 if cost.flops is not None and time else None
    tb_s = cost.bytes * calls / time / 1e3 if cost.bytes is not None and time else None
    intensity = cost.flops / cost.bytes if cost.flops is not None and cost.bytes else None
    top = peaks.for_dtype(dtype, matrix=matrix) if peaks else None
    ran = peaks.at_clock(dtype, clock.value if clock else None, matrix=matrix) if peaks else None
    if ran is not None and tflops is not None and tflops > ran:
        ran = None  # the clock that was read is not the one that ran
    highest = ran or top
    memory = peaks.memory_gb_s / 1e3 if peaks else None
    cached = tb_s is not None and memory is not None and tb_s > memory
    bound = limit = None
    if cached:
        pass
    elif intensity is not None and highest is not None and memory and tflops is not None:
        roof = min(highest, intensity * memory)
        bound = "compute" if intensity * memory >= highest else "memory"
        limit = tflops / roof if roof else None
    elif cost.flops is None and tb_s is not None and memory:
        bound, limit = "memory", tb_s / memory
    return {
        "tflops": tflops,
        "tb_s": tb_s,
        "intensity": intensity,
        "peak_tflops": top,
        "peak_tb_s": memory,
        "compute_share": tflops / top if tflops is not None and top else None,
        "memory_share": tb_s / memory if tb_s is not None and memory and not cached else None,
        "bound": bound,
        "limit_share": limit,
        "cached": cached,
        "clock_mhz": clock.value if clock else None,
        "clock_readings": clock.readings if clock else 0,
        "peak_tflops_at_clock": ran,
        "compute_share_at_clock": tflops / ran if tflops is not None and ran else None,
        "limit_at": None if limit is None else AT_CLOCK if ran and bound == "compute" else DATASHEET,
    }
