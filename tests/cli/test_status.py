"""``profrun status``: where a run stands, also when its files are damaged."""

from __future__ import annotations

import pytest

from profrun.store.lock import driving
from profrun.store.runs import Run
from tests.cli.running import Capture, call


def test_status_of_an_interrupted_run_says_how_to_go_on(run: Run, capsys: Capture) -> None:
    done = call(capsys, "status", run.path)
    assert done.code == 0
    assert f"{run.name}: interrupted, 1 of 2 trials finished" in done.out
    assert f"continue it with `profrun resume {run.name}`" in done.out
    with driving(run.lock, run.name):
        assert f"{run.name}: running" in call(capsys, "status", run.path).out


@pytest.mark.parametrize("content", ['{"a"', "[]", '{"comparisons": 3}', '{"expectations": [1]}'])
def test_a_damaged_comparison_hides_no_trial(run: Run, capsys: Capture, content: str) -> None:
    before = call(capsys, "status", run.path, "--json").json
    run.comparison.write_text(content)
    done = call(capsys, "status", run.path)
    assert done.code == 0
    assert [line for line in done.out.splitlines() if "comparison.json" in line and "resume" in line]
    after = call(capsys, "status", run.path, "--json").json
    assert (after["trials"], len(after["notes"])) == (before["trials"], len(before["notes"]) + 1)
