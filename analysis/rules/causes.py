"""Which finding explains which: a graph of causes, each edge with a condition on the trace.

``LINKS`` are the edges. A finding goes below the cause that explains most of it; then it is a part or a
consequence, and no finding of its own. Names of rules alone explain nothing: each condition compares times of
the trace, and a cause must be able to gain at least half as much as the finding that it explains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.copies import pageable, waits_of_copies
from profrun.analysis.rules.host_causes import loader_slices, profiler_slices
from profrun.analysis.rules.idle_time import DeviceIdle, lies_in
from profrun.analysis.rules.late_rank import lateness
from profrun.analysis.rules.quiet_host import quiet_host
from profrun.analysis.rules.rule import Hit
from profrun.analysis.rules.waits import implicit_waits
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.intervals import intersect
from profrun.contract.finding import SEVERITIES, Severity
from profrun.contract.units import percent_text

HALF = 0.5
"""Part of an effect that a cause must account for."""

Found = Mapping[str, Hit]
"""What the rules found, by their ids."""


@dataclass(frozen=True)
class Part:
    """How much of an effect a cause accounts for.

    Attributes:
        ns: the part.
        of_ns: the whole, over the same steps as the part.
        of: what the whole is, in words.
    """

    ns: float
    of_ns: float
    of: str

    @property
    def share(self) -> float:
        """Part of the whole, at most 1."""
        return min(1.0, self.ns / self.of_ns) if self.of_ns > 0 else 0.0


@dataclass(frozen=True)
class Link:
    """One edge: ``effect`` is explained by ``cause`` where ``part`` is at least half.

    Attributes:
        effect, cause: ids of rules.
        condition: what must hold, in one sentence.
        part: measures it, given the context, the hit of the cause and the hit of the effect.
        own_time: the effect is about other time than the cause, so that both gains can be had.
    """

    effect: str
    cause: str
    condition: str
    part: Callable[[Context, Hit, Hit], Part]
    own_time: bool = False


@dataclass(frozen=True)
class Explained:
    """Why a finding is below another one."""

    by: str
    because: str
    own_time: bool


def _idle_of_host(ctx: Context, cause: Hit, _effect: Hit) -> Part:
    return Part(cause.idle_ns, ctx.host_wait_ns, "the time in which the GPU waits for the host")


def _idle_of_effect(_ctx: Context, cause: Hit, effect: Hit) -> Part:
    return Part(cause.idle_ns, effect.idle_ns, "the GPU's idle time")


def _gain_of_effect(_ctx: Context, cause: Hit, effect: Hit) -> Part:
    mine, whole = (hit.gain.ns if hit.gain else 0 for hit in (cause, effect))
    return Part(
        mine, whole, "what could be gained (it goes with the waits, after which the GPU has nothing to run)"
    )


def _wait_of_effect(_ctx: Context, cause: Hit, effect: Hit) -> Part:
    return Part(cause.idle_ns, effect.idle_ns, "the idle time before the short kernels")


def _wait_for_ranks(ctx: Context, cause: Hit, _effect: Hit) -> Part:
    late = lateness(ctx, int(_number(cause, "rank")))
    whole = sum(one.total for one in ctx.exposed.values())
    return Part(late.bare_total_ns if late else 0, whole, "the communication that nothing hides")


def _late_host(ctx: Context, _cause: Hit, effect: Hit) -> Part:
    """Idle time of the late rank's GPU that waits for its host, unless the GPU works longer than others."""
    rank, wait = _late_rank(effect)
    longer = _number(effect, "computes_longer_ns_per_step")
    waits = 0.0 if longer >= HALF * wait else _rank_mean(ctx, lambda one: one.host.total, rank)
    return Part(waits, wait, "the wait (its GPU works no longer than the other GPUs, but waits for its host)")


def _late_loader(ctx: Context, _cause: Hit, effect: Hit) -> Part:
    return _late_slices(ctx, loader_slices(ctx), effect, "the wait (its fetches of batches take longer)")


def _late_code(ctx: Context, _cause: Hit, effect: Hit) -> Part:
    rank, wait = _late_rank(effect)

    def quiet(one: DeviceIdle) -> int:
        return quiet_host(ctx, one).total

    more = _rank_mean(ctx, quiet, rank) - _rank_mean(ctx, quiet, rank, others=True)
    return Part(more, wait, "the wait (its host is outside of ops and calls for longer)")


