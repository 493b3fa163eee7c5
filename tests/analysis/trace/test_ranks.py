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


def test_one_rank_has_nothing_to_compare() -> None:
    assert compare_ranks([memory_trace([step(0, 0, 10)])]) is None
