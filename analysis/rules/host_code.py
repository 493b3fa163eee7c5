"""The program's own code between two calls of the framework, while the GPU waits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.idle_time import DeviceIdle
from profrun.analysis.rules.late_rank import host_bound_ns
from profrun.analysis.rules.quiet_host import host_work, quiet_host
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_cost import WARNING_SHARE
from profrun.analysis.rules.step_text import span_text
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.intervals import Intervals
from profrun.contract.units import percent_text, time_text

ROWS = 8
NEARLY_ALL = 0.9
"""Part of the quiet time from which it is said to be in one rank."""
MISSING_RECORDS = ("unattributed_gpu_time", "launches_without_kernels", "lost_gpu_records")
"""Findings about the quality of a recording (``data_quality``) with which it is not whole."""
LEAST_PIECES = 2
"""Pieces from which it is no single event, such as one run of the garbage collector."""


@rule(
    "host-code",
    "The GPU waits for code outside of the framework",
    remedy="move this code out of the loop",
    meaning="The host is in no recorded op or call, so it runs the program's own code: Python between two "
    "calls of the framework, garbage collection, reading files, logging, sleeping.",
    threshold="The GPU waits for the host, and for at least 1 ms at a time no op, no call and no fetch of a "
    "batch is recorded; at least twice, and together at least 5 % of the step. Not on recordings without "
    "steps, with blocking launches, or in which records are missing.",
    advice="Move this code out of the loop, or into a thread or process of its own. The rows say between "
    "which ops it lies; `torch: {with_stack: true}` names the Python functions.",
    bound="The time of these pieces, of several ranks that of the rank with most of it, and at most the part "
    "of the step in which the GPU does not work.",
    relies_on=("devices.utilization", "idle"),
)
def host_code(ctx: Context) -> Iterator[Hit]:
    """Idle time of the GPU in which nothing is recorded on the host."""
    if not ctx.steps or ctx.blocking or ctx.unseen or _incomplete(ctx):
        return
    found = [(one, quiet_host(ctx, one)) for one in ctx.waiting]
    alone = ctx.per_device_ns(sum(part.total for _, part in found))
    lost = host_bound_ns(ctx, [(one, part.total) for one, part in found])
    gain = ctx.cost.host_gain(lost)
    pieces = sum(len(part.starts) for _, part in found)
    if pieces < LEAST_PIECES or gain.share < WARNING_SHARE:
        return
    places = [row for one, part in found for row in _places(ctx, one, part.starts, part.ends)]
    longest = max(int((part.ends - part.starts).max()) for _, part in found if len(part.starts))
    yield Hit(
        f"for {time_text(lost)} {ctx.per} the GPU waits while the host is in no op and no call "
        f"({percent_text(gain.share)} of {span_text(ctx)}; the longest piece takes {time_text(longest)})",
        {
            "quiet_ns_per_step": lost,
            "pieces": pieces,
            "longest_ns": longest,
            "share": gain.share,
            "share_of": span_text(ctx),
        },
        slices=[place for place, _, _ in places if place >= 0][:5],
        gain=gain,
        idle_ns=alone,
        rows=_by_place(places),
        extent=_one_rank(ctx, found),
    )


def _one_rank(ctx: Context, found: list[tuple[DeviceIdle, Intervals]]) -> str:
    """The rank in which nearly all of the quiet time is, where there are several; '' for none."""
    ranks: dict[int, int] = {}
    for one, part in found:
        rank = ctx.frame.processes[one.process]["rank"]
        if rank is not None:
            ranks[rank] = ranks.get(rank, 0) + part.total
    most = max(ranks, key=lambda rank: ranks[rank], default=0)
    if len(ranks) < 2 or ranks[most] < NEARLY_ALL * sum(ranks.values()):
        return ""
    return f"in {ctx.labels.rank(most)}"


def _incomplete(ctx: Context) -> bool:
    """Are records of the host or the GPU missing, so that a gap between records says nothing?"""
    return any(one.code in MISSING_RECORDS and one.severity != "info" for one in ctx.quality)


def _places(ctx: Context, one: DeviceIdle, starts: Index, ends: Index) -> list[tuple[int, str, int]]:
    """Each piece: the host slice before it (-1 for none), where it lies in words, and its time, ns."""
    source = ctx.frame
    work = host_work(ctx, one.process)
    by_end = work[np.argsort(source.end[work], kind="stable")]
    before = np.searchsorted(source.end[by_end], starts, "right") - 1
    after = np.searchsorted(source.ts[work], ends, "left")
    found = []
    for start, end, last, first in zip(starts, ends, before, after, strict=True):
        place = int(by_end[last]) if last >= 0 else -1
        begin = f"after {source.text(place)}" if place >= 0 else "at the beginning"
        stop = f", before {source.text(int(work[first]))}" if first < len(work) else ", until the end"
        function = _function(ctx, one.process, int(start), int(end))
        found.append((place, f"in {function}" if function else begin + stop, int(end - start)))
    return found


def _function(ctx: Context, process: int, start: int, end: int) -> str | None:
    """The innermost recorded Python function round a piece; None without recorded stacks."""
    source = ctx.frame
    ids = source.of("python")
    ids = ids[(source.process_of(ids) == process) & (source.ts[ids] <= start) & (source.end[ids] >= end)]
    return source.text(int(ids[np.argmin(source.durs(ids))])) if len(ids) else None


def _by_place(places: list[tuple[int, str, int]]) -> list[FindingRow]:
    """One row per place, most time first."""
    total: dict[str, list[int]] = {}
    for _, where, ns in places:
        one = total.setdefault(where, [0, 0])
        one[0] += 1
        one[1] += ns
    ranked = sorted(total.items(), key=lambda item: (-item[1][1], item[0]))
    return [FindingRow(where, count, ns, "the GPU waited") for where, (count, ns) in ranked[:ROWS]]
