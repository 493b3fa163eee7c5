"""runner.progress: how a long reading of traces says how far it is."""

from pathlib import Path

from profrun.runner.comparison_sides import Sides, read_sides
from profrun.runner.progress import counted
from tests.tracekit import make_trace


def test_traces_are_counted_and_never_exceed_the_whole() -> None:
    told: list[tuple[int, int | None]] = []
    another = counted(lambda done, total: told.append((done, total)), 2)
    for _ in range(3):
        another()
    assert told == [(1, 2), (2, 2), (2, 2)]


def test_a_comparison_tells_of_every_trace(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        make_trace(tmp_path / name, [("kernel", "gemm", 0, 5, "stream 7")]).close()
    sides = Sides((("a", tmp_path / "a"), ("b", tmp_path / "b")), (("c", tmp_path / "c"),))
    told: list[tuple[int, int]] = []
    read_sides(sides, progress=lambda *count: told.append(count))
    assert told == [(1, 3), (2, 3), (3, 3)]
