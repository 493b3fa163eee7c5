"""The two sides of a comparison: what their names mean, and which names are refused."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from profrun.analysis.compare import ComparedTrial
from profrun.cli.compare_args import sides_of
from profrun.errors import UsageError
from profrun.runner.comparison_sides import BASELINE_FORMAT, Sides, read_sides
from profrun.runner.references import trace_paths
from profrun.store.files import write_json
from tests.tracekit import make_trace


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "it is there 0 times"),
        (["last/a-none", "last/b-none"], "it is there 0 times"),
        (["x", "vs", "y", "vs", "z"], "it is there 2 times"),
        (["vs", "last/a-none"], "nothing before 'vs'"),
        (["last/a-none", "vs"], "nothing after 'vs'"),
        (["last/a-none", "vs", "last/0"], "is on both sides"),
        (["last/a-none", "last/0", "vs", "last/b-none"], "is named twice on one side"),
    ],
)
def test_wrong_sides_are_said(root: Path, words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sides_of(words, root)


def test_sides_are_points_trials_and_folders(root: Path) -> None:
    folder = str(trace_paths("last/6", root)[0])
    sides = sides_of(["last/a-none", "vs", "last/b-none", folder], root)
    assert [label for label, _ in sides.a] == ["000-a-none-r1", "004-a-none-r2"]
    assert [label for label, _ in sides.b] == ["001-b-none-r1", "006-a-none-blocking-r2"]


def _trace(folder: Path, collector: str, *, faster: float = 1.0) -> Path:
    """20 steps of 100 us, then 40 of 112 us; the window is steps 10 to 14."""
    durs = [int((100 + step % 3 if step < 20 else 112 + step % 3) * 1000 * faster) for step in range(60)]
    starts = [sum(durs[:step]) for step in range(60)]
    times = [
        {
            "process": 0,
            "step": step,
            "ts_ns": start,
            "dur_ns": dur,
            "clock": "wall",
            "part": "active" if 10 <= step < 15 else "outside",
        }
        for step, (start, dur) in enumerate(zip(starts, durs, strict=True))
    ]
    seen = range(60) if collector == "none" else range(10, 15)
    rows = [("step", f"profrun.step#{step}", starts[step], durs[step], "main") for step in seen]
    windows = {str(row["step"]): row["part"] for row in times}
    meta = {"collector": collector, "extra": {"windows": windows} if collector == "none" else {}}
    make_trace(folder, rows, meta=meta, side={"step_times": times})
    return folder


def _medians(found: tuple[list[ComparedTrial], list[ComparedTrial]]) -> list[tuple[str, int, int]]:
    return [(one.phase, len(one.times), round(median(one.times) / 1000)) for side in found for one in side]


def test_sides_count_the_steady_steps_and_what_a_baseline_keeps(tmp_path: Path) -> None:
    paths = {name: _trace(tmp_path / name, "none", faster=faster) for name, faster in (("a", 1), ("b", 0.9))}
    a, b = (((name, path),) for name, path in paths.items())
    assert _medians(read_sides(Sides(a, b))) == [("steady", 40, 113), ("steady", 40, 102)]
    assert _medians(read_sides(Sides(a, b), "window")) == [("window", 5, 101), ("window", 5, 91)]
    assert _medians(read_sides(Sides(a, b), "all"))[0][:2] == ("all", 60)
    old = tmp_path / "old.json"
    (kept,) = read_sides(Sides(a, b), "window")[0]
    write_json(old, {"profrun_baseline": BASELINE_FORMAT, "trials": [kept.to_json()]})
    assert _medians(read_sides(Sides((("old", old),), b))) == [("window", 5, 101), ("window", 5, 91)]


def test_an_overhead_is_told_by_the_phase_that_the_profiler_recorded(tmp_path: Path) -> None:
    a = (("a", _trace(tmp_path / "a", "none")),)
    b = (("b", _trace(tmp_path / "b", "torch", faster=1.05)),)
    assert _medians(read_sides(Sides(a, b))) == [("recorded", 20, 101), ("window", 5, 106)]
