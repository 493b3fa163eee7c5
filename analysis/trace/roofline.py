"""Roofline: work and traffic from recorded shapes against measured GPU time and the table of peaks.

Work is known per op (its input shapes), time per kernel: an op's GPU time is that of the kernels it launched
itself, so TFLOP/s = FLOPs / that time. Bytes are compulsory traffic (each input and output once): achieved
TB/s is a lower bound of what the kernel moved, and arithmetic intensity an upper bound.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from profrun.analysis.trace.flops import parse_list
from profrun.analysis.trace.frame import Frame, frame
from profrun.analysis.trace.op_shapes import dense, op_shapes
from profrun.analysis.trace.ops import enclosing_op
from profrun.analysis.trace.peaks import Peaks, peaks_for
from profrun.analysis.trace.roles import kernel_names
from profrun.analysis.trace.work import Work, work_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from profrun.traces.trace import Trace


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
        peak_tflops, peak_tb_s: of the GPU for that dtype, None for an unknown GPU or dtype.
        compute_share, memory_share: achieved / peak.
        bound: 'compute' or 'memory', by intensity against the ridge of the peaks; None when not known.
        limit_share: achieved / the roofline at this intensity.
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
        int(row["device"]): peaks_for(
            str(row["name"]), arch=row["arch"], sm_count=row["sm_count"], overrides=overrides
        )
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
    groups = _groups(trace, source)
    rows = [_row(key, group, source, table) for key, group in groups.items()]
    rows.sort(key=lambda row: (-row.gpu_ns, row.op, row.shapes))
    known = sum(row.gpu_ns for row in rows if row.flops is not None or row.bytes is not None)
    return Roofline(rows, table, known, total)


_Key = tuple[str, str, str | None, int]


def _groups(trace: Trace, source: Frame) -> dict[_Key, dict[int, list[int]]]:
    """(op, shapes, dtypes, device) -> kernel name id -> [ops, slices, ns]."""
    owner = enclosing_op(source, source.launched)
    ids, owner = source.launched[owner >= 0], owner[owner >= 0]
    recorded = op_shapes(trace, source)
    shape, dtype = recorded.of(len(source), owner)
    keep = shape >= 0
    ids, owner, shape, dtype = ids[keep], owner[keep], shape[keep], dtype[keep]
    op, kernel, device = source.name[owner], source.name[ids], source.device_of(ids)
    first, group = dense(op, shape, dtype, device, kernel)
    slices = np.bincount(group)
    time = np.bincount(group, weights=source.durs(ids))  # exact: sums of ns stay under 2**53
    pair, _ = dense(group, owner)
    calls = np.bincount(group[pair]) if len(pair) else slices
    groups: dict[_Key, dict[int, list[int]]] = defaultdict(dict)
    for number, place in enumerate(first):
        text = None if dtype[place] < 0 else recorded.dtypes[int(dtype[place])]
        key = (source.names[int(op[place])], recorded.shapes[int(shape[place])], text, int(device[place]))
        groups[key][int(kernel[place])] = [int(calls[number]), int(slices[number]), int(time[number])]
    return groups


def _row(
    key: _Key, group: dict[int, list[int]], source: Frame, table: dict[int, Peaks | None]
) -> RooflineRow:
    name, shapes, dtypes, device = key
    main = max(group, key=lambda kernel: group[kernel][2])
    calls = max(values[0] for values in group.values())
    time = sum(values[2] for values in group.values())
    work = work_of(name, parse_list(shapes), parse_list(dtypes))
    reading = kernel_names(source).get(main)
    dtype = reading.dtype if reading is not None and reading.dtype else work.dtype
    peak = table.get(device)
    return RooflineRow(
        op=name, shapes=shapes, dtypes=dtypes, dtype=dtype, kernel=source.names[main],
        kernels=sum(values[1] for values in group.values()), device=device, calls=calls, gpu_ns=time,
        flops=work.flops, bytes=work.bytes, **_rates(work, calls, time, dtype, peak, _matrix(reading)),
    )  # fmt: skip


def _matrix(reading: Any) -> bool:
    """Against which unit's peak: matrix units unless the kernel's name says that it does not use them."""
    return not (reading is not None and reading.matrix_core is False)


def _rates(
    work: Work, calls: int, time: int, dtype: str | None, peak: Peaks | None, matrix: bool
) -> dict[str, Any]:
    tflops = work.flops * calls / time / 1e3 if work.flops is not None and time else None
    tb_s = work.bytes * calls / time / 1e3 if work.bytes is not None and time else None
    intensity = work.flops / work.bytes if work.flops is not None and work.bytes else None
    top = peak.for_dtype(dtype, matrix=matrix) if peak else None
    wide = peak.memory_gb_s / 1e3 if peak else None
    cached = tb_s is not None and wide is not None and tb_s > wide
    bound = limit = None
    if cached:
        pass
    elif intensity is not None and top is not None and wide and tflops is not None:
        roof = min(top, intensity * wide)
        bound = "compute" if intensity * wide >= top else "memory"
        limit = tflops / roof if roof else None
    elif work.flops is None and tb_s is not None and wide:
        bound, limit = "memory", tb_s / wide
    return {
        "tflops": tflops,
        "tb_s": tb_s,
        "intensity": intensity,
        "peak_tflops": top,
        "peak_tb_s": wide,
        "compute_share": tflops / top if tflops is not None and top else None,
        "memory_share": tb_s / wide if tb_s is not None and wide and not cached else None,
        "bound": bound,
        "limit_share": limit,
        "cached": cached,
    }
