"""``profrun blocking``: launch-blocking twins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Capture, call
from tests.cli.sides import words_of
from tests.runner.scripted import new_run


@pytest.mark.thorough
def test_blocking_twins_by_hand(sides: Path, capsys: Capture) -> None:
    done = call(capsys, "blocking", *words_of("a"), "vs", *words_of("c"), "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found["points"] == [{key: value for key, value in found.items() if key != "points"}]
    assert found["ratio"] == pytest.approx(1.2, rel=0.01)
    assert (found["kernel_multiset_equal"], found["took_effect"]) == (True, True)
    text = call(capsys, "blocking", *words_of("a"), "vs", *words_of("c")).out
    assert "the same kernels in both runs" in text
    assert text.startswith("async 1 ms -> blocking 1.2 ms per step: 20.0 % slower [")


def test_blocking_of_a_run_needs_twins(tmp_path: Path, capsys: Capture) -> None:
    made, _ = new_run(tmp_path)
    done = call(capsys, "blocking", made.path)
    assert done.code == 65
    assert "has no launch-blocking twins" in done.err
    assert "--set launch_blocking=both" in done.err
