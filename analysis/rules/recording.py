"""What the recording itself did to the numbers: profiler work, blocking launches, hidden graphs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.judged_steps import LeftOut
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_cost import UnprofiledStep, usable
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.intervals import covered, union
from profrun.analysis.trace.runtime_calls import is_graph_launch, is_launch
from profrun.analysis.trace.steps import step_of_host
from profrun.contract.units import counted, percent_text, time_range_text, time_text

OVERHEAD_SHARE = 0.05
SLOWER = 1.1
BUFFER_NS = 100_000
LAUNCH_FACTOR = 10
LAUNCH_GAP_NS = 200_000
MOST_NAMED = 3
"""More steps than these are counted, not named."""
STARVED = 0.5
"""Part of a long launch call in which the GPU must have run dry, or its queue may have been full."""


@rule(
    "profiler-overhead",
    "The profiler takes a visible part of the time",
    severity="info",
    meaning="The profiler does work of its own, and makes each op and each launch longer: host times of "
    "this recording are too long. Shares are of the step time without a profiler where that is known.",
    threshold="Overhead records cover over 5 % of the host time of the steps, or a step takes over 1.1 "
    "times as long as in the trials of the same variant without a profiler.",
    advice="Record less (no stacks, no shapes, no memory), and trust the trials without a profiler for "
    "times.",
)
def profiler_overhead(ctx: Context) -> Iterator[Hit]:
    """Union of overhead slices inside the steps, and the step time beside the unprofiled one."""
    ids = ctx.frame.of("overhead")
    if not ctx.steps:
        return
    inside = 0
    for process, (starts, ends) in ctx.judged.host.items():
        mine = ids[ctx.frame.process_of(ids) == process]
        inside += int(covered(union(ctx.frame.ts[mine], ctx.frame.end[mine]), starts, ends).sum())
    share = inside / ctx.step_ns if ctx.step_ns else 0.0
    told = []
    known = ctx.cost.unprofiled
    slower = ctx.cost.recorded_ns / known.ns if known is not None and known.ns else 0.0
    if known is not None and slower > SLOWER:
        told.append(
            f"{ctx.denominator.one} takes {time_text(ctx.cost.recorded_ns)} with the profiler and "
            f"{time_text(known.ns)} without it"
        )
    if share > OVERHEAD_SHARE:
        told.append(
            f"the profiler's own records cover {percent_text(share)} of {ctx.denominator.every} "
            f"({time_text(inside)})"
        )
    if told:
        yield Hit(
            "; ".join(told),
            {
                "overhead_ns": inside,
                "overhead_share": share,
                "overhead_of": f"host time of {ctx.denominator.every}",
                "profiled_step_ns": ctx.cost.recorded_ns,
                "unprofiled_step_ns": known.ns if known is not None else None,
            },
            slices=ctx.worst(ids),
        )


@rule(
    "slower-twin",
    "The trials without a profiler were slower than this recording",
    severity="info",
    meaning="The trials without a profiler ran under other conditions: a busy machine, cold caches, other "
    "clocks. So their step time is not that of this recording, and shares are of the recorded step. A run "
    "without steps is also shorter here because the start of the profiler does a part of its set-up.",
    threshold="The step time of the trials of the same variant without a profiler is over 1.25 times the "
    "recorded one.",
    advice="Repeat the run on a quiet machine, with more repeats.",
)
def slower_twin(ctx: Context) -> Iterator[Hit]:
    """A step time without a profiler that cannot be this recording's."""
    twin, recorded = ctx.unprofiled, ctx.cost.recorded_ns
    if twin is None or not ctx.steps or usable(twin, recorded):
        return
    yield Hit(
        f"{ctx.denominator.one} took {time_text(twin.ns)} without a profiler ({_range_of(ctx, twin)}), and "
        f"takes {time_text(recorded)} here",
        {
            "unprofiled_step_ns": twin.ns,
            "recorded_step_ns": recorded,
            "unprofiled_trials": twin.trials,
        },
    )


def _range_of(ctx: Context, twin: UnprofiledStep) -> str:
    """The range of a step time, and of what."""
    ends = time_range_text(twin.low_ns, twin.high_ns)
    if twin.trials > 1:
        return f"{'medians of ' if ctx.denominator.several else ''}{twin.trials} trials: {ends}"
    if not ctx.denominator.several:
        return "1 trial"
    return f"half of the {counted(twin.steps, 'step')} of one trial: {ends}"


