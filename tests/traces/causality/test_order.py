"""Order on a stream: what can explain an overlap, and work against the order of its launches."""

from __future__ import annotations

import pytest

from profrun.traces.causality.order import launch_order, overlaps, work_overlaps
from tests.traces.causality.kit import Row, codes, recording


def kernels(*spans: tuple[int, int], launch: int = -1) -> list[Row]:
    """Kernels of one stream: (start, end) in ns."""
    return [("kernel", "k", start, end - start, "stream 7", launch) for start, end in spans]


@pytest.mark.parametrize(
    ("spans", "able", "cause"),
    [
        (((0, 10_000), (9_500, 20_000)), False, "rounding"),
        (((0, 10_000), (8_000, 20_000)), False, "impossible"),
        (((0, 10_000), (8_000, 20_000)), True, "early"),
        (((0, 10_000), (8_000, 9_000)), True, "impossible"),  # ends first
        (((0, 30_000), (8_000, 40_000)), True, "impossible"),  # too long
        (((0, 10_000), (8_000, 20_000), (9_000, 30_000)), True, "impossible"),  # three at once
        (((0, 10_000), (10_000, 20_000)), False, None),
    ],
)
def test_what_can_explain_an_overlap(
    spans: tuple[tuple[int, int], ...], able: bool, cause: str | None
) -> None:
    rows = kernels(*spans)
    rows[0] = (*rows[0][:2], rows[0][2] + 1, rows[0][3] - 1, *rows[0][4:])  # not in whole us
    found = overlaps(recording(rows, early_launch=able))
    first = {name for name in ("rounding", "branches", "early", "impossible") if 0 in getattr(found, name)}
    assert first == ({cause} if cause else set())


def test_branches_of_one_graph_run_side_by_side() -> None:
    rows: list[Row] = [
        ("api", "cudaGraphLaunch", 0, 100, "main", -1),
        *kernels((1000, 9000), (3000, 20_000), launch=0),
    ]
    assert overlaps(recording(rows)).branches.tolist() == [0]
    assert work_overlaps(recording(rows)) == []


def test_streams_do_not_overlap_with_each_other() -> None:
    rows = [*kernels((0, 10_000)), ("kernel", "k", 2000, 10_000, "stream 9", -1)]
    assert work_overlaps(recording(rows)) == []


def test_an_overlap_that_nothing_explains() -> None:
    (found,) = work_overlaps(recording(kernels((0, 10_000), (4_000, 20_000), (30_000, 40_000))))
    assert (found.code, found.count, found.total, found.amount) == ("gpu_work_overlaps", 1, 3, 6000.0)


def test_work_that_overtakes_work_of_its_stream() -> None:
    rows: list[Row] = [
        ("api", "cudaLaunchKernel", 0, 100, "main", -1),
        ("api", "cudaLaunchKernel", 500, 100, "main", -1),
        ("kernel", "second", 2000, 500, "stream 7", 1),
        ("kernel", "first", 3000, 500, "stream 7", 0),
    ]
    (found,) = launch_order(recording(rows))
    assert (found.count, found.total, found.amount) == (1, 2, 400.0)
    swapped = [*rows[:2], (*rows[2][:5], 0), (*rows[3][:5], 1)]
    assert codes(launch_order(recording(swapped))) == {}