def _late_profiler(ctx: Context, _cause: Hit, effect: Hit) -> Part:
    return _late_slices(
        ctx, profiler_slices(ctx), effect, "the wait (the profiler works longer on that rank)"
    )


def _late_slices(ctx: Context, ids: Index, effect: Hit, of: str) -> Part:
    rank, wait = _late_rank(effect)
    ranks = {row["process"]: row["rank"] for row in ctx.frame.processes}
    owner = np.array([ranks[int(process)] for process in ctx.frame.process_of(ids)], dtype=np.int64)
    mine = ctx.host_time(ids[owner == rank]) / _steps_of(ctx, rank)
    count = max(1, len(set(ranks.values())) - 1)
    others = ctx.host_time(ids[owner != rank]) / _steps_of(ctx, rank) / count
    return Part(mine - others, wait, of)


def _late_rank(effect: Hit) -> tuple[object, float]:
    return effect.numbers.get("rank"), _number(effect, "waited_for_ns_per_step")


def _number(hit: Hit, key: str) -> float:
    """A number of the evidence; 0 where the rule did not give it."""
    value = hit.numbers.get(key)
    return float(value) if isinstance(value, (int, float)) else 0.0


def _steps_of(ctx: Context, rank: object) -> int:
    return sum(step.rank == rank for step in ctx.steps) or 1


def _rank_mean(
    ctx: Context, time: Callable[[DeviceIdle], int], rank: object, *, others: bool = False
) -> float:
    """Mean of a time over the GPUs of a rank, or of all other ranks, ns per step."""
    found = [
        time(one) / max(1, len(ctx.judged.spans[one.process][0]))
        for one in ctx.waiting
        if (ctx.frame.processes[one.process]["rank"] == rank) is not others
    ]
    return sum(found) / len(found) if found else 0.0


def _same_copies(_ctx: Context, cause: Hit, effect: Hit) -> Part:
    whole = "exposed_memcpy_ns" if "exposed_memcpy_ns" in effect.numbers else "exposed_ns"
    return Part(_number(cause, "exposed_ns"), _number(effect, whole), "these copies")


def _bus_copies(_ctx: Context, cause: Hit, effect: Hit) -> Part:
    part, whole = _number(cause, "exposed_ns"), _number(effect, "exposed_memcpy_ns")
    return Part(part, whole, "the time of these copies that nothing covers")


def _waits_for_copies(ctx: Context, _cause: Hit, _effect: Hit) -> Part:
    waits = implicit_waits(ctx)
    copies = pageable(ctx)
    ours = waits_of_copies(ctx, copies.only(copies.direction == "HtoD").ids)
    mine = np.intersect1d(waits, ours).astype(np.intp)
    return Part(ctx.host_time(mine), ctx.host_time(waits), "the waiting")


def _for_comm(ctx: Context, _cause: Hit, effect: Hit) -> Part:
    """How much of blocking calls the GPU communicates and does nothing else."""
    held = (
        intersect(ctx.exposed[one.device], lies_in(ctx.frame, ctx.blocking_calls, one.process)).total
        for one in ctx.waiting
    )
    return Part(sum(held), _number(effect, "total_ns"), "the waiting")


def _chains(ctx: Context, cause: Hit, _effect: Hit) -> Part:
    return Part(_number(cause, "total_ns"), ctx.kernel_ns, "the kernel time")


def _queries(ctx: Context, _cause: Hit, effect: Hit) -> Part:
    """How much of these calls lies in time in which a GPU waits for the host."""
    return Part(effect.idle_ns, ctx.per_step_ns(_number(effect, "total_ns")), "the time of these calls")


def _lowered(_ctx: Context, cause: Hit, _effect: Hit) -> Part:
    return Part(
        _number(cause, "share"), 1.0, "the time of the steady steps the clock is lowered for this reason"
    )


_WHY_IDLE = "at least half of the GPU's idle time is time that the cause accounts for"
_WHY_WAIT = (
    "at least half of the time in which the GPU waits for the host is time that the cause accounts for"
)
_LATE = "at least half of the wait is extra time that the late rank spends {}"
_WHY_SYNC = "removing the waits of the cause brings at least half of the gain"
_SYNCS = ("implicit-sync", "explicit-sync")
_HOST_CAUSES = ("dataloader-stall", "recompilation", "allocator-churn", "host-code")

