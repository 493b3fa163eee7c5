"""Copies: across the bus inside steps, from pageable memory, before a GEMM, and not overlapped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from profrun.analysis.rules import Context, Hit, ms, percent, rule
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.intervals import merge, subtract, union

EXPOSED_SHARE = 0.05
GEMM_OPS = (
    "aten::addmm",
    "aten::mm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::_addmm_activation",
    "aten::_scaled_mm",
)


def _copies(ctx: Context, where: str) -> tuple[Index, Any, Any]:
    """(ids, bytes, direction) of memcpys matching SQL over the copies table."""
    got = ctx.trace.tables.execute(
        "SELECT c.slice, coalesce(c.bytes, -1)::BIGINT AS bytes, c.direction FROM copies c JOIN slices s "
        "USING (slice) "
        f"WHERE s.kind = 'memcpy' AND ({where}) ORDER BY c.slice"
    ).fetchnumpy()
    return (
        np.asarray(got["slice"], dtype=np.intp),
        np.asarray(got["bytes"]),
        np.asarray(got["direction"], dtype=object),
    )


def _bytes(size: Any) -> int | None:
    """Sum of bytes, None when any copy's size was not recorded (-1)."""
    return None if not len(size) or (size < 0).any() else int(size.sum())


def _said(size: Any) -> str:
    total = _bytes(size)
    return "of unknown size" if total is None else f"of {total} bytes in all"


def _of_steps(ctx: Context, ids: Index) -> Any:
    """Mask: launched by a step (all, when there are no steps)."""
    if not len(ctx.index.slices):
        return np.ones(len(ids), dtype=bool)
    return ctx.index.of_gpu[ids] >= 0


@rule(
    "host-device-copies",
    "Data crosses the bus inside steps",
    severity="info",
    meaning="Each step copies between host and device; input batches are expected, anything else is worth a "
    "look.",
    threshold="At least one HtoD or DtoH copy a step. A warning when they take over 5 % of the time of "
    "the steps.",
    advice="Create tensors on the device, keep results there, prefetch the next batch on another stream.",
    relies_on=("steps.kernel_ns",),
)
def host_device_copies(ctx: Context) -> Iterator[Hit]:
    """Copies by direction, launched by steps."""
    if not ctx.steps:
        return
    ids, size, direction = _copies(ctx, "c.direction IN ('HtoD', 'DtoH')")
    keep = _of_steps(ctx, ids)
    for way in sorted(set(direction[keep])):
        mine = keep & (direction == way)
        count = int(mine.sum())
        if count < ctx.step_count:
            continue
        time = ctx.total(ids[mine])
        yield Hit(
            f"{count / ctx.step_count:.1f} {way} copies a step {_said(size[mine])}, "
            f"{ms(time / ctx.step_count)} a step",
            {"count": count, "bytes": _bytes(size[mine]), "total_ns": time, "direction": str(way)},
            slices=ctx.worst(ids[mine]),
            severity="warning" if time > EXPOSED_SHARE * ctx.window_ns else None,
        )  # fmt: skip


@rule(
    "pageable-copies",
    "Copies go through pageable memory",
    meaning="The driver stages such a copy through a pinned buffer of its own; it is slower and cannot "
    "overlap.",
    threshold="A copy between the device and pageable host memory of at least 64 KiB, or at least one a "
    "step.",
    advice="DataLoader(pin_memory=True), tensor.pin_memory(), and .to(device, non_blocking=True).",
)
def pageable_copies(ctx: Context) -> Iterator[Hit]:
    """Copies whose host side is pageable."""
    ids, size, direction = _copies(ctx, "c.src_kind = 'pageable' OR c.dst_kind = 'pageable'")
    keep = _of_steps(ctx, ids)
    ids, size, direction = ids[keep], size[keep], direction[keep]
    if not len(ids) or (len(ids) < ctx.step_count and size.max() < 65536):
        return
    time = ctx.total(ids)
    ways = ", ".join(f"{count} {way}" for way, count in sorted(Counter(direction).items()))
    yield Hit(
        f"{ways} copies {_said(size)} use pageable memory, {ms(time)} in all",
        {"count": len(ids), "bytes": _bytes(size), "total_ns": time,
         "gb_s": float(size.sum() / time) if time and _bytes(size) is not None else None},
        slices=ctx.worst(ids), severity="info" if 0 <= size.sum() < 65536 else None,
    )  # fmt: skip


@rule(
    "copy-before-gemm",
    "A matrix multiply copies on the device first",
    meaning="The op that multiplies also launches a device-to-device copy: the bias is expanded into the "
    "output before "
    "an addmm without a fused epilogue, or an operand is made contiguous.",
    threshold="A DtoD memcpy launched by addmm, mm, bmm or a kin of theirs.",
    advice="Use a bias of the GEMM's output type and a layout that the library takes as it is; or "
    "torch.compile.",
)
def copy_before_gemm(ctx: Context) -> Iterator[Hit]:
    """DtoD copies whose innermost op is a GEMM."""
    ids, size, _ = _copies(ctx, "c.direction = 'DtoD'")
    if not len(ids):
        return
    call = ctx.frame.launch[ids]
    owner = np.where(call >= 0, ctx.frame.op_of(call), -1)
    names = np.array([ctx.frame.text(int(one)) if one >= 0 else "" for one in owner], dtype=object)
    mine = np.isin(names, GEMM_OPS)
    if mine.any():
        ops = sorted(set(names[mine]))
        yield Hit(
            f"{int(mine.sum())} device-to-device copies by {', '.join(ops)}: {_said(size[mine])}, "
            f"{ms(ctx.total(ids[mine]))}",
            {"count": int(mine.sum()), "bytes": _bytes(size[mine]), "total_ns": ctx.total(ids[mine])},
            slices=ctx.worst(ids[mine]), names=ops,
        )  # fmt: skip


@rule(
    "copies-not-overlapped",
    "Copies and kernels take turns on one stream",
    meaning="Copies run while no kernel does, and everything is on a single stream, so they cannot overlap.",
    threshold="All GPU work of a device is on one stream, and copies launched by steps that nothing covers "
    "take over 5 % of the time that the steps' work keeps it busy. For information when that is under 5 "
    "% of the "
    "steps.",
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
                f"device {row.device}: {ms(exposed)} of copies nothing overlaps, "
                f"{percent(exposed / busy)} of its busy time, on the only stream",
                {"exposed_memcpy_ns": exposed, "share": exposed / busy,
                 "share_of": "busy time of the steps' work" if ctx.steps else "busy time"},
                slices=ctx.worst(ids[copy]), severity=ctx.weight(exposed),
            )  # fmt: skip