@rule(
    "buffer-request",
    "A launch waited for the profiler",
    severity="info",
    meaning="A long launch call or gap comes from the profiler asking for a buffer ('Activity Buffer "
    "Request') or from a module being loaded lazily at its first launch, not from the program.",
    threshold="An overhead record named 'Buffer Request', 'Buffer Flush' or 'Lazy Function Loading' of over "
    "100 us in a recorded step; or, without such records, a launch call of over 200 us that is over 10 times "
    "the median launch, during over half of which the GPU has nothing to run (else its queue may be full).",
    advice="Leave this step out when you read times; warm up for more steps.",
)
def buffer_request(ctx: Context) -> Iterator[Hit]:
    """Overhead slices, else outlying launch calls, of all recorded steps: the first one, too."""
    words = ("Buffer Request", "Buffer Flush", "Lazy Function", "Runtime Triggered Module")
    ids = _recorded(ctx, ctx.named("overhead", lambda name: any(word in name for word in words)))
    ids = ids[ctx.frame.durs(ids) > BUFFER_NS]
    if len(ids):
        names = sorted({ctx.frame.text(int(one)) for one in ids})
        yield Hit(
            f"{counted(len(ids), 'time')} {' and '.join(names)} inside {_steps_of(ctx, ids)}, "
            f"{time_text(ctx.total(ids))} in all{_left_out_of(ctx, ids)}",
            {"count": len(ids), "total_ns": ctx.total(ids), "steps": _step_numbers(ctx, ids)},
            slices=ctx.worst(ids),
            names=names,
            idle_ns=ctx.idle_inside(ctx.in_steps(ids)),
        )
        return
    calls = _recorded(ctx, ctx.named("api", lambda name: is_launch(name) and not is_graph_launch(name)))
    if len(calls) < 10 or ctx.blocking:
        return
    dur = ctx.frame.durs(calls)
    limit = max(LAUNCH_GAP_NS, LAUNCH_FACTOR * float(np.median(dur)))
    long = _starving(ctx, calls[dur > limit])
    if len(long):
        yield Hit(
            f"{len(long)} launch {'call takes' if len(long) == 1 else 'calls take'} over "
            f"{time_text(limit)} inside {_steps_of(ctx, long)} (median {time_text(float(np.median(dur)))}) "
            "while the GPU has nothing to run: a buffer request of the profiler, or a lazily loaded module"
            f"{_left_out_of(ctx, long)}",
            {
                "count": len(long),
                "total_ns": ctx.total(long),
                "median_ns": float(np.median(dur)),
                "steps": _step_numbers(ctx, long),
            },
            slices=ctx.worst(long),
            idle_ns=ctx.idle_inside(ctx.in_steps(long)),
        )


def _recorded(ctx: Context, ids: Index) -> Index:
    """Those of the host slices that start inside a recorded step, judged or not; all where nothing is a step.

    What the profiler did is worth telling also of a step that no share holds.
    """
    if not len(ctx.index.slices):
        return ids
    return np.asarray(ids[step_of_host(ctx.frame, ctx.index, ids) >= 0])


def _step_numbers(ctx: Context, ids: Index) -> list[int]:
    """Numbers of the recorded steps in which host slices start, each once; empty where nothing is a step."""
    if not ctx.denominator.several:
        return []
    step = step_of_host(ctx.frame, ctx.index, ids)
    return [int(number) for number in np.unique(ctx.index.numbers[step[step >= 0]])]


def _steps_of(ctx: Context, ids: Index) -> str:
    """The recorded steps in which host slices start: 'step 0', 'steps 0 and 3', '7 steps', 'the run'."""
    numbers = _step_numbers(ctx, ids)
    if not numbers:
        return ctx.denominator.every
    return f"step {numbers[0]}" if len(numbers) == 1 else _steps_text(numbers)


def _steps_text(numbers: list[int]) -> str:
    if len(numbers) > MOST_NAMED:
        return f"{len(numbers)} steps"
    first = ", ".join(str(one) for one in numbers[:-1])
    return f"steps {first} and {numbers[-1]}"


def _left_out_of(ctx: Context, ids: Index) -> str:
    """That no share holds the step of some of the slices; empty where all of their steps are judged."""
    numbers = _step_numbers(ctx, np.setdiff1d(ids, ctx.in_steps(ids)))
    if not numbers:
        return ""
    named = f"step {numbers[0]} is" if len(numbers) == 1 else f"{_steps_text(numbers)} are"
    return f"; {named} left out of all shares"


def _starving(ctx: Context, calls: Index) -> Index:
    """Those of the calls during most of which no GPU of their process has anything to run."""
    source = ctx.frame
    owner = source.process_of(calls)
    keep = np.zeros(len(calls), dtype=bool)
    for process in np.unique(owner):
        mine = owner == process
        gpu = source.gpu_by_process[process]
        busy = covered(
            union(source.ts[gpu], source.end[gpu]), source.ts[calls[mine]], source.end[calls[mine]]
        )
        keep[mine] = busy < (1 - STARVED) * source.durs(calls[mine])
    return np.asarray(calls[keep])


