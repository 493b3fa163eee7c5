"""Avoidable work of the host: cold starts, look-ups, allocation, loading, heuristics."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.trace.steps import is_dataloader
from profrun.contract.units import percent_text, time_text

COLD_FACTOR = 1.5
DEAD_SHARE = 0.25
DEAD_NS = 50_000
LOADER_SHARE = 0.05
LOOKUP_SHARE = 0.05
CHURN_PER_STEP = 1.0
MALLOC = re.compile(
    r"^(?:cuda|hip)(?:Malloc|Free|HostAlloc|MallocHost|FreeHost|MallocManaged)(?:_v\d+)?$|^cuMemAlloc|^cuMemFree"
)


@rule(
    "cold-start",
    "The first step is slower than the others",
    severity="info",
    meaning="One-time work (module loading, autotuning, allocator growth, caches) is in the window; means "
    "over steps are too high.",
    threshold="At least 3 steps, and the first takes over 1.5 times the median of the others.",
    advice="Warm up for more steps before the window (schedule.warmup), or leave the first step out.",
    relies_on=("steps.dur_ns",),
)
def cold_start(ctx: Context) -> Iterator[Hit]:
    """First step against the median of the rest, by rank."""
    for process in sorted({step.process for step in ctx.steps}):
        mine = [step for step in ctx.steps if step.process == process]
        if len(mine) < 3:
            continue
        rest = float(np.median([step.dur_ns for step in mine[1:]]))
        if rest > 0 and mine[0].dur_ns > COLD_FACTOR * rest:
            yield Hit(
                f"step {mine[0].step} takes {time_text(mine[0].dur_ns)}, the others {time_text(rest)} "
                "(median)",
                {"first_ns": mine[0].dur_ns, "median_of_others_ns": rest, "ratio": mine[0].dur_ns / rest},
                slices=[mine[0].slice],
            )


@rule(
    "dead-window",
    "Nothing happens at the start of the window",
    severity="info",
    meaning="Between the start of the first step and its first op nothing is recorded: the profiler starts, "
    "or code without records runs.",
    threshold="Over 25 % of the first step and over 50 us pass before its first op or runtime call.",
    advice="Do not read this gap as the program's; leave the first step out, or add ranges to see what runs "
    "there.",
)
def dead_window(ctx: Context) -> Iterator[Hit]:
    """Gap from the first step's start to the first op or call inside it."""
    source = ctx.frame
    work = source.of("op", "api")
    for process in sorted({step.process for step in ctx.steps}):
        first = next(step for step in ctx.steps if step.process == process)
        mine = work[source.track_process[source.track[work]] == process]
        starts = source.ts[mine]
        inside = starts[(starts >= first.ts_ns) & (starts < first.ts_ns + first.dur_ns)]
        if not len(inside):
            continue
        gap = int(inside.min()) - first.ts_ns
        if gap > DEAD_NS and gap > DEAD_SHARE * first.dur_ns:
            yield Hit(
                f"{time_text(gap)} of step {first.step} ({percent_text(gap / first.dur_ns)}) pass before its "
                "first op",
                {"gap_ns": gap, "share": gap / first.dur_ns, "share_of": "the first step"},
                slices=[first.slice],
            )


@rule(
    "dataloader-stall",
    "Steps wait for data",
    meaning="The main thread fetches the next batch while the GPU has nothing to do.",
    threshold="Fetching a batch (enumerate(DataLoader)...__next__), where neither the GPU nor a runtime call "
    "is active, takes at least 5 % of the steps (the TensorBoard plugin's limit).",
    advice="DataLoader(num_workers > 0, pin_memory=True, persistent_workers=True, prefetch_factor), or "
    "cheaper preprocessing.",
    relies_on=("steps.dur_ns",),
)
def dataloader_stall(ctx: Context) -> Iterator[Hit]:
    """Exclusive data-loading time of the steps' wall clock."""
    span = sum(step.span_ns for step in ctx.steps)
    time = sum(step.wall_ns["dataloader"] for step in ctx.steps)
    if span and time / span >= LOADER_SHARE:
        ids = ctx.in_steps(np.concatenate([ctx.named(kind, is_dataloader) for kind in ("op", "range")]))
        yield Hit(
            f"{percent_text(time / span)} of the steps wait for a batch ({time_text(time / ctx.step_count)} "
            "per step)",
            {"dataloader_ns": time, "share": time / span, "share_of": "time of steps"},
            slices=ctx.worst(ids),
        )


@rule(
    "dynamo-lookup",
    "Compiled code spends its time in guards and look-ups",
    meaning="Before each compiled region Dynamo checks guards and finds the compiled code; for small graphs "
    "that is a visible share of the step.",
    threshold="'TorchDynamo Cache Lookup' takes at least 5 % of the host time of the steps.",
    advice="Compile larger regions (fewer graph breaks), mark dynamic dimensions, or use "
    "mode='reduce-overhead'.",
    relies_on=("steps.dur_ns",),
)
def dynamo_lookup(ctx: Context) -> Iterator[Hit]:
    """Host time of look-ups inside steps."""
    ids = ctx.in_steps(ctx.named("op", lambda name: name.startswith("TorchDynamo Cache Lookup")))
    whole = ctx.step_ns or ctx.window_ns
    if len(ids) and whole and ctx.total(ids) / whole >= LOOKUP_SHARE:
        share = ctx.total(ids) / whole
        yield Hit(
            f"{len(ids)} cache look-ups take {time_text(ctx.total(ids))}, {percent_text(share)} of the steps",
            {"count": len(ids), "total_ns": ctx.total(ids), "share": share, "share_of": "host time of steps"},
            slices=ctx.worst(ids),
        )


