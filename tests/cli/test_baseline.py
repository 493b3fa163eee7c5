"""``profrun baseline``: numbers of a run in a file, compared with later."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Capture, call
from tests.cli.sides import TRIALS, words_of


@pytest.mark.thorough
def test_a_baseline_stands_for_the_trials_it_was_made_of(
    sides: Path, kept: Path, tmp_path: Path, capsys: Capture
) -> None:
    other, kept = kept / "b.json", tmp_path / "kept"
    saved = call(capsys, "baseline", "save", "main", *words_of("a"), "--dir", kept, "--json").json
    assert (saved["path"], saved["trials"]) == (str(kept / "main.json"), TRIALS)
    then = call(capsys, "compare", kept / "main.json", "vs", other, "--json").json
    now = call(capsys, "compare", *words_of("a"), "vs", *words_of("b"), "--json").json
    assert then == now
    (listed,) = call(capsys, "baseline", "list", "--dir", kept, "--json").json["baselines"]
    assert (listed["name"], listed["trials"]) == ("main", TRIALS)
    assert 1_000_000 <= listed["median_step_ns"] <= 1_002_000
    assert "main" in call(capsys, "baseline", "list", "--dir", kept).out
    again = call(capsys, "baseline", "save", "main", "a0", "--dir", kept)
    assert (again.code, "exists already" in again.err) == (64, True)
    assert call(capsys, "baseline", "save", "main", "a0", "--dir", kept, "--force").code == 0
    assert "no baselines in" in call(capsys, "baseline", "list", "--dir", tmp_path / "none").out


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"profrun_baseline": 1, "trials": [{"format": 1}]}'])
def test_what_is_no_baseline_is_said(sides: Path, tmp_path: Path, capsys: Capture, content: str) -> None:
    (tmp_path / "x.json").write_text(content)
    done = call(capsys, "compare", tmp_path / "x.json", "vs", "a0")
    assert done.code == 65
    assert "profrun baseline save" in done.err
