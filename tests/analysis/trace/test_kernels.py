"""The kernel table: distributions and categories."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.kernels import categories, kernels
from tests.analysis.kit import memory_trace


def test_the_distribution_of_a_kernel() -> None:
    durs = [10, 20, 30, 40, 100]
    trace = memory_trace(
        [("kernel", "gemm", 1000 * place, dur, "stream 7") for place, dur in enumerate(durs)]
    )
    (row,) = kernels(trace)
    assert (row.calls, row.total_ns, row.mean_ns, row.p50_ns, row.min_ns, row.max_ns) == (
        5,
        200,
        40.0,
        30.0,
        10,
        100,
    )
    assert row.p99_ns == pytest.approx(40 + 0.96 * 60)
    assert row.stdev_ns == pytest.approx((sum((dur - 40) ** 2 for dur in durs) / 4) ** 0.5)
    assert row.share == 1.0


def test_categories_add_up_with_the_unknown_shown() -> None:
    rows = [
        ("kernel", "nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT", 0, 60, "stream 7"),
        ("kernel", "mine", 100, 40, "stream 7"),
    ]
    table = categories(kernels(memory_trace(rows)))
    assert [(row.category, row.total_ns, row.share) for row in table] == [
        ("gemm", 60, 0.6),
        ("unknown", 40, 0.4),
    ]
