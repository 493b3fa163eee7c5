"""Copies: across the bus inside steps, from pageable memory, before a GEMM, and not overlapped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_cost import WARNING_SHARE, Gain
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Index, Mask
from profrun.analysis.trace.intervals import subtract, union
from profrun.analysis.trace.runtime_calls import is_blocking
from profrun.contract.units import bytes_text, percent_text, rate_text, time_text
from profrun.traces.memo import memoised

EXPOSED_SHARE = 0.05
LARGE = 65536
"""Bytes from which a single copy through pageable memory matters."""
GEMM_OPS = (
    "aten::addmm",
    "aten::mm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::_addmm_activation",
    "aten::_scaled_mm",
)


class _Copies(NamedTuple):
    """Memcpys: slices, bytes (int64, -1 where they are not recorded) and direction, each of shape
    (copies,)."""

    ids: Index
    size: Ints
    direction: NDArray[np.object_]

    def only(self, mask: Mask) -> _Copies:
        """Those where the mask is true."""
        return _Copies(self.ids[mask], self.size[mask], self.direction[mask])

    @property
    def bytes(self) -> int | None:
        """Sum of bytes, None when the size of any copy is not recorded."""
        return None if not len(self.size) or (self.size < 0).any() else int(self.size.sum())

    @property
    def size_text(self) -> str:
        """The bytes in a sentence."""
        return "size unknown" if self.bytes is None else f"{bytes_text(self.bytes)} in all"


def _copies(ctx: Context, where: str) -> _Copies:
    """Memcpys for which an SQL condition over the copies table (c) holds."""
    got = ctx.trace.tables.execute(
        "SELECT c.slice, coalesce(c.bytes, -1)::BIGINT AS bytes, c.direction FROM copies c "
        f"JOIN slices s USING (slice) WHERE s.kind = 'memcpy' AND ({where}) ORDER BY c.slice"
    ).fetchnumpy()
    return _Copies(
        np.asarray(got["slice"], dtype=np.intp),
        np.asarray(got["bytes"], dtype=np.int64),
        np.asarray(got["direction"], dtype=object),
    )


def _of_steps(ctx: Context, copies: _Copies) -> _Copies:
    """The copies that steps launched; all of them when there are no steps."""
    return copies.only(np.isin(copies.ids, ctx.step_gpu))


def exposed_ns(ctx: Context, ids: Index) -> int:
    """Time of copies while nothing else runs on their GPU, over all steps."""
    source = ctx.frame
    total = 0
    for device in np.unique(source.device_of(ids)):
        work = ctx.step_gpu[source.device_of(ctx.step_gpu) == device]
        mine = ids[source.device_of(ids) == device]
        rest = work[~source.is_kind(work, "memcpy")]
        moved = union(source.ts[mine], source.end[mine])
        total += subtract(moved, union(source.ts[rest], source.end[rest])).total
    return total


@memoised
def bus_copies(ctx: Context) -> _Copies:
    """The steps' copies between host and device."""
    return _of_steps(ctx, _copies(ctx, "c.direction IN ('HtoD', 'DtoH')"))


@memoised
def pageable(ctx: Context) -> _Copies:
    """The steps' copies from or to pageable memory."""
    return _of_steps(ctx, _copies(ctx, "c.src_kind = 'pageable' OR c.dst_kind = 'pageable'"))


def waits_of_copies(ctx: Context, ids: Index) -> Index:
    """Host slices that these copies keep busy: the calls that launched them, and the waits of their ops."""
    source = ctx.frame
    calls = source.launch[ids]
    calls = np.unique(calls[calls >= 0]).astype(np.intp)
    api = calls[source.is_kind(calls, "api")]
    ops = source.op_of(calls)
    under = ctx.named("api", is_blocking)
    mine = under[np.isin(source.nearest("op")[under], ops[ops >= 0])]
    return np.union1d(api, mine).astype(np.intp)


