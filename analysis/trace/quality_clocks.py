"""Checks of the clocks, and of records that contradict each other: what causality says of the recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profrun.analysis.trace.clocks import judgement
from profrun.analysis.trace.quality import OP_WORK, STEP_WORK, QualityFinding
from profrun.analysis.trace.rank_clocks import RankClock, trace_rank_clocks
from profrun.contract.finding import Severity
from profrun.contract.units import percent_text, signed_time_text, time_text
from profrun.traces.causality.model import Clock, Contradiction

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

SMALL_OFFSET_NS = 100_000
"""Smaller offsets that were left in the trace mark numbers, larger ones withhold them."""
BROKEN_SHARE = 0.01
"""Contradicting records, of all of their kind, from which numbers are withheld."""
BROKEN_RECORDS = 3
"""Up to this many contradicting records change nothing."""

JOINT = (
    "launches",
    "queues",
    "idle",
    "steps.idle_ns",
    "steps.span_ns",
    "steps.wall_ns",
    "devices.utilization",
    "devices.est_sm_efficiency",
    "devices.window_ns",
)
"""Numbers that need host and GPU on one axis."""
_ACROSS = ("ranks.skew_p50_ns", "ranks.skew_max_ns")
_GPU_TIME = ("kernels", "categories", "copies", "collectives", "devices", "idle", *STEP_WORK, *OP_WORK)
_SUMS = ("kernels", "categories", "copies", "collectives", *STEP_WORK, *OP_WORK)


@dataclass(frozen=True)
class Meaning:
    """What a contradiction means: the sentence, the likely reason, what it affects, what it is a share of."""

    what: str
    why: str
    affects: tuple[str, ...]
    records: str


MEANINGS = {
    "duplicate_gpu_records": Meaning(
        "{count} of {total} GPU slices are in the recording twice, with the same name, times and launch",
        "events were written or merged twice",
        _SUMS,
        "GPU slices",
    ),
    "duplicate_calls": Meaning(
        "{count} of {total} runtime calls are in the recording twice, with the same name and times",
        "events were written or merged twice",
        ("apis", "launches"),
        "runtime calls",
    ),
    "zero_durations": Meaning(
        "{count} of {total} kernels have a duration of 0",
        "the profiler lost their ends",
        _GPU_TIME,
        "kernels",
    ),
    "gpu_duration_unit": Meaning(
        "durations of {count} of {total} GPU slices are wrong by a factor of about {factor}",
        "{unit_why}",
        _GPU_TIME,
        "GPU slices",
    ),
    "gpu_time_unit": Meaning(
        "GPU times are on a scale of their own: against the host's they are wrong by a factor of {factor}",
        "ns, us and ms were mistaken for each other",
        (*JOINT, *_GPU_TIME),
        "GPU slices",
    ),
    "stream_displaced": Meaning(
        "{count} of {total} GPU slices, those of one stream, are not on the clock of the others{by}",
        "without this stream all launches and waits fit; its times were moved or belong to another recording",
        JOINT,
        "GPU slices",
    ),
    "clock_jump": Meaning(
        "the GPU's clock jumps by about {signed} within the recording: {count} of {total} GPU slices come "
        "after",
        "all launches and waits before that time fit, and all after it",
        JOINT,
        "GPU slices",
    ),
    "gpu_work_late": Meaning(
        "every GPU slice starts at least {time} after its launch, which is more than 10 times as long as all "
        "launches took",
        "the GPU's clock is late, or the GPU was busy with work from before the recording; no call waits for "
        "the work, so that nothing tells which",
        JOINT,
        "GPU slices",
    ),
    "call_duration_unit": Meaning(
        "{count} of {total} runtime calls last longer than the time until the next call of their thread",
        "their durations are in another unit than their starts",
        ("apis", "launches", "queues", "idle"),
        "runtime calls",
    ),
    "steps_overlap": Meaning(
        "{count} of {total} steps of one thread begin before the one before them has ended",
        "the steps of several recordings, or of several threads, are on one thread",
        ("steps", "devices.utilization", "devices.est_sm_efficiency"),
        "steps",
    ),
    "far_records": Meaning(
        "{count} of {total} slices lie {amount:.0f} times as far from all others as those extend",
        "their times are damaged",
        (
            "devices.utilization", "devices.est_sm_efficiency", "devices.span_ns", "devices.idle_ns",
            "devices.window_ns", "idle", "queues", "steps.span_ns", "steps.wall_ns",
        ),
        "slices",
    ),
    "gpu_work_overlaps": Meaning(
        "{count} of {total} GPU slices run while the one before them on their stream still runs, by up to "
        "{time}, and neither rounding, graphs nor programmatic dependent launch explains it",
        "a stream runs its work one after the other: start, end or stream of these slices are wrong",
        ("kernels", "categories", "queues", "launches", *STEP_WORK, *OP_WORK),
        "GPU slices",
    ),
    "launch_order": Meaning(
        "{count} of {total} GPU slices run before work of their stream that was launched earlier, by up to "
        "{time}",
        "a stream keeps the order of its launches: launches and slices were put together wrongly, or their "
        "times are wrong",
        ("launches", "queues", "kernels.order", *STEP_WORK, *OP_WORK),
        "GPU slices",
    ),
}  # fmt: skip


def clocks(trace: Trace) -> Iterator[QualityFinding]:
    """GPU clocks that do not fit the host's."""
    for clock in judgement(trace).clocks:
        if clock.outliers:
            yield QualityFinding(
                code="clock_outliers",
                severity="info",
                what=f"{clock.outliers} launches or waits of {_whose(clock)} contradict all others",
                why="single times are wrong",
                count=clock.outliers,
                share=clock.outliers / (clock.launches + clock.waits),
                share_of="launches and waits",
            )
        if clock.verdict == "contradiction":
            yield _contradiction(clock)
        elif clock.verdict in ("offset", "drift"):
            yield _moved(clock) if clock.moved else _off(clock)


