"""Whether two recordings saw the same kernels, in words."""

from __future__ import annotations

from profrun.analysis.compare.kernel_agreement import kernels_of_both
from profrun.contract.denominator import RECORDING
from profrun.reports.seen_kernels_text import answer_line, seen_kernels_text
from profrun.reports.terminal_layout import Style
from tests.analysis.compare.conftest import Recorded
from tests.analysis.compare.trials import OTHER, trial


def test_the_same_kernels() -> None:
    found = kernels_of_both([trial(label="one")], [trial(OTHER, label="two")])
    text = seen_kernels_text(found).splitlines()
    assert text[0] == (
        "one and two saw the same kernels: 1 name, 1 launch per step on both sides; "
        "they take 50.2 ns -> 49.8 ns per step"
    )
    assert text[1] == "a: one (torch, 5 steps); 0 copies and fills per step take 0 ns"
    assert text[6].split() == ["both", "k", "1", "1", "50.2", "ns", "49.8", "ns", "-0.4", "ns"]


def test_kernels_that_only_one_side_saw_stand_first(recorded: Recorded) -> None:
    found = kernels_of_both([recorded("h200/torch/mlp")], [recorded("h200/torch/mlp_compile")])
    text = seen_kernels_text(found, Style(80), top=1)
    assert max(map(len, text.splitlines())) <= 80
    words = [line.split()[:2] for line in text.splitlines() if line.startswith("  ")]
    assert [pair for pair in words if pair[1] == "only"] == [["b", "only"], ["a", "only"], ["a", "only"]]
    assert "3 of 5 names are not launched as often" in answer_line(found)
    assert "... and 1 more that are launched as often" in text


def test_a_doubt_is_said_before_anything_else() -> None:
    found = kernels_of_both([trial()], [trial(OTHER, measure="recording", denominator=RECORDING)])
    text = seen_kernels_text(found).splitlines()
    assert text[0].startswith("it is not known whether a and b saw the same kernels")
    assert text[1].startswith("doubt: side b has no steps")
    assert "no steps: the whole recording counts as one" in text[3]
