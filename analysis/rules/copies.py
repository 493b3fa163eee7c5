"""Copies: across the bus inside steps, from pageable memory, before a GEMM, and not overlapped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Index, Mask
from profrun.analysis.trace.intervals import merge, subtract, union
from profrun.contract.units import bytes_text, percent_text, time_text

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
        return "of unknown size" if self.bytes is None else f"of {bytes_text(self.bytes)} in all"


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
    return copies.only(ctx.index.of_gpu[copies.ids] >= 0) if len(ctx.index.slices) else copies


@rule(
    "host-device-copies",
    "Data crosses the bus inside steps",
    severity="info",
    meaning="Each step copies between host and device; input batches are expected, anything else is worth a "
    "look.",
    threshold="At least one HtoD or DtoH copy per step. A warning when they take over 5 % of the time of "
    "the steps.",
    advice="Create tensors on the device, keep results there, prefetch the next batch on another stream.",
    relies_on=("steps.kernel_ns",),
)
def host_device_copies(ctx: Context) -> Iterator[Hit]:
    """Copies by direction, launched by steps."""
    if not ctx.steps:
        return
    both = _of_steps(ctx, _copies(ctx, "c.direction IN ('HtoD', 'DtoH')"))
    for way in sorted(set(both.direction)):
        copies = both.only(both.direction == way)
        count = len(copies.ids)
        if count < ctx.step_count:
            continue
        time = ctx.total(copies.ids)
        yield Hit(
            f"{count / ctx.step_count:.1f} {way} copies per step {copies.size_text}, "
            f"{time_text(time / ctx.step_count)} per step",
            {"count": count, "bytes": copies.bytes, "total_ns": time, "direction": str(way)},
            slices=ctx.worst(copies.ids),
            severity="warning" if time > EXPOSED_SHARE * ctx.window_ns else None,
        )


@rule(
    "pageable-copies",
    "Copies go through pageable memory",
    meaning="The driver stages such a copy through a pinned buffer of its own; it is slower and cannot "
    "overlap.",
    threshold="A copy between the device and pageable host memory of at least 64 KiB, or at least one per "
    "step.",
    advice="DataLoader(pin_memory=True), tensor.pin_memory(), and .to(device, non_blocking=True).",
)
def pageable_copies(ctx: Context) -> Iterator[Hit]:
    """Copies whose host side is pageable."""
    copies = _of_steps(ctx, _copies(ctx, "c.src_kind = 'pageable' OR c.dst_kind = 'pageable'"))
    count, size = len(copies.ids), copies.bytes
    if not count or (count < ctx.step_count and copies.size.max() < LARGE):
        return
    time = ctx.total(copies.ids)
    ways = ", ".join(f"{number} {way}" for way, number in sorted(Counter(copies.direction).items()))
    yield Hit(
        f"{ways} copies {copies.size_text} use pageable memory, {time_text(time)} in all",
        {
            "count": count,
            "bytes": size,
            "total_ns": time,
            "gb_s": size / time if time and size is not None else None,
        },
        slices=ctx.worst(copies.ids),
        severity="info" if 0 <= copies.size.sum() < LARGE else None,
    )


@rule(
    "copy-before-gemm",
    "A matrix multiply copies on the device first",
    meaning="The op that multiplies also launches a device-to-device copy: the bias is expanded into the "
    "output before an addmm without a fused epilogue, or an operand is made contiguous.",
    threshold="A DtoD memcpy launched by addmm, mm, bmm or another op that multiplies matrices.",
    advice="Use a bias of the GEMM's output type and a layout that the library takes as it is; or "
    "torch.compile.",
)
def copy_before_gemm(ctx: Context) -> Iterator[Hit]:
    """DtoD copies whose innermost op is a GEMM."""
    copies = _copies(ctx, "c.direction = 'DtoD'")
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
        )


@rule(
    "copies-not-overlapped",
    "Copies and kernels take turns on one stream",
    meaning="Copies run while no kernel does, and everything is on a single stream, so they cannot overlap.",
    threshold="All GPU work of a device is on one stream, and copies launched by steps that nothing covers "
    "take over 5 % of the time that the steps' work keeps it busy. For information when that is under 5 % of "
    "the steps.",
    advice="Copy the next batch on a side stream from pinned memory while the current one computes.",
    relies_on=("devices.busy_ns",),
)
def copies_not_overlapped(ctx: Context) -> Iterator[Hit]:
    """Exposed copy time of single-stream devices, of the steps' own copies: set-up is not their business."""
    source = ctx.frame
    for row in ctx.devices:
        if row.streams != 1 or not row.compute_ns:
            continue
        ids = ctx.step_gpu[source.device_of(ctx.step_gpu) == row.device]
        copy = source.is_kind(ids, "memcpy")
        rest = union(source.ts[ids[~copy]], source.end[ids[~copy]])
        moved = union(source.ts[ids[copy]], source.end[ids[copy]])
        exposed = subtract(moved, rest).total
        busy = merge(moved, rest).total
        if busy and exposed / busy > EXPOSED_SHARE:
            yield Hit(
                f"{ctx.labels.gpus[row.device]}: {time_text(exposed)} of copies nothing overlaps, "
                f"{percent_text(exposed / busy)} of its busy time, on the only stream",
                {
                    "exposed_memcpy_ns": exposed,
                    "share": exposed / busy,
                    "share_of": "busy time of the steps' work" if ctx.steps else "busy time",
                },
                slices=ctx.worst(ids[copy]),
                severity=ctx.weight(exposed),
            )