def _whose(clock: Clock) -> str:
    session = f" in session {clock.session}" if clock.begins_ns is not None or clock.session else ""
    return f"device {clock.device}{session}"


def _contradiction(clock: Clock) -> QualityFinding:
    return QualityFinding(
        code="clock_contradiction",
        severity="critical",
        what=f"no clock fits {_whose(clock)}: {clock.launches} launches and {clock.waits} waits contradict "
        "each other, for every offset and every plausible drift",
        why="GPU times of this recording were moved, cut or mixed",
        fix="record again; what needs only GPU times or only host times is still right",
        affects=JOINT,
        count=clock.launches + clock.waits,
    )


def _bounds(clock: Clock) -> str:
    if clock.verdict == "drift":
        return _between(clock.low_ns, clock.high_ns)
    return _between(clock.constant_low_ns, clock.constant_high_ns)


def _between(low: int | None, high: int | None) -> str:
    if low is None or high is None:
        known = low if high is None else high
        return f"{'at least' if high is None else 'at most'} {signed_time_text(known)}"
    return f"between {signed_time_text(low)} and {signed_time_text(high)}"


def _rests(clock: Clock) -> str:
    return f"{clock.launches} launches and {clock.waits} waits say so"


def _moved(clock: Clock) -> QualityFinding:
    code = "gpu_clock_drift_repaired" if clock.verdict == "drift" else "gpu_clock_repaired"
    drift = f", growing by {clock.drift_ppm:+.2f} parts per million" if clock.verdict == "drift" else ""
    return QualityFinding(
        code=code,
        severity="info",
        what=f"GPU times of {_whose(clock)} were moved by {signed_time_text(clock.moved_ns)}{drift}: what is "
        f"right lies {_bounds(clock)}",
        why=f"{_rests(clock)}; as recorded, work starts before its launch or ends after it was waited for",
        count=clock.launches + clock.waits,
    )


