"""Bandwidth of collectives, with the wait for the slowest rank and without it."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.trace.collectives import bus_factor, collectives
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace

KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def two_ranks(group_size: int = 2, op: str = "allreduce") -> Trace:
    """Rank 1 comes 30 us late to the first and rank 0 10 us late to the second; each then takes 10 us."""
    columns: dict[str, Any] = {"collectives.op": op, "collectives.bytes": 1_000_000,
                               "collectives.group_size": group_size, "collectives.group": "0"}  # fmt: skip
    times = {0: [(0, 40_000), (110_000, 10_000)], 1: [(30_000, 10_000), (100_000, 20_000)]}
    return memory_trace(
        [
            ("kernel", KERNEL, ts, dur, f"r{rank}:stream 9", columns)
            for rank in times
            for ts, dur in times[rank]
        ],
        ranks=2,
    )


def test_with_all_ranks_the_transfer_counts_from_the_last_ranks_start() -> None:
    slow, late = collectives(two_ranks())
    assert [(row.rank, row.mean_ns, row.alg_gb_s) for row in (slow, late)] == [
        (0, 25_000, 40.0), (1, 15_000, pytest.approx(66.67, abs=0.01))]  # fmt: skip
    for row in (slow, late):  # without the wait both ranks have the same bandwidth
        assert (row.matched, row.transfer_ns, row.transfer_alg_gb_s, row.transfer_bus_gb_s) == (
            2, 10_000, 100.0, 100.0)  # fmt: skip


@pytest.mark.parametrize("trace", [two_ranks(group_size=8), two_ranks(op="send")],
                         ids=["six-ranks-missing", "pairs"])  # fmt: skip
def test_without_all_ranks_it_is_not_known_who_came_last(trace: Trace) -> None:
    for row in collectives(trace):
        assert (row.matched, row.transfer_ns, row.transfer_bus_gb_s) == (0, None, None)


def test_the_row_says_what_its_bandwidth_is_of() -> None:
    row = collectives(two_ranks())[0]
    assert row.alg_gb_s_of == "mean_ns, waiting for the slowest rank included"
    assert row.transfer_alg_gb_s_of == "transfer_ns, from the last rank's start"


@pytest.mark.parametrize(
    ("op", "size", "factor"),
    [
        ("allreduce", 8, 1.75), ("_allgather_base", 4, 0.75), ("reduce_scatter", 2, 0.5),
        ("all_to_all", 8, 0.875),
        ("broadcast", 8, 1.0), ("allreduce", None, None), ("send", None, 1.0),
    ],
)  # fmt: skip
def test_bus_factors_are_those_of_nccl_tests(op: str, size: int | None, factor: float | None) -> None:
    assert bus_factor(op, size) == factor


def test_collectives_with_their_bandwidths() -> None:
    columns = {"collectives.op": "allreduce", "collectives.bytes": 1000, "collectives.group_size": 4,
               "collectives.dtype": "float", "collectives.group": "0"}  # fmt: skip
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    rows: list[Row] = [("kernel", name, 100 * at, dur, "stream 9", columns)
            for at, dur in enumerate((10, 30))]  # fmt: skip
    rows.append(("kernel", "ncclDevKernel_AllGather_RING_LL", 500, 5, "stream 9"))
    first, second = collectives(memory_trace(rows))
    assert (first.op, first.calls, first.mean_ns, first.alg_gb_s, first.bus_gb_s) == (
        "allreduce",
        2,
        20.0,
        50.0,
        75.0,
    )
    assert (second.op, second.bytes, second.alg_gb_s) == ("allgather", None, None)
