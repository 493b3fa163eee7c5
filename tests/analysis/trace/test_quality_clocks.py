"""Findings about clocks and contradicting records: when they appear, and what they withhold."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.trace.data_quality import data_quality, withheld
from profrun.analysis.trace.quality_clocks import JOINT, MEANINGS
from profrun.analysis.trace.summary import summarize
from profrun.traces.causality.judge import CODES
from profrun.traces.causality.model import Clock, Contradiction, clock_entries, contradiction_entries
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step
from tests.analysis.rules.cases import BUSY, comm

CLOCK: dict[str, Any] = {
    "process": 0, "device": 0, "session": 0, "begins_ns": None, "first_ns": 0, "last_ns": 10**9,
    "launches": 90, "waits": 3,
}  # fmt: skip


def trace_with(clock: Clock | None = None, contradiction: Contradiction | None = None) -> Trace:
    """A sound trace whose meta says something of its clocks or records."""
    meta = {
        "clocks": clock_entries([clock] if clock else []),
        "contradictions": contradiction_entries([contradiction] if contradiction else []),
    }
    return memory_trace(BUSY, meta=meta)


@pytest.mark.parametrize(
    ("verdict", "values", "code", "severity"),
    [
        ("offset", {"constant_low_ns": 9_000, "moved_ns": 14_000}, "gpu_clock_repaired", "info"),
        ("drift", {"low_ns": 9_000, "last_moved_ns": 14_000}, "gpu_clock_drift_repaired", "info"),
        ("offset", {"constant_low_ns": 9_000}, "gpu_clock_offset", "warning"),
        ("offset", {"constant_high_ns": -9_000_000}, "gpu_clock_offset", "critical"),
        ("drift", {"low_ns": 9_000}, "gpu_clock_drift", "critical"),
        ("contradiction", {}, "clock_contradiction", "critical"),
        ("consistent", {"outliers": 2}, "clock_outliers", "info"),
    ],
)
def test_each_verdict(verdict: Any, values: dict[str, int], code: str, severity: str) -> None:
    findings = data_quality(trace_with(Clock(**CLOCK, verdict=verdict, **values)))
    (found,) = [one for one in findings if one.code == code]
    assert found.severity == severity
    assert set(JOINT) <= withheld(findings) or severity != "critical"


def test_the_sentence_has_the_bounds() -> None:
    clock = Clock(**CLOCK, verdict="offset", constant_low_ns=9_000, constant_high_ns=21_000, moved_ns=14_000)
    (found,) = [one for one in data_quality(trace_with(clock)) if one.code == "gpu_clock_repaired"]
    assert found.what == (
        "GPU times of device 0 were moved by +14 us: what is right lies between +9 us and +21 us"
    )


def test_every_contradiction_has_a_meaning() -> None:
    assert set(MEANINGS) == set(CODES)


@pytest.mark.parametrize("code", sorted(MEANINGS))
def test_each_contradiction_is_said_and_weighed(code: str) -> None:
    few = data_quality(trace_with(contradiction=Contradiction(code, 1, 100_000, amount=1000.0)))
    many = data_quality(trace_with(contradiction=Contradiction(code, 60_000, 100_000, amount=1000.0)))
    (one,), (other,) = ([found for found in part if found.code == code] for part in (few, many))
    assert "{" not in one.what + one.why
    assert other.severity == ("warning" if code == "gpu_work_late" else "critical")
    assert (one.count, other.count, other.share) == (1, 60_000, 0.6)


def test_a_contradiction_withholds_what_rests_on_the_joint_timeline_and_leaves_the_rest() -> None:
    summary = summarize(trace_with(Clock(**CLOCK, verdict="contradiction")))
    assert (summary.launches, summary.queues, summary.idle) == (None, [], [])
    assert summary.devices[0].utilization is None
    assert summary.devices[0].busy_ns == 255_000
    assert summary.kernels
    assert summary.steps[0].kernel_ns == 85_000


def test_the_host_whose_clock_is_another_is_named() -> None:
    late: list[Row] = [
        (kind, name, ts + (10**9 if "r1:" in track else 0), dur, track, *more)
        for kind, name, ts, dur, track, *more in comm(60_000, 10_000)
    ]
    trace = memory_trace(late, ranks=2, hosts=("n1", "n2"))
    (found,) = [one for one in data_quality(trace) if one.code == "rank_clock_offset"]
    assert found.what.startswith("the clock of rank 1 on n2 is not that of rank 0 on n1: ")
    report = summarize(trace).ranks
    assert report is not None
    assert [row.host for row in report.ranks] == ["n1", "n2"]


def test_a_rank_whose_clock_is_another() -> None:
    """Rank 0 is in the collective from 10 to 70 us, rank 1 a second later for 10 us."""
    rows = comm(60_000, 10_000)
    sound = data_quality(memory_trace(rows, ranks=2))
    assert "rank_clock_offset" not in {one.code for one in sound}
    late: list[Row] = [
        (kind, name, ts + (10**9 if "r1:" in track else 0), dur, track, *more)
        for kind, name, ts, dur, track, *more in rows
    ]
    trace = memory_trace(late, ranks=2)
    (found,) = [one for one in data_quality(trace) if one.code == "rank_clock_offset"]
    assert (found.severity, found.count) == ("critical", 1)
    report = summarize(trace).ranks
    assert report is not None
    assert not report.clocks_comparable
    assert report.collectives[0].skew_max_ns is None


def test_a_sound_trace_says_nothing() -> None:
    codes = {one.code for one in data_quality(memory_trace([*BUSY, step(9, 10**6, 10**5)]))}
    assert not codes & (set(MEANINGS) | {"gpu_clock_offset", "clock_contradiction"})
