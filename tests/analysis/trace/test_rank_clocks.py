"""Clocks of ranks from their collectives: which count, and how they are matched."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profrun.analysis.trace.rank_clocks import members, mutual, rank_clocks, trace_rank_clocks
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace


def collectives(
    *spans: tuple[int, int], rank: int, op: str = "allreduce", sizes: tuple[int, ...] = ()
) -> list[Row]:
    """Collectives of a rank as (start, end) in us."""
    rows: list[Row] = []
    for place, (start, end) in enumerate(spans):
        columns = {
            "collectives.op": op, "collectives.group": "0", "collectives.group_size": 2,
            "collectives.bytes": sizes[place] if sizes else 4096,
        }  # fmt: skip
        name = "ncclDevKernel_Generic"
        rows.append(("kernel", name, start * 1000, (end - start) * 1000, f"r{rank}:stream 9", columns))
    return rows


def bounds(rows: list[Row], **meta: object) -> tuple[int | None, int | None]:
    found = trace_rank_clocks(memory_trace(rows, ranks=2, meta=meta))
    assert found is not None
    return found.clocks[1].low_ns, found.clocks[1].high_ns


def test_bounds_by_hand() -> None:
    """Rank 1 ends 30 us after rank 0 began, and began 5 us before rank 0 ended; tolerance 2 us, twice."""
    rows = [*collectives((0, 20), rank=0), *collectives((15, 30), rank=1)]
    assert bounds(rows) == (-34_000, 9_000)


@pytest.mark.parametrize("op", ["broadcast", "reduce", "send", "recv", "alltoallv", "unknown"])
def test_collectives_in_which_a_rank_need_not_wait_for_all_say_nothing(op: str) -> None:
    rows = [*collectives((0, 20), rank=0, op=op), *collectives((15, 30), rank=1, op=op)]
    assert bounds(rows) == (None, None)
    assert not mutual(op)


@pytest.mark.parametrize("op", ["allreduce", "_allgather_base", "reduce_scatter", "all_to_all", "barrier"])
def test_collectives_in_which_every_rank_waits_for_all(op: str) -> None:
    assert mutual(op)


def test_collectives_of_different_sizes_were_matched_wrongly() -> None:
    """The first collective of rank 1 is the second of rank 0."""
    rows = [
        *collectives((0, 20), (100, 120), rank=0, sizes=(64, 128)),
        *collectives((115, 130), (200, 220), rank=1, sizes=(128, 64)),
    ]
    assert bounds(rows) == (None, None)


def test_another_number_of_collectives_leaves_open_which_belong_together() -> None:
    rows = [*collectives((0, 20), (100, 120), rank=0), *collectives((115, 130), rank=1)]
    assert bounds(rows) == (None, None)


def test_files_of_two_hosts_are_compared_on_the_axis_of_the_epoch() -> None:
    """The clock of the second host is 7 s ahead."""
    one = memory_trace(collectives((0, 20), rank=0), meta={"epoch_ns": 10**18})
    rows = [(*row[:4], "stream 9", row[5]) for row in collectives((15, 30), rank=0)]
    other = memory_trace(rows, meta={"epoch_ns": 10**18 + 7 * 10**9})
    found = rank_clocks(members([one, other]))
    low, high = found.clocks[1].low_ns, found.clocks[1].high_ns
    assert (low, high) == (-7_000_034_000, -7_000_000_000 + 9_000)
    assert not found.comparable


def test_two_gpus_of_one_host_have_one_clock(real: Callable[..., Trace]) -> None:
    pair = [real("h200/ddp/ddp_rank0.json.gz"), real("h200/ddp/ddp_rank1.json.gz")]
    found = rank_clocks(members(pair))
    assert found.consistent
    assert found.clocks[1].agrees
    assert found.clocks[1].collectives == 15
