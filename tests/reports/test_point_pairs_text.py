"""Points that two runs have in common, in words."""

from __future__ import annotations

from profrun.analysis.compare.point_pairs import compare_points
from profrun.reports.compare_sentence import Called
from profrun.reports.point_pairs_text import point_pairs_text
from tests.analysis.compare.test_point_pairs import NONE, NSYS, TORCH, _run


def test_each_pair_has_a_line_and_what_changed_comes_after_them() -> None:
    found = compare_points(_run("r1", 1000, NONE, TORCH, NSYS), _run("r2", 1500, NONE, TORCH))
    lines = point_pairs_text(found).splitlines()
    assert lines[0].startswith("without a profiler: r1 1.003 us -> r2 1.503 us per step: 49.9 % slower [")
    assert lines[1].startswith("under torch: r1 1.003 us -> r2 1.503 us per step: 49.9 % slower [")
    assert lines[2] == "left out: v, nsys of r1: r2 has no such trial"
    assert lines[4] == "what changed under torch"
    assert lines[5].startswith("a r1: t, t, t (NVIDIA H200, torch, 3 trials, 15 steps)")


def test_refused_pairs_end_with_one_command() -> None:
    a, b = _run("r1", 1000, NONE, TORCH), _run("r2", 1500, NONE, TORCH, ranks=2)
    text = point_pairs_text(compare_points(a, b), called=Called(("r1", "vs", "r2"), "runs"))
    assert "no verdict: 1 ranks against 2" in text
    assert text.splitlines()[-1] == "  profrun compare r1 vs r2 --runs runs --allow ranks"
    assert text.count("--allow ranks") == 1


def test_several_variants_are_named_in_their_lines() -> None:
    a = _run("r1", 1000, NONE, variant="x") + _run("r1", 2000, NONE, variant="y")
    b = _run("r2", 1000, NONE, variant="x") + _run("r2", 1000, NONE, variant="y")
    lines = point_pairs_text(compare_points(a, b)).splitlines()
    starts = [line.split(":")[0] for line in lines if not line.startswith(" ")]
    assert starts == ["x, without a profiler", "y, without a profiler"]