_REGION = re.compile(r"^Torch-Compiled Region: (\d+)/(\d+)")
_COMPILE = re.compile(
    r"_compile\.compile_inner|^compile_fx|^OutputGraph\.call_user_compiler|^dynamo_timed|^Compile"
)


@rule(
    "recompilation",
    "The program compiles again inside the window",
    meaning="A compiled function ran as its second or later version, or the compiler itself ran inside a "
    "step: a guard failed, usually for a changed shape or Python value.",
    threshold="A 'Torch-Compiled Region: N/M' with M > 0, or a compiler range inside the steps.",
    advice="TORCH_LOGS=recompiles says which guard failed; mark_dynamic or torch._dynamo.config settings "
    "avoid it.",
)
def recompilation(ctx: Context) -> Iterator[Hit]:
    """Version numbers of compiled regions, and compiler work."""

    def later(name: str) -> bool:
        hit = _REGION.match(name)
        return hit is not None and int(hit[2]) > 0

    again = ctx.in_steps(ctx.named("op", later))
    if len(again):
        names = sorted({ctx.frame.text(int(one)) for one in again})
        yield Hit(
            f"{len(again)} calls of recompiled regions ({', '.join(names[:3])})",
            {"calls": len(again)},
            slices=ctx.worst(again),
            severity="info",
            names=names,
        )
    work = ctx.in_steps(
        np.concatenate([ctx.named(kind, lambda n: bool(_COMPILE.search(n))) for kind in ("op", "range")])
    )
    if len(work):
        yield Hit(
            f"the compiler runs inside the steps: {len(work)} ranges, the longest "
            f"{time_text(float(ctx.frame.durs(work).max()))}",
            {"ranges": len(work), "longest_ns": int(ctx.frame.durs(work).max())},
            slices=ctx.worst(work),
        )


@rule(
    "allocator-churn",
    "Device memory is allocated or freed inside steps",
    meaning="cudaMalloc and cudaFree wait for the GPU; the framework's caching allocator should make them "
    "rare after the first steps.",
    threshold="At least one device or pinned allocation or free per step, on average.",
    advice="Keep shapes constant, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, do not call "
    "empty_cache().",
)
def allocator_churn(ctx: Context) -> Iterator[Hit]:
    """Allocation calls inside steps."""
    if not ctx.steps:
        return
    ids = ctx.in_steps(ctx.named("api", lambda name: bool(MALLOC.search(name))))
    rate = len(ids) / ctx.step_count
    if rate >= CHURN_PER_STEP:
        names = sorted({ctx.frame.text(int(one)) for one in ids})
        yield Hit(
            f"{rate:.1f} calls of {', '.join(names)} per step, {time_text(ctx.total(ids) / ctx.step_count)} "
            "per step",
            {"calls_per_step": rate, "total_ns": ctx.total(ids)},
            slices=ctx.worst(ids),
            names=names,
        )


@rule(
    "occupancy-queries",
    "Libraries query occupancy before launching",
    severity="info",
    meaning="A heuristic chooses kernels at every call (cuBLAS for GEMMs, Triton's or PyTorch's launchers); "
    "each query is host time in front of a launch.",
    threshold="At least one occupancy query (cudaOccupancyMaxActiveBlocksPerMultiprocessor or similar) per "
    "step.",
    advice="Harmless when the GPU is busy; when overhead-bound, CUDA graphs replay without queries.",
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
        f"{len(ids) / ctx.step_count:.1f} occupancy queries {ctx.per_step}{by}, "
        f"{time_text(ctx.total(ids) / ctx.step_count)} {ctx.per_step}",
        {"calls_per_step": len(ids) / ctx.step_count, "total_ns": ctx.total(ids)},
        slices=ctx.worst(ids),
        names=names,
    )


@rule(
    "memory-near-full",
    "Device memory is nearly full",
    meaning="The allocator will start to free and retry, or fail, at a slightly larger size.",
    threshold="The highest allocated total is over 90 % of the device's memory (the TensorBoard plugin's "
    "limit).",
    advice="Activation checkpointing, half precision, smaller batches, or sharding of optimizer state.",
)
def memory_near_full(ctx: Context) -> Iterator[Hit]:
    """Peak of the allocator against the device's memory."""
    from profrun.analysis.trace.memory import memory

    for row in memory(ctx.trace):
        if row.device is not None and row.share is not None and row.share > 0.9:
            yield Hit(
                f"{ctx.labels.gpus[row.device]} holds {row.peak_bytes / 2**30:.1f} GiB at its peak, "
                f"{percent_text(row.share)} of it",
                {
                    "peak_bytes": row.peak_bytes,
                    "share": row.share,
                    "share_of": row.share_of,
                    "at_ns": row.at_ns,
                },
                names=row.ops,
            )