@rule(
    "host-device-copies",
    "Data crosses the bus",
    experiments=("pinned-memory",),
    remedy="create and keep tensors on the GPU",
    meaning="Each step copies between host and device; input batches are expected, anything else is worth a "
    "look.",
    threshold="At least one HtoD or DtoH copy per step. Without steps: when nothing covers them for at least "
    "5 % of the run or the recording.",
    advice="Create tensors on the device, keep results there, prefetch the next batch on another stream.",
    bound="The time of these copies in which the GPU does nothing else.",
    relies_on=("steps.kernel_ns",),
)
def host_device_copies(ctx: Context) -> Iterator[Hit]:
    """Copies by direction, launched by steps."""
    both = bus_copies(ctx)
    ways = [both.only(both.direction == way) for way in sorted(set(both.direction))]
    ways = [one for one in ways if len(one.ids) >= ctx.step_count]
    if not ways:
        return
    ids = np.concatenate([one.ids for one in ways])
    gain = ctx.gpu_gain(ids, np.ones(len(ids)))
    if not ctx.denominator.several and gain.share < WARNING_SHARE:
        return
    told = [
        f"{rate_text(len(one.ids) / ctx.step_count)} {one.direction[0]} copies {ctx.rate}, "
        f"{one.size_text}, {time_text(ctx.total(one.ids) / ctx.step_count)} {ctx.per}"
        for one in ways
    ]
    yield Hit(
        "; ".join(told),
        {"count": len(ids), "total_ns": ctx.total(ids), "exposed_ns": exposed_ns(ctx, ids)},
        slices=ctx.worst(ids),
        gain=gain,
        rows=[
            FindingRow(str(one.direction[0]), len(one.ids), ctx.total(one.ids), one.size_text) for one in ways
        ]
        if len(ways) > 1
        else (),
    )


@rule(
    "pageable-copies",
    "Copies go through pageable memory",
    experiments=("pinned-memory",),
    remedy="pin_memory=True and non_blocking=True",
    meaning="The driver stages such a copy through a pinned buffer of its own; it is slower, the host waits "
    "for it, and it cannot overlap.",
    threshold="A copy between the device and pageable host memory of at least 64 KiB, or at least one per "
    "step.",
    advice="DataLoader(pin_memory=True), tensor.pin_memory(), and .to(device, non_blocking=True).",
    bound="The steps are replayed without the time of these copies, and without the calls that launch copies "
    "to the GPU, which last as long as the copy, and those that wait for them (a copy to the host must be "
    "waited for by whoever reads it). Without a replay: the time of the copies that nothing covers, together "
    "with the time of the calls that launch copies to the GPU and wait for them.",
)
def pageable_copies(ctx: Context) -> Iterator[Hit]:
    """Copies whose host side is pageable."""
    copies = pageable(ctx)
    count, size = len(copies.ids), copies.bytes
    often = ctx.denominator.several and count >= ctx.step_count
    if not count or (not often and copies.size.max() < LARGE):
        return
    time = ctx.total(copies.ids)
    ways = ", ".join(f"{number} {way}" for way, number in sorted(Counter(copies.direction).items()))
    calls = waits_of_copies(ctx, copies.only(copies.direction == "HtoD").ids)
    exposed = exposed_ns(ctx, copies.ids)
    yield Hit(
        f"{ways} copies use pageable memory: {copies.size_text}, {time_text(time)} in all",
        {
            "count": count,
            "bytes": size,
            "total_ns": time,
            "exposed_ns": exposed,
            "host_ns": ctx.host_time(calls),
            "gb_s": size / time if time and size is not None else None,
        },
        slices=ctx.worst(copies.ids),
        gain=_pageable_gain(ctx, copies.ids, calls, exposed),
        extent="" if size is None else f"{bytes_text(size / ctx.step_count)} {ctx.rate}",
        idle_ns=ctx.idle_inside(calls),
        fix=None
        if ctx.program.torch
        else "Allocate the host's side as pinned memory (cudaMallocHost, hipHostMalloc) and copy with the "
        "asynchronous calls.",
    )


def _pageable_gain(ctx: Context, ids: Index, calls: Index, exposed: int) -> Gain:
    """The gain of copies that take no time and are not waited for.

    Args:
        ids: the copies.
        calls: host slices that launch copies to the GPU, and that wait for them.
        exposed: time of the copies that nothing covers, ns over all steps.
    """
    if ctx.replayed:
        gain = ctx.gpu_gain(ids, np.ones(len(ids)), calls=calls)
    else:
        both = ctx.host_time(np.concatenate((calls, ids)))
        gain = ctx.host_gain(min(both, ctx.host_time(calls) + exposed), beside=exposed)
    return replace(gain, side="gpu" if 2 * ctx.per_step_ns(exposed) >= gain.ns else "host")