def _off(clock: Clock) -> QualityFinding:
    known = [abs(one) for one in (clock.constant_low_ns, clock.constant_high_ns) if one is not None]
    severity: Severity = "warning" if known and min(known) < SMALL_OFFSET_NS else "critical"
    return QualityFinding(
        code="gpu_clock_drift" if clock.verdict == "drift" else "gpu_clock_offset",
        severity=severity,
        what=f"GPU times of {_whose(clock)} are wrong: what must be added lies {_bounds(clock)}"
        + (f" at {time_text(clock.first_ns)} and drifts" if clock.verdict == "drift" else ""),
        why=f"{_rests(clock)}: as recorded, work starts before its launch or ends after it was waited for",
        fix="normalize the recording without --no-repair",
        affects=JOINT,
        count=clock.launches + clock.waits,
    )


def ranks(trace: Trace) -> Iterator[QualityFinding]:
    """Clocks of ranks that cannot be the same, though the trace has all ranks on one axis."""
    found = trace_rank_clocks(trace)
    if found is None or found.comparable:
        return
    if not found.consistent:
        yield QualityFinding(
            code="rank_clocks_contradict",
            severity="critical",
            what=f"no clocks of the {len(found.clocks)} ranks fit their collectives: whatever the offsets, "
            "one ends on a rank before another rank has begun it",
            why="times of a rank jump or drift, ranks were mistaken for each other, or records are missing",
            affects=_ACROSS,
            count=len(found.clocks),
        )
        return
    off = [clock for clock in found.clocks if not clock.agrees]
    yield _ranks_off(off, found.clocks[0])


def _ranks_off(off: list[RankClock], first: RankClock) -> QualityFinding:
    """One finding for all ranks whose clock is another than that of the first one."""
    worst = max(off, key=lambda clock: abs(clock.offset_ns))
    hosts = sorted({clock.host for clock in (*off, first) if clock.host} - {first.host})
    place = f" on {', '.join(hosts)}" if hosts else ""
    whose = f"the clock of rank {worst.rank}{place} is"
    if len(off) > 1:
        whose = f"the clocks of {len(off)} ranks{place} are"
    own = f"rank {first.rank}" + (f" on {first.host}" if hosts and first.host else "")
    most = "" if len(off) == 1 else f" of rank {worst.rank}, the most"
    return QualityFinding(
        code="rank_clock_offset",
        severity="critical",
        what=f"{whose} not that of {own}: what must be added to the times{most} lies "
        f"{_between(worst.low_ns, worst.high_ns)}",
        why=f"{worst.collectives} collectives say so: none ends before the last rank has begun it; clocks of "
        "several hosts differ",
        fix="read the bounds of skews and waits, which hold all the same",
        affects=_ACROSS,
        count=len(off),
    )


def contradictions(trace: Trace) -> Iterator[QualityFinding]:
    """Records that no run can have made."""
    for one in judgement(trace).contradictions:
        meaning = MEANINGS.get(one.code)
        if meaning is not None:
            yield _of(one, meaning)


def _of(one: Contradiction, meaning: Meaning) -> QualityFinding:
    share = one.count / one.total if one.total else 0.0
    amount = one.amount or 0.0
    known = {
        "count": one.count,
        "total": one.total,
        "amount": amount,
        "time": time_text(amount),
        "signed": signed_time_text(amount),
        "by": f", by at least {time_text(amount)}" if amount else "",
        "factor": f"{amount:.0f}" if amount >= 1 else f"1/{1 / amount:.0f}" if amount else "?",
        "unit_why": "ns, us and ms were mistaken for each other: "
        + ("work of one stream would overlap" if amount >= 1 else "no kernel is that short"),
    }
    return QualityFinding(
        code=one.code,
        severity=_severity(one, share),
        what=f"{meaning.what.format(**known)} ({percent_text(share)})",
        why=meaning.why.format(**known),
        affects=meaning.affects,
        count=one.count,
        share=share,
        share_of=meaning.records,
    )


def _severity(one: Contradiction, share: float) -> Severity:
    if one.code == "gpu_work_late":
        return "warning"
    if one.code in ("far_records", "stream_displaced") or share > BROKEN_SHARE:
        return "critical"
    return "warning" if one.count > BROKEN_RECORDS else "info"
