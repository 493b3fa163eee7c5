"""Several ranks: waits, skew and imbalance by hand."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.ranks import compare_ranks
from tests.analysis.kit import memory_trace, step
from tests.analysis.rules.cases import comm


def test_who_waits_for_whom_by_hand() -> None:
    report = compare_ranks([memory_trace(comm(60_000, 10_000), ranks=2)])
    assert report is not None
    first, second = report.ranks
    assert (first.waited_ns, first.waited_for_ns, first.last) == (50_000, 0, 0)
    assert (second.waited_ns, second.waited_for_ns, second.last) == (0, 50_000, 1)
    (skew,) = report.collectives
    assert (skew.latency_ns, skew.wait_ns, skew.skew_max_ns) == (10_000, 50_000, 50_000)
    assert skew.alg_gb_s == pytest.approx((1 << 20) / 10_000)
    assert skew.bus_gb_s == skew.alg_gb_s  # 2 (n - 1) / n = 1 for two ranks
    assert report.imbalance == pytest.approx(140 / 115 - 1)


def test_clocks_of_two_files_are_compared_only_on_one_host() -> None:
    one = memory_trace(comm(60_000, 10_000)[:4])
    columns = {"collectives.op": "allreduce", "collectives.group": "0"}
    rows = [("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 7, 10_000, "stream 9", columns)]
    other = memory_trace(rows, meta={"epoch_ns": None})
    report = compare_ranks([one, other])
    assert report is not None
    assert report.matched == 1
    assert not report.clocks_comparable
    assert report.collectives[0].skew_max_ns is None


def test_bounds_of_waits_and_skews_hold_whatever_the_clocks_are() -> None:
    report = compare_ranks([memory_trace(comm(60_000, 10_000), ranks=2)])
    assert report is not None
    first, second = report.ranks
    for row in report.ranks:
        assert row.waited_low_ns is not None
        assert row.waited_high_ns is not None
        assert row.waited_low_ns <= row.waited_ns <= row.waited_high_ns
        assert row.last_low is not None
        assert row.last_high is not None
        assert row.last_low <= row.last <= row.last_high
    (skew,) = report.collectives
    assert (skew.skew_max_low_ns, skew.skew_max_high_ns) == (0, 60_000)
    assert (first.clock_low_ns, first.clock_high_ns) == (0, 0)
    assert (second.clock_low_ns, second.clock_high_ns) == (-64_000, 14_000)


def test_one_collective_narrows_what_another_leaves_open() -> None:
    """Both ranks come to the second collective at once: it is short. So the first one was a real wait."""
    rows = comm(60_000, 10_000)
    columns = {"collectives.op": "allreduce", "collectives.group": "0", "collectives.bytes": 1 << 20}
    for rank in (0, 1):
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        rows.append(("kernel", name, 500_000, 3_000, f"r{rank}:stream 9", columns))
    report = compare_ranks([memory_trace(rows, ranks=2)])
    assert report is not None
    first, second = report.ranks
    assert (first.waited_low_ns, second.last_low) == (43_000, 1)
    assert (second.clock_low_ns, second.clock_high_ns) == (-7_000, 7_000)


def test_one_rank_has_nothing_to_compare() -> None:
    assert compare_ranks([memory_trace([step(0, 0, 10)])]) is None
