"""``profrun logs``: the output of a trial that is named in any way."""

from __future__ import annotations

import pytest

from profrun.store.runs import Run
from tests.cli.running import Capture, call


@pytest.mark.parametrize("trial", [[], ["0"], ["000-a"], ["000-a-none-r1"]])
def test_logs_of_a_trial_by_any_name(run: Run, capsys: Capture, trial: list[str]) -> None:
    done = call(capsys, "logs", run.path, *trial)
    assert done.out == "out 1\nout 2\nerr\n"
    assert done.err == "000-a-none-r1 (finished)\n"


@pytest.mark.parametrize("trial", ["0-b", "xyz", "7"])
def test_logs_of_no_or_several_trials_is_64(run: Run, capsys: Capture, trial: str) -> None:
    done = call(capsys, "logs", run.path, trial)
    assert done.code == 64
    assert f"match {trial!r}" in done.err