LINKS: tuple[Link, ...] = (
    *(Link("overhead-bound", cause, _WHY_WAIT, _idle_of_host, own_time=True) for cause in _HOST_CAUSES),
    *(
        Link("low-utilization", cause, _WHY_IDLE, _idle_of_effect)
        for cause in (*_HOST_CAUSES, "overhead-bound", "buffer-request")
    ),
    *(
        Link(effect, cause, _WHY_SYNC, _gain_of_effect)
        for effect in ("overhead-bound", "low-utilization")
        for cause in _SYNCS
    ),
    Link(
        "tiny-kernels",
        "overhead-bound",
        "at least half of the idle time before the short kernels is time that the cause accounts for",
        _wait_of_effect,
    ),
    *(
        Link(
            effect,
            "overhead-bound",
            "at least half of the time of these calls is time in which the GPU waits for the host",
            _queries,
        )
        for effect in ("occupancy-queries", "dynamo-lookup")
    ),
    *(
        Link(
            effect,
            "pageable-copies",
            "at least half of the copies, by uncovered time, is pageable",
            _same_copies,
        )
        for effect in ("copies-not-overlapped", "host-device-copies")
    ),
    Link(
        "copies-not-overlapped",
        "host-device-copies",
        "at least half of the copies, by uncovered time, is between host and device",
        _bus_copies,
    ),
    Link(
        "implicit-sync",
        "pageable-copies",
        "at least half of the waiting is for copies from or to pageable memory",
        _waits_for_copies,
    ),
    Link(
        "exposed-communication",
        "straggler",
        "at least half of the communication that nothing hides is waiting for that rank",
        _wait_for_ranks,
    ),
    *(
        Link(
            effect,
            cause,
            "during at least half of the waiting the GPU only communicates, or waits for another rank",
            _for_comm,
        )
        for effect in _SYNCS
        for cause in ("straggler", "exposed-communication")
    ),
    Link("straggler", "dataloader-stall", _LATE.format("fetching batches"), _late_loader),
    Link("straggler", "host-code", _LATE.format("in code outside of the framework"), _late_code),
    Link("straggler", "profiler-overhead", _LATE.format("in the profiler"), _late_profiler),
    Link("straggler", "buffer-request", _LATE.format("in the profiler"), _late_profiler),
    Link(
        "straggler",
        "overhead-bound",
        "the GPU of the late rank does not work longer than the other GPUs, and at least half of the wait is "
        "time in which it waits for its host",
        _late_host,
    ),
    *(
        Link(
            "clock-variance",
            cause,
            "the reason lowers the clock in at least half of the time of the steady steps",
            _lowered,
        )
        for cause in ("power-capped", "thermal-throttled")
    ),
    Link(
        "memory-bound",
        "pointwise-chains",
        "at least half of the kernel time is in these chains",
        _chains,
    ),
)
"""The graph of causes. Rules can explain each other in a circle, findings cannot: see ``explain``."""


def _as_grave(severity: Mapping[str, Severity], link: Link) -> bool:
    """Is the cause at least as grave as what it explains? A grave finding is not hidden below a light one."""
    return SEVERITIES.index(severity[link.cause]) <= SEVERITIES.index(severity[link.effect])


def _outweighs(cause: Hit, effect: Hit, link: Link) -> bool:
    """Could the cause gain at least half as much as the effect? Else it hides more than it explains."""
    if link.own_time or cause.gain is None or effect.gain is None:
        return True
    return cause.gain.ns >= HALF * effect.gain.ns


def explain(ctx: Context, found: Found, severity: Mapping[str, Severity]) -> dict[str, Explained]:
    """Which findings others explain, by the ids of the rules.

    Of several causes the one that accounts for most of the effect is taken, unless it is below the effect
    already.

    Args:
        ctx: the trace.
        found: what the rules found.
        severity: how grave each hit is by itself.
    """
    explained: dict[str, Explained] = {}
    for effect, hit in found.items():
        parts = [
            (link.part(ctx, found[link.cause], hit), link)
            for link in LINKS
            if link.effect == effect
            and link.cause in found
            and _outweighs(found[link.cause], hit, link)
            and _as_grave(severity, link)
        ]
        for part, link in sorted(parts, key=lambda one: -one[0].share):
            if part.share >= HALF and not _is_below(explained, link.cause, effect):
                because = f"{percent_text(part.share)} of {part.of}"
                explained[effect] = Explained(link.cause, because, link.own_time)
                break
    return explained


def _is_below(explained: Mapping[str, Explained], code: str, above: str) -> bool:
    """Is a finding below another one, or that one itself?"""
    while code != above and code in explained:
        code = explained[code].by
    return code == above