@rule(
    "copy-before-gemm",
    "A matrix multiply copies on the device first",
    remedy="a bias and a layout that the GEMM takes",
    meaning="The op that multiplies also launches a device-to-device copy: the bias is expanded into the "
    "output before an addmm without a fused epilogue, or an operand is made contiguous.",
    threshold="A DtoD memcpy launched by addmm, mm, bmm or another op that multiplies matrices.",
    advice="Use a bias of the GEMM's output type and a layout that the library takes as it is; or "
    "torch.compile.",
    bound="The time of these copies.",
)
def copy_before_gemm(ctx: Context) -> Iterator[Hit]:
    """DtoD copies whose innermost op is a GEMM."""
    copies = _of_steps(ctx, _copies(ctx, "c.direction = 'DtoD'"))
    owner = ctx.frame.launching_op(copies.ids)
    names = np.array([ctx.frame.text(int(one)) if one >= 0 else "" for one in owner], dtype=object)
    mine = copies.only(np.isin(names, GEMM_OPS))
    if len(mine.ids):
        ops = sorted(set(names) & set(GEMM_OPS))
        yield Hit(
            f"{len(mine.ids)} device-to-device copies by {', '.join(ops)}: {mine.size_text}, "
            f"{time_text(ctx.total(mine.ids))}",
            {"count": len(mine.ids), "bytes": mine.bytes, "total_ns": ctx.total(mine.ids)},
            slices=ctx.worst(mine.ids),
            names=ops,
            gain=ctx.gpu_gain(mine.ids, np.ones(len(mine.ids))),
        )


@rule(
    "copies-not-overlapped",
    "Copies and kernels take turns on one stream",
    experiments=("pinned-memory",),
    remedy="copy the next batch on a second stream",
    meaning="Copies between host and device run while no kernel does, and everything is on a single stream, "
    "so they cannot overlap.",
    threshold="All GPU work of a device is on one stream, and copies between host and device that steps "
    "launch and nothing covers take over 5 % of the time that the steps' work keeps it busy.",
    advice="Copy the next batch on a side stream from pinned memory while the current one computes.",
    bound="The time of copies that nothing covers, and at most the time of the other work, which they could "
    "run beside.",
    relies_on=("devices.busy_ns",),
)
def copies_not_overlapped(ctx: Context) -> Iterator[Hit]:
    """Exposed copy time of single-stream devices; only copies that steps launched count."""
    source = ctx.frame
    crossing = bus_copies(ctx).ids
    alone = together = 0
    rows: list[FindingRow] = []
    slices: list[int] = []
    saved: list[float] = []
    for row in ctx.devices:
        if row.streams != 1 or not row.compute_ns:
            continue
        ids = ctx.step_gpu[source.device_of(ctx.step_gpu) == row.device]
        copy = np.isin(ids, crossing)
        busy = union(source.ts[ids], source.end[ids]).total
        exposed = exposed_ns(ctx, ids[copy])
        if busy and exposed / busy > EXPOSED_SHARE:
            alone, together = alone + exposed, together + busy
            slices += [int(one) for one in ids[copy]]
            saved += [min(1.0, (busy - exposed) / exposed)] * int(copy.sum())
            rows.append(
                FindingRow(
                    ctx.labels.gpus[row.device],
                    int(copy.sum()),
                    exposed,
                    f"{percent_text(exposed / busy)} of its busy time",
                )
            )
    copied = np.array(slices, dtype=np.intp)
    if rows:
        yield Hit(
            f"{rows[0].name}{_others(rows)}: {time_text(alone)} of copies that nothing overlaps, "
            f"{percent_text(alone / together)} of the busy time, on the only stream",
            {
                "exposed_memcpy_ns": alone,
                "share": alone / together,
                "share_of": "busy time of the steps' work" if ctx.denominator.several else "busy time",
            },
            slices=ctx.worst(copied),
            gain=ctx.gpu_gain(copied, np.array(saved)),
            rows=rows if len(rows) > 1 else (),
            fix=None
            if ctx.program.torch
            else "Copy on a second stream from pinned memory while the first one computes.",
        )


def _others(rows: list[FindingRow]) -> str:
    return f" and {len(rows) - 1} more" if len(rows) > 1 else ""
