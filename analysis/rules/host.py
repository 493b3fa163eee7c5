"""Avoidable work of the host: loading data, compiling, look-ups, allocation, heuristics."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.host_causes import (
    allocation_slices,
    compile_slices,
    loader_slices,
    rows_by_name,
)
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_cost import WARNING_SHARE
from profrun.analysis.rules.step_text import span_text
from profrun.analysis.trace.frame import Index
from profrun.contract.units import bytes_text, counted, percent_text, rate_text, time_text

CHURN_PER_STEP = 1.0
NEARLY_FULL = 0.9
LOOKUP_GAP_NS = 5_000_000
"""Time from a look-up of compiled code to its run from which the compiler must have worked between them.
Usual are some ten microseconds."""
_REGION = re.compile(r"^Torch-Compiled Region: (\d+)/(\d+)")
_LOOKUP = "TorchDynamo Cache Lookup"


@rule(
    "dataloader-stall",
    "Steps wait for data",
    experiments=("loader-workers=4", "loader-workers=8", "loader-prefetch=8"),
    remedy="num_workers=4 or more, pin_memory=True",
    meaning="The main thread fetches the next batch while the GPU has nothing to do.",
    threshold="Fetching a batch (enumerate(DataLoader)...__next__) takes at least 5 % of the step, and the "
    "GPU is idle for at least as long.",
    advice="DataLoader(num_workers > 0, pin_memory=True, persistent_workers=True, prefetch_factor), or "
    "cheaper preprocessing.",
    bound="The time of the fetches, and at most the part of the step in which the GPU does not work.",
    relies_on=("steps.dur_ns",),
)
def dataloader_stall(ctx: Context) -> Iterator[Hit]:
    """Time in fetches of a batch."""
    ids = loader_slices(ctx)
    if not len(ids) or not ctx.steps:
        return
    time = ctx.host_time(ids)
    gain = ctx.host_gain(time)
    if gain.share < WARNING_SHARE:
        return
    idle = ctx.idle_inside(ids)
    workers = ctx.program.loader_workers
    waits = f"; the GPU waits for {time_text(idle)} of that" if ctx.waiting else ""
    none = "; the DataLoader has no worker processes" if workers is False else ""
    yield Hit(
        f"{time_text(ctx.per_step_ns(time))} {ctx.per} pass in fetching a batch, "
        f"{percent_text(gain.share)} of "
        f"{span_text(ctx)}{waits}{none}",
        {
            "dataloader_ns": time,
            "dataloader_ns_per_step": ctx.per_step_ns(time),
            "gpu_waits_ns_per_step": idle,
            "share": gain.share,
            "share_of": span_text(ctx),
            "workers": workers,
        },
        slices=ctx.worst(ids),
        gain=gain,
        idle_ns=idle,
        extent="the DataLoader has no workers" if workers is False else "",
        remedy="more num_workers, or a cheaper dataset" if workers else None,
        rows=rows_by_name(ctx, ids) if len(np.unique(ctx.frame.name[ids])) > 1 else (),
        fix="More workers (num_workers), a larger prefetch_factor, persistent_workers=True, or cheaper "
        "preprocessing: the present workers are too slow."
        if workers
        else None,
    )


@rule(
    "dynamo-lookup",
    "Compiled code spends its time in guards and look-ups",
    experiments=("compile=reduce-overhead",),
    remedy="compile larger regions, fewer graph breaks",
    meaning="Before each compiled region Dynamo checks guards and finds the compiled code; for small graphs "
    "that is a visible share of the step.",
    threshold="'TorchDynamo Cache Lookup' takes at least 5 % of the step, and the GPU is idle for at least "
    "as long.",
    advice="Compile larger regions (fewer graph breaks), mark dynamic dimensions, or use "
    "mode='reduce-overhead'.",
    bound="The time of the look-ups, and at most the part of the step in which the GPU does not work.",
    relies_on=("steps.dur_ns",),
)
def dynamo_lookup(ctx: Context) -> Iterator[Hit]:
    """Host time of look-ups inside steps."""
    ids = ctx.in_steps(ctx.named("op", lambda name: name.startswith(_LOOKUP)))
    if not len(ids):
        return
    gain = ctx.host_gain(ctx.total(ids))
    if gain.share >= WARNING_SHARE:
        yield Hit(
            f"{len(ids)} cache look-ups take {time_text(ctx.per_step_ns(ctx.total(ids)))} {ctx.per}",
            {
                "count": len(ids),
                "total_ns": ctx.total(ids),
                "share": gain.share,
                "share_of": span_text(ctx),
            },
            slices=ctx.worst(ids),
            gain=gain,
            idle_ns=ctx.idle_inside(ids),
        )


@rule(
    "recompilation",
    "The program compiles again inside the window",
    experiments=("compile-dynamic",),
    remedy="constant or dynamic shapes",
    meaning="The compiler itself works inside a step: a guard failed, usually for a changed shape or Python "
    "value, and the function is compiled once more.",
    threshold="Work of a compiler inside the steps: a range that torch.compile opens while it compiles "
    "('... (dynamo_timed)', 'entire_frame_compile'), or nvFuser's. Where no such range is recorded: over 5 "
    "ms between a 'TorchDynamo Cache Lookup' and the 'Torch-Compiled Region' that it is for. Compiled code "
    "that runs (CompiledFunction, CompiledFunctionBackward) and a later version of a region that runs (M > 0 "
    "in 'Torch-Compiled Region: N/M') do not count. Not for a run without steps: its first compilation is "
    "inside of it (see set-up).",
    advice="TORCH_LOGS=recompiles says which guard failed; torch.compile(dynamic=True), mark_dynamic, "
    "padding to a few shapes, or no Python value that changes in each step avoid it.",
    bound="The time of the compiler, and at most the part of the step in which the GPU does not work.",
)
def recompilation(ctx: Context) -> Iterator[Hit]:
    """Work of a compiler inside the steps."""
    if ctx.denominator.of == "run":
        return
    work = compile_slices(ctx)
    if len(work):
        yield _compiles(ctx, work)
        return
    regions, gaps = _late_regions(ctx)
    if len(regions):
        time = int(gaps.sum())
        names = sorted({ctx.frame.text(int(one)) for one in regions})
        yield Hit(
            f"{len(regions)} calls of compiled regions ({', '.join(names[:3])}) start long after the look-up "
            f"of their code: the compiler works for about {time_text(ctx.per_step_ns(time))} {ctx.per} "
            "between them (its own ranges are not recorded)",
            {"calls": len(regions), "total_ns": time},
            slices=ctx.worst(regions),
            names=names,
            gain=ctx.host_gain(time),
        )


def _compiles(ctx: Context, work: Index) -> Hit:
    source = ctx.frame
    outer = work[~source.inside(work)[work]]
    time = ctx.host_time(work)
    regions = ctx.in_steps(ctx.named("op", lambda name: _REGION.match(name) is not None))
    versions = sorted({source.text(int(one)) for one in regions})
    ran = f"; versions that ran: {', '.join(versions[:4])}" if versions else ""
    return Hit(
        f"the compiler works {time_text(ctx.per_step_ns(time))} {ctx.per} "
        f"({len(outer)} times{f' in {len(ctx.steps)} steps' if ctx.denominator.several else ''}){ran}",
        {"compilations": len(outer), "total_ns": time, "steps": len(ctx.steps)},
        slices=ctx.worst(outer),
        names=versions,
        gain=ctx.host_gain(time),
        idle_ns=ctx.idle_inside(work),
        extent=counted(len(outer), "compilation"),
        rows=rows_by_name(ctx, outer),
    )


def _late_regions(ctx: Context) -> tuple[Index, Index]:
    """Compiled regions that started over ``LOOKUP_GAP_NS`` after the look-up of their code, and that time."""
    source = ctx.frame
    regions = ctx.in_steps(ctx.named("op", lambda name: _REGION.match(name) is not None))
    found, gaps = [], []
    looks = ctx.named("op", lambda name: name.startswith(_LOOKUP))
    looks = looks[np.argsort(source.end[looks], kind="stable")]
    for track in np.unique(source.track[regions]):
        before = source.end[looks[source.track[looks] == track]]
        mine = regions[source.track[regions] == track]
        mine = mine[np.argsort(source.ts[mine], kind="stable")]
        place = np.searchsorted(before, source.ts[mine], side="right") - 1
        last = np.concatenate(([-1], place[:-1]))
        for one, at, earlier in zip(mine, place, last, strict=True):
            if at > earlier and source.ts[one] - before[at] > LOOKUP_GAP_NS:  # a look-up of its own
                found.append(int(one))
                gaps.append(int(source.ts[one] - before[at]))
    return np.array(found, dtype=np.intp), np.array(gaps, dtype=np.int64)


@rule(
    "allocator-churn",
    "Device memory is allocated or freed inside steps",
    experiments=("no-empty-cache", "expandable-segments"),
    remedy="constant shapes, no empty_cache()",
    meaning="cudaMalloc and cudaFree wait for the GPU; the framework's caching allocator should make them "
    "rare after the first steps.",
    threshold="At least one device or pinned allocation or free per step, on average. Not without steps: a "
    "program allocates at its start.",
    advice="Keep shapes constant, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, do not call "
    "empty_cache().",
    bound="The time of these calls, and at most the part of the step in which the GPU does not work.",
)
def allocator_churn(ctx: Context) -> Iterator[Hit]:
    """Allocation calls inside steps."""
    if not ctx.denominator.several:
        return
    ids = allocation_slices(ctx)
    rate = len(ids) / ctx.step_count
    if rate >= CHURN_PER_STEP:
        names = sorted({ctx.frame.text(int(one)) for one in ids})
        yield Hit(
            f"{rate_text(rate)} calls of {', '.join(names)} per step, "
            f"{time_text(ctx.total(ids) / ctx.step_count)} per step",
            {"calls_per_step": rate, "total_ns": ctx.total(ids)},
            slices=ctx.worst(ids),
            names=names,
            gain=ctx.host_gain(ctx.host_time(ids)),
            idle_ns=ctx.idle_inside(ids),
            extent=", ".join(names[:2]),
            rows=rows_by_name(ctx, ids) if len(names) > 1 else (),
            fix=None
            if ctx.program.torch
            else "Allocate before the loop and use the memory again, or take it from a pool "
            "(cudaMallocAsync, hipMallocAsync).",
        )


@rule(
    "occupancy-queries",
    "Libraries query occupancy before launching",
    experiments=("compile=reduce-overhead", "cuda-graphs"),
    remedy="CUDA graphs",
    meaning="A heuristic chooses kernels at every call (cuBLAS for GEMMs, Triton's or PyTorch's launchers); "
    "each query is host time in front of a launch.",
    threshold="At least one occupancy query (cudaOccupancyMaxActiveBlocksPerMultiprocessor or similar) per "
    "step.",
    advice="Harmless when the GPU is busy; when overhead-bound, CUDA graphs replay without queries.",
    bound="The time of the queries, and at most the part of the step in which the GPU does not work.",
)
def occupancy_queries(ctx: Context) -> Iterator[Hit]:
    """Occupancy queries inside steps, with the ops that made them."""
    ids = ctx.in_steps(ctx.named("api", lambda name: "Occupancy" in name))
    if not len(ids) or len(ids) / ctx.step_count < 1:
        return
    ops = ctx.frame.nearest("op")[ids]
    names = sorted({ctx.frame.text(int(one)) for one in ops if one >= 0})
    by = f", by {', '.join(names[:4])}" if names else ""
    yield Hit(
        f"{rate_text(len(ids) / ctx.step_count)} occupancy queries {ctx.rate}{by}, "
        f"{time_text(ctx.total(ids) / ctx.step_count)} {ctx.per}",
        {"calls_per_step": len(ids) / ctx.step_count, "total_ns": ctx.total(ids)},
        slices=ctx.worst(ids),
        names=names,
        gain=ctx.host_gain(ctx.host_time(ids)),
        idle_ns=ctx.idle_inside(ids),
    )


@rule(
    "memory-near-full",
    "Device memory is nearly full",
    severity="info",
    meaning="The allocator will start to free and retry, or fail, at a slightly larger size.",
    threshold="The highest allocated total is over 90 % of the device's memory (the TensorBoard plugin's "
    "limit).",
    advice="Activation checkpointing, half precision, smaller batches, or sharding of optimizer state.",
)
def memory_near_full(ctx: Context) -> Iterator[Hit]:
    """Peak of the allocator against the device's memory."""
    from profrun.analysis.trace.memory import memory

    full = [
        (ctx.labels.gpus[row.device], row)
        for row in memory(ctx.trace)
        if row.device is not None and row.share is not None and row.share > NEARLY_FULL
    ]
    if full:
        gpu, worst = max(full, key=lambda one: one[1].share or 0.0)
        yield Hit(
            f"{gpu} holds {bytes_text(worst.peak_bytes)} at its peak, {percent_text(worst.share)} of it",
            {
                "peak_bytes": worst.peak_bytes,
                "share": worst.share,
                "share_of": worst.share_of,
                "at_ns": worst.at_ns,
            },
            names=worst.ops,
            rows=[
                FindingRow(label, detail=f"{bytes_text(row.peak_bytes)} at its peak") for label, row in full
            ]
            if len(full) > 1
            else (),
        )
