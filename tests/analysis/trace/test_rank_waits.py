"""How long collectives wait, and for which rank."""

from __future__ import annotations

from profrun.analysis.trace.rank_waits import rank_waits
from tests.analysis.kit import Row, memory_trace
from tests.analysis.rules.cases import NCCL, NVJET

EXTRA = {"collectives.op": "allreduce", "collectives.group": "0"}


def allreduces(rank: int, *times: tuple[int, int]) -> list[Row]:
    return [("kernel", NCCL, start, dur, f"r{rank}:stream 9", EXTRA) for start, dur in times]


def test_the_rank_with_the_shortest_collective_came_last() -> None:
    """Rank 1 is late in the first one by 70 ns, rank 0 in the second by 20 ns; the third has no partner."""
    rows = [*allreduces(0, (0, 100), (200, 30), (300, 5)), *allreduces(1, (70, 30), (180, 50))]
    found = rank_waits(memory_trace(rows, ranks=2))
    assert list(zip(found.ids.tolist(), found.wait_ns.tolist(), found.late.tolist(), strict=True)) == [
        (0, 70, 1), (1, 0, 0), (3, 0, 1), (4, 20, 0),
    ]  # fmt: skip


def test_without_collectives_there_is_nothing_to_wait_for() -> None:
    rows: list[Row] = [("kernel", NVJET, 0, 10, f"r{rank}:stream 7") for rank in (0, 1)]
    assert not len(rank_waits(memory_trace(rows, ranks=2)).ids)
