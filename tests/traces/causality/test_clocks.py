"""Offset and drift of a clock: what was planted lies inside the bounds, and what is right raises no alarm."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profrun.traces.causality.clocks import MARGIN_NS, chosen
from profrun.traces.causality.judge import judge, judge_and_repair
from profrun.traces.causality.model import Clock
from profrun.traces.causality.recording import Recording
from tests.conftest import examples
from tests.traces.causality.kit import Row, launches, recording, wait


@st.composite
def programs(draw: st.DrawFn) -> Recording:
    """A program that launches kernels and waits now and then; its times are those of one clock."""
    rows: list[Row] = []
    host, gpu = draw(st.integers(0, 10**6)), 0
    for _ in range(draw(st.integers(1, 40))):
        host += draw(st.integers(3, 200))
        start = max(host + draw(st.integers(3, 20)), gpu)
        gpu = start + draw(st.integers(1, 300))
        rows.append(("api", "cudaLaunchKernel", host * 1000, 2500, "main", -1))
        rows.append(("kernel", "k", start * 1000 + 7, (gpu - start) * 1000 - 14, "stream 7", len(rows) - 1))
        host += 3
        if draw(st.booleans()):
            end = max(host + 2, gpu + draw(st.integers(1, 9)))
            rows.append(("api", "cudaDeviceSynchronize", host * 1000, (end - host) * 1000, "main", -1))
            host = end
    return recording(rows)


def displaced(rec: Recording, offset: int, ppm: float = 0.0) -> Recording:
    """The same program recorded with a GPU clock that is ``offset`` ahead and runs faster."""
    gpu = np.flatnonzero(rec.tracks.device[rec.track] >= 0)
    first = int(rec.ts[gpu].min())
    for times in (rec.ts, rec.end):
        times[gpu] += offset + np.rint((times[gpu] - first) * ppm * 1e-6).astype(np.int64)
    return rec


def contains(clock: Clock, first: float, last: float) -> bool:
    bounds = ((clock.low_ns, clock.high_ns, first), (clock.last_low_ns, clock.last_high_ns, last))
    return all(
        (low is None or low <= true + 1) and (high is None or true - 1 <= high) for low, high, true in bounds
    )


@examples(150, 2000)
@given(programs())
def test_what_is_right_is_consistent(rec: Recording) -> None:
    (clock,) = judge(rec).clocks
    assert clock.verdict == "consistent"
    assert contains(clock, 0, 0)
    assert judge_and_repair(rec)[1] is None


@examples(150, 2000)
@given(programs(), st.integers(-(10**10), 10**10) | st.integers(-(10**5), 10**5))
def test_a_planted_offset_lies_inside_the_bounds(rec: Recording, offset: int) -> None:
    (clock,) = judge(displaced(rec, offset)).clocks
    assert clock.verdict in ("consistent", "offset")
    assert contains(clock, -offset, -offset)
    (again,) = judge_and_repair(rec)[0].clocks
    assert judge(rec.again()).clocks[0].verdict == "consistent"
    assert again.moved == (clock.verdict == "offset")


@examples(150, 2000)
@given(programs(), st.floats(-900, 900))
def test_a_planted_drift_lies_inside_the_bounds(rec: Recording, ppm: float) -> None:
    displaced(rec, 0, ppm)
    (clock,) = judge(rec).clocks
    assert clock.verdict in ("consistent", "offset", "drift")
    rate = ppm * 1e-6
    assert contains(clock, 0, -(clock.last_ns - clock.first_ns) * rate / (1 + rate))
    judge_and_repair(rec)
    assert judge(rec.again()).clocks[0].verdict == "consistent"


def test_a_clock_that_is_ahead_by_hand() -> None:
    """The kernel starts 28 us after its launch and ends 13 us after the wait; the tolerance is 2 us."""
    rows = [*launches((10, 18, 30), gpu=20), wait(15, 37)]
    (clock,) = judge(recording(rows)).clocks
    assert (clock.verdict, clock.constant_low_ns, clock.constant_high_ns) == ("offset", -29_999, -10_999)
    (clock,) = judge_and_repair(recording(rows))[0].clocks
    assert clock.moved_ns == clock.last_moved_ns == -10_999 - MARGIN_NS


def test_a_drift_by_hand() -> None:
    """A GPU clock that loses 1 us in 10 ms: 100 parts per million; launch and wait leave 12 us of play."""
    rows: list[Row] = []
    for call in range(0, 1_000_000, 10_000):
        kernel = launches((call, call + 8, call + 20), gpu=-call // 10_000)
        rows += [kernel[0], (*kernel[1][:5], len(rows)), wait(call + 5, call + 24)]
    (clock,) = judge_and_repair(recording(rows))[0].clocks
    assert clock.verdict == "drift"
    assert clock.drift_low_ppm is not None
    assert clock.drift_high_ppm is not None
    assert 80 < clock.drift_low_ppm < 100 < clock.drift_high_ppm < 120
    assert abs(clock.drift_ppm - 100) < 10


def outlying(count: int, early: int, gpu: int = 0) -> Clock:
    """Launches of which one kernel is ``early`` us too early, on a clock that is ``gpu`` us ahead."""
    rows: list[Row] = []
    for number in range(count):
        more = gpu - (early if number == count // 2 else 0)
        kernel = launches((20 * number, 20 * number + 8, 20 * number + 10), gpu=more)
        rows += [kernel[0], (*kernel[1][:5], len(rows)), wait(20 * number + 4, 20 * number + 12)]
    (clock,) = judge(recording(rows)).clocks
    return clock


def test_a_single_wrong_time_is_an_outlier() -> None:
    assert (outlying(200, 30).verdict, outlying(200, 30).outliers) == ("consistent", 1)
    assert (outlying(20, 3000).verdict, outlying(20, 3000).outliers) == ("consistent", 1)
    assert outlying(5, 3000).verdict == "contradiction"


def test_a_single_wrong_time_does_not_hide_an_offset() -> None:
    clock = outlying(200, 30, gpu=50)
    assert (clock.verdict, clock.outliers) == ("offset", 2)  # one of each side
    assert clock.constant_low_ns is not None
    assert clock.constant_high_ns is not None
    assert clock.constant_low_ns <= -50_000 <= clock.constant_high_ns


def test_the_offset_that_is_added() -> None:
    assert chosen(100_000, None) == 100_000 + MARGIN_NS
    assert chosen(None, -100_000) == -100_000 - MARGIN_NS
    assert chosen(-20_000, -18_000) == -19_000
    assert chosen(-5, 5) == 0
