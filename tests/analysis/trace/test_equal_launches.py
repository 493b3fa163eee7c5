"""Equal launches: same name, stream, grid, block and shapes."""

from __future__ import annotations

from profrun.analysis.trace.equal_launches import equal_launches
from tests.analysis.kit import Row, memory_trace
from tests.analysis.rules.cases import ADD, NVJET, grid


def test_launches_are_equal_in_name_stream_and_grid() -> None:
    rows: list[Row] = [
        ("kernel", ADD, 0, 10, "stream 7", grid(8)),
        ("kernel", ADD, 100, 10, "stream 7", grid(8)),
        ("kernel", ADD, 200, 10, "stream 7", grid(16)),
        ("kernel", ADD, 300, 10, "stream 9", grid(8)),
        ("kernel", NVJET, 400, 10, "stream 7", grid(8)),
        ("kernel", ADD, 500, 10, "stream 7"),  # its grid is not known
    ]
    found = equal_launches(memory_trace(rows))
    assert found.ids.tolist() == [0, 1, 2, 3, 4]
    first, again, *others = found.group.tolist()
    assert first == again
    assert len({first, *others}) == 4


def test_the_grid_of_a_matrix_kernel_does_not_tell_its_work() -> None:
    """Without the shapes of its op its inner dimension is not known."""
    rows: list[Row] = [
        ("op", "aten::mm", 0, 50, "main", {"ops.shapes": "[[8, 4], [4, 8]]"}),
        ("api", "cudaLaunchKernel", 5, 5, "main"),
        ("kernel", NVJET, 20, 10, "stream 7", {"launch": 1, **grid(8)}),
        ("kernel", NVJET, 60, 10, "stream 7", grid(8)),
        ("kernel", ADD, 90, 10, "stream 7", grid(8)),
    ]
    assert equal_launches(memory_trace(rows)).whole.tolist() == [True, False, True]


def test_a_trace_without_kernels() -> None:
    assert len(equal_launches(memory_trace([])).ids) == 0
