"""The host waiting for the GPU: explicit and implicit synchronisation, full queues."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.python_lines import mapped_lines, python_lines
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.queue import queues
from profrun.analysis.trace.runtime_calls import is_launch
from profrun.contract.units import percent_text, rate_text, time_text
from profrun.traces.memo import memoised

QUEUE_SHARE = 0.05
CULPRITS = (
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::is_nonzero",
    "aten::nonzero",
    "aten::cpu",
    "aten::to",
    "aten::copy_",
    "aten::equal",
    "aten::masked_select",
    "aten::unique2",
    "aten::repeat_interleave",
)
"""Ops that people call without knowing that they wait, outermost first when nested."""


def _felt(ctx: Context, ids: Index) -> Index:
    """Those of the blocking calls without which something could run earlier.

    Left out are those that wait for work from before the steps, and those after which the process launches
    nothing more: nothing could run beside them.
    """
    source = ctx.frame
    if not ctx.steps:
        return ids
    calls = ctx.in_steps(ctx.named("api", is_launch))
    last = np.full(len(source.processes), -1, dtype=np.int64)
    np.maximum.at(last, source.process_of(calls), source.ts[calls])
    keep = source.ts[ids] < last[source.process_of(ids)]
    owner, by_process = source.process_of(ids), source.by_process(source.gpu)
    for process in np.unique(owner):
        mine = owner == process
        gpu = by_process[process]
        gpu = gpu[np.argsort(source.end[gpu], kind="stable")]
        if not len(gpu):
            continue
        place = np.searchsorted(source.end[gpu], source.end[ids[mine]], side="right") - 1
        target = gpu[np.maximum(place, 0)]
        held = (place >= 0) & (source.end[target] > source.ts[ids[mine]])
        keep[mine] &= ~held | np.isin(target, ctx.step_gpu)
    return np.asarray(ids[keep])


def _culprit(ctx: Context, call: int) -> str:
    """The op to blame: the outermost known culprit round the call, else the outermost op."""
    names = []
    at = int(ctx.frame.nearest("op")[call])
    while at >= 0:
        names.append(ctx.frame.text(at))
        at = int(ctx.frame.nearest("op")[at])
    known = [name for name in names if name in CULPRITS]
    return known[-1] if known else (names[-1] if names else "")


def _row(ctx: Context, name: str, ids: Index) -> FindingRow:
    calls = sorted({ctx.frame.text(int(one)) for one in ids})
    lines = mapped_lines(ctx.frame, ctx.mapped, ids) if ctx.mapped is not None else []
    lines = lines or python_lines(ctx.frame, ids[:200])
    where = f", at {lines[0]}" if lines else ""
    return FindingRow(name, len(ids), ctx.host_time(ids), f"in {', '.join(calls)}{where}")


def _hit(ctx: Context, ids: Index, rows: list[FindingRow]) -> Hit:
    """The hit of blocking calls; ``rows`` are those who made them, most time first."""
    time = ctx.host_time(ids)  # calls of several threads, or a driver call in a runtime call, wait once
    first = rows[0]
    more = f", and {len(rows) - 1} more" if len(rows) > 1 else ""
    rate = f"{rate_text(len(ids) / ctx.step_count)} times {ctx.rate}"
    idle = ctx.idle_inside(ids)
    hidden = idle > ctx.per_step_ns(time) / 2 and ctx.waiting
    seen = ", most of it while no work of the GPU is recorded" if hidden else ""
    what = f"{rate} the host waits for the GPU: by {first.name} {first.detail}{more}"
    return Hit(
        f"{what}; {time_text(ctx.per_step_ns(time))} {ctx.per}{seen}",
        {
            "calls": len(ids),
            "total_ns": time,
            "share": time / ctx.step_ns if ctx.step_ns else None,
            "share_of": f"host time of {ctx.denominator.every}",
            "python_lines": python_lines(ctx.frame, ids[:200]),
        },
        slices=ctx.worst(ids),
        names=[*(row.name for row in rows), *sorted({ctx.frame.text(int(one)) for one in ids})],
        gain=ctx.wait_gain(_felt(ctx, ids)),
        idle_ns=idle,
        extent=f"{first.name}, {rate}" if first.name else rate,
        rows=rows if len(rows) > 1 else (),
    )


@rule(
    "implicit-sync",
    "An op makes the host wait for the GPU",
    remedy="read the value rarely, not in every step",
    meaning="Reading a value on the host (.item(), .cpu(), printing a tensor, nonzero(), a copy from "
    "pageable memory) waits until everything queued before it has run. The GPU "
    "then has nothing to do until the CPU launches more.",
    threshold="A blocking runtime call (Synchronize, or a copy that is not Async) under an op, inside a "
    "step.",
    advice="Log losses every N steps or keep them on the GPU (detach, accumulate), use non_blocking=True "
    "with pinned memory, replace data-dependent shapes.",
    bound="The steps are replayed without these calls; without a replay the time in them. At most the part "
    "of the step in which the GPU does not work. Calls that wait for work from before the steps, and those "
    "after which nothing more is launched, do not count.",
    relies_on=("steps.dur_ns",),
)
def implicit_sync(ctx: Context) -> Iterator[Hit]:
    """Blocking calls under ops, grouped by the op to blame."""
    under = implicit_waits(ctx)
    if not len(under):
        return
    blame = np.array([_culprit(ctx, int(one)) for one in under], dtype=object)
    rows = [_row(ctx, name, under[blame == name]) for name in sorted(set(blame))]
    yield _hit(ctx, under, sorted(rows, key=lambda row: (-(row.total_ns or 0), row.name)))


@memoised
def implicit_waits(ctx: Context) -> Index:
    """Blocking calls that an op made."""
    ids = ctx.blocking_calls
    return np.asarray(ids[ctx.frame.nearest("op")[ids] >= 0])


@rule(
    "explicit-sync",
    "The program makes the host wait for the GPU",
    experiments=("no-synchronize",),
    remedy="remove it, or move it out of the loop",
    meaning="torch.cuda.synchronize(), a stream or an event synchronise in the step's own code empties the "
    "queue each time.",
    threshold="A blocking Synchronize call inside a step that no op made, or whose op is not known because "
    "the tool records none.",
    advice="Remove it, or move it outside the loop; time with events instead of the host's clock.",
    bound="The steps are replayed without these calls; without a replay the time in them. At most the part "
    "of the step in which the GPU does not work. Calls that wait for work from before the steps, and those "
    "after which nothing more is launched, do not count.",
    relies_on=("steps.dur_ns",),
)
def explicit_sync(ctx: Context) -> Iterator[Hit]:
    """Blocking calls that no op made."""
    ids = ctx.blocking_calls
    own = ids[ctx.frame.nearest("op")[ids] < 0]
    if len(own):
        recorded = len(ctx.frame.of("op")) > 0
        who = "the program" if recorded else "the program or an op of it (none is recorded)"
        yield _hit(ctx, own, [_row(ctx, who, own)])


@rule(
    "full-queue",
    "Launches block on a full queue",
    severity="info",
    meaning="The host is so far ahead that a stream's queue is full and launches wait: the GPU is the "
    "bottleneck, and long launch calls are no overhead.",
    threshold="At least 1024 GPU slices queued on one stream for over 5 % of its time.",
    advice="Nothing to do on the host; look at the kernels.",
    relies_on=("queues",),
)
def full_queue(ctx: Context) -> Iterator[Hit]:
    """Time at the limit, by stream."""
    full = [row for row in queues(ctx.trace) if row.span_ns and row.blocked_ns / row.span_ns > QUEUE_SHARE]
    if not full:
        return
    worst = max(full, key=lambda row: row.blocked_ns / row.span_ns)
    yield Hit(
        f"stream {worst.stream} had {worst.limit} or more slices queued for "
        f"{percent_text(worst.blocked_ns / worst.span_ns)} of its time",
        {
            "blocked_ns": worst.blocked_ns,
            "blocked_of": worst.blocked_of,
            "span_ns": worst.span_ns,
            "max_length": worst.max_length,
        },
        rows=[
            FindingRow(
                f"stream {row.stream} of {ctx.labels.gpus[row.device]}",
                None,
                row.blocked_ns,
                "with a full queue",
            )
            for row in full
        ]
        if len(full) > 1
        else (),
    )