@rule(
    "launch-blocking",
    "Launches were blocking",
    severity="info",
    meaning="Every launch waited for its kernel (CUDA_LAUNCH_BLOCKING=1, HIP_LAUNCH_BLOCKING=1 or "
    "AMD_SERIALIZE_KERNEL): host and GPU never overlap, so times of ops are true latencies and utilization "
    "is not the program's.",
    threshold="meta.launch_blocking is true, or it is not stated and at least 90 % of 5 or more launch "
    "calls cover their kernel: the kernel starts after the call began, and the call returns at most 100 us "
    "after the kernel's end. These kernels must also have 90 % of the kernel time, and longer kernels must "
    "have longer calls.",
    advice="Use this recording to see which op a kernel's time belongs to; read step times from a "
    "recording without blocking launches.",
)
def launch_blocking(ctx: Context) -> Iterator[Hit]:
    """The setting where it is known, else the timing."""
    waits, stated = ctx.launch_waits, ctx.trace.meta.get("launch_blocking")
    if not ctx.blocking:
        return
    how = "the recording says so" if stated else "no setting is recorded"
    seen = ""
    if waits is not None:
        seen = f"{percent_text(waits.share)} of the launch calls wait until their kernel has ended; "
    yield Hit(
        f"launches were blocking: {seen}{how}",
        {
            "waiting_share": waits.share if waits else None,
            "waiting_of": "launches",
            "kernel_time_share": waits.time_share if waits else None,
            "stated": stated,
        },
    )


@rule(
    "graph-kernels-hidden",
    "Work inside graphs was not recorded",
    severity="critical",
    meaning="Graph launches show no kernel: the GPU looks idle while it is not, and every GPU number is "
    "wrong.",
    threshold="At least one graph launch, and none has a GPU slice.",
    advice="Record with `--cuda-graph-trace=node` where the profiler has this option; update torch on ROCm "
    "7.2.0 and 7.2.1 (kernels of HIP graphs were lost).",
)
def graph_kernels_hidden(ctx: Context) -> Iterator[Hit]:
    """Graph launches without children."""
    calls = ctx.named("api", is_graph_launch)
    if not len(calls):
        return
    made = np.isin(calls, ctx.frame.launch[ctx.frame.launched])
    if not made.any():
        yield Hit(
            f"{len(calls)} graph launches, not one kernel of theirs",
            {"calls": len(calls)},
            slices=ctx.worst(calls),
        )


@rule(
    "cold-start",
    "The first step is slower than the others",
    severity="info",
    meaning="One-time work is in the window: the profiler's own start, modules that are loaded, autotuning, "
    "growth of caches. The other findings leave this step out.",
    threshold="At least 3 steps, and the first takes over 1.5 times the median of the others.",
    advice="Warm up for more steps before the window (schedule.warmup), or leave the first step out.",
    relies_on=("steps.dur_ns",),
)
def cold_start(ctx: Context) -> Iterator[Hit]:
    """First step against the median of the rest, by rank."""
    found = [one for one in ctx.judged.left_out if one.why == "cold" and one.usual_ns]
    if found:
        worst = max(found, key=lambda one: one.step.dur_ns)
        yield Hit(
            f"step {worst.step.step} takes {time_text(worst.step.dur_ns)}, the others "
            f"{time_text(worst.usual_ns)} (median){_ranks(found)}: it is left out of all shares",
            {
                "first_ns": worst.step.dur_ns,
                "median_of_others_ns": worst.usual_ns,
                "ratio": worst.step.dur_ns / (worst.usual_ns or 1.0),
            },
            slices=[one.step.slice for one in found],
            rows=_rank_rows(ctx, found, "its first step") if len(found) > 1 else (),
        )


@rule(
    "dead-window",
    "Nothing happens at the start of the window",
    severity="info",
    meaning="Between the start of the first step and its first op nothing is recorded: the profiler starts, "
    "or code without records runs. The other findings leave this step out if the recording has other steps.",
    threshold="Over 25 % of the first step and over 50 us pass before its first op, runtime call or fetch "
    "of a batch, and over 1.5 times as long as in the other steps (median). Calls that only make, record, "
    "ask or destroy an event do not count: profrun itself records one at the start of each step.",
    advice="Do not read this gap as the program's; leave the first step out, or add ranges to see what runs "
    "there.",
)
def dead_window(ctx: Context) -> Iterator[Hit]:
    """Gap from the first step's start to the first op or call inside it."""
    found = [one for one in ctx.judged.left_out if one.why == "dead" and one.gap_ns]
    if found:
        worst = max(found, key=lambda one: one.gap_ns or 0)
        share = (worst.gap_ns or 0) / worst.step.dur_ns
        yield Hit(
            f"{time_text(worst.gap_ns)} of step {worst.step.step} ({percent_text(share)}) pass before its "
            f"first op{_ranks(found)}" + ("" if worst.judged else ": it is left out of all shares"),
            {"gap_ns": worst.gap_ns, "gap_share": share, "gap_of": "the first step"},
            slices=[one.step.slice for one in found],
            rows=_rank_rows(ctx, found, "before its first op") if len(found) > 1 else (),
        )


def _ranks(found: list[LeftOut]) -> str:
    return f" on {len(found)} ranks" if len(found) > 1 else ""


def _rank_rows(ctx: Context, found: list[LeftOut], detail: str) -> list[FindingRow]:
    return [
        FindingRow(
            ctx.labels.rank(one.step.rank), None, one.step.dur_ns if one.why == "cold" else one.gap_ns, detail
        )
        for one in found
    ]
