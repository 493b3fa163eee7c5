"""The host waiting for the GPU: explicit and implicit synchronisation, full queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.trace.critical_path import is_blocking
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.intervals import union
from profrun.analysis.trace.queue import queues
from profrun.contract.units import percent_text, time_text

QUEUE_SHARE = 0.05
SYNC_SHARE = 0.01
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


def _sync_calls(ctx: Context) -> Index:
    return ctx.in_steps(ctx.named("api", is_blocking))


def _culprit(ctx: Context, call: int) -> str:
    """The op to blame: the outermost known culprit round the call, else the outermost op."""
    names = []
    at = int(ctx.frame.nearest("op")[call])
    while at >= 0:
        names.append(ctx.frame.text(at))
        at = int(ctx.frame.nearest("op")[at])
    known = [name for name in names if name in CULPRITS]
    return known[-1] if known else (names[-1] if names else "")


def _lines(ctx: Context, ids: Index) -> list[str]:
    found = [ctx.python_line(int(one)) for one in ids[:200]]
    return [line for line, _ in Counter(line for line in found if line).most_common(3)]


def _hit(ctx: Context, ids: Index, what: str) -> Hit:
    source = ctx.frame
    calls = Counter(source.text(int(one)) for one in ids)
    lines = _lines(ctx, ids)
    owner = source.track_process[source.track[ids]]
    whole = ctx.step_ns or ctx.window_ns * len(np.unique(owner))
    time = sum(
        union(source.ts[mine], source.end[mine]).total
        for mine in (ids[owner == process] for process in np.unique(owner))
    )  # calls of several threads, or a driver call inside a runtime call, wait once
    where = f", at {lines[0]}" if lines else ""
    return Hit(
        f"{len(ids) / ctx.step_count:.{1 if ctx.steps else 0}f} times {ctx.per_step} {what} waits for the "
        f"GPU in {', '.join(sorted(calls))}{where}: {time_text(time / ctx.step_count)} {ctx.per_step}, "
        f"{percent_text(time / whole)} of the time of {ctx.span_name}",
        {
            "calls": len(ids),
            "total_ns": time,
            "share": time / whole,
            "share_of": f"host time of {ctx.span_name}",
            "python_lines": lines,
        },
        slices=ctx.worst(ids),
        names=[what, *sorted(calls)],
        severity="warning" if time / whole >= SYNC_SHARE and ctx.steps else "info",
    )


@rule(
    "implicit-sync",
    "An op makes the host wait for the GPU",
    meaning="Reading a value on the host (.item(), .cpu(), printing a tensor, nonzero(), a copy from "
    "pageable memory) waits until everything queued before it has run; the queue runs dry.",
    threshold="A blocking runtime call (Synchronize, or a copy that is not Async) under an op, inside a "
    "step. A warning from 1 % of the host time of the steps, else for information.",
    advice="Log losses every N steps or keep them on the GPU (detach, accumulate), use non_blocking=True "
    "with pinned memory, replace data-dependent shapes.",
    relies_on=("steps.dur_ns",),
)
def implicit_sync(ctx: Context) -> Iterator[Hit]:
    """Blocking calls under ops, grouped by the op to blame."""
    ids = _sync_calls(ctx)
    if not len(ids):
        return
    under = ids[ctx.frame.nearest("op")[ids] >= 0]
    blame = np.array([_culprit(ctx, int(one)) for one in under], dtype=object)
    for name in sorted(set(blame)):
        yield _hit(ctx, under[blame == name], name)


@rule(
    "explicit-sync",
    "The program makes the host wait for the GPU",
    meaning="torch.cuda.synchronize(), a stream or an event synchronise in the step's own code empties the "
    "queue each time.",
    threshold="A blocking Synchronize call inside a step that no op made, or whose op is not known because "
    "the tool records none. A warning from 1 % of the host time of the steps, else for information.",
    advice="Remove it, or move it outside the loop; time with events instead of the host's clock.",
    relies_on=("steps.dur_ns",),
)
def explicit_sync(ctx: Context) -> Iterator[Hit]:
    """Blocking calls that no op made."""
    ids = _sync_calls(ctx)
    if not len(ids):
        return
    own = ids[ctx.frame.nearest("op")[ids] < 0]
    if len(own):
        recorded = len(ctx.frame.of("op")) > 0
        yield _hit(ctx, own, "the program" if recorded else "the program or an op of it (none is recorded)")


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
    for row in queues(ctx.trace):
        if row.span_ns and row.blocked_ns / row.span_ns > QUEUE_SHARE:
            yield Hit(
                f"stream {row.stream} had {row.limit} or more slices queued for "
                f"{percent_text(row.blocked_ns / row.span_ns)}",
                {
                    "blocked_ns": row.blocked_ns,
                    "blocked_of": row.blocked_of,
                    "span_ns": row.span_ns,
                    "max_length": row.max_length,
                },
            )
