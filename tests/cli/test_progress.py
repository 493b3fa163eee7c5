"""Progress of a run on stderr: whole lines, or one line that fits the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.cli.progress import Progress
from tests.runner.scripted import begin, leave, new_run


def test_progress_without_a_terminal_is_whole_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, plan = new_run(tmp_path)
    first, second = plan.trials
    for trial in plan.trials:
        begin(run.trial(trial.id))
    leave(run.trial(first.id), steps=[1000, 3000, 2000])
    with Progress(run, plan, live=False) as progress:
        for event, trial_id, data in (
            ("resumed", None, {"kept": 0}),
            ("queued", first.id, {}),
            ("started", first.id, {}),
            ("state", first.id, {"state": "running"}),
            ("finished", first.id, {"state": "finished", "exit_code": 0}),
            ("normalised", first.id, {}),
            ("started", second.id, {}),
            ("finished", second.id, {"state": "failed", "exit_code": 3, "reason": "it broke"}),
            ("error", second.id, {"message": "torn"}),
            ("cancelled", None, {"by": "SIGINT", "grace_s": 60.0}),
            ("cancelled", None, {"by": "SIGINT", "grace_s": 0.0}),
        ):
            progress.event({"event": event, "trial": trial_id, **data})
        progress.tick([first.id])
    assert capsys.readouterr().err.splitlines() == [
        f"resuming {run.name}: 0 of 2 trials are finished",
        "[1/2] a, none, repeat 1: started",
        "[1/2] a, none, repeat 1: finished, 0 s, step 2 us",
        "[2/2] b, none, repeat 1: started",
        "[2/2] b, none, repeat 1: failed, 0 s (exit code 3): it broke",
        "  001-b-none-r1: no trace: torn",
        "ending after SIGINT: the profilers write their files; a second time kills at once",
        "killing after SIGINT",
    ]


def test_progress_on_a_terminal_fits_its_width(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    run, plan = new_run(tmp_path)
    with Progress(run, plan, live=True) as progress:
        progress.event({"event": "started", "trial": plan.trials[0].id})
        progress.tick([plan.trials[0].id])
        whole = progress.live_text([plan.trials[0].id, plan.trials[1].id], 79)
        cut = progress.live_text([plan.trials[0].id], 20)
    assert whole == "[1/2] a, none, repeat 1 (+1 more): running, 0 s"
    assert cut == "[1/2] a, none, re..."


def test_a_refusal_of_many_is_not_told_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, plan = new_run(tmp_path)
    with Progress(run, plan, live=False) as progress:
        for trial in plan.trials:
            data = {"state": "lost", "code": "never-started", "reason": "sbatch refused"}
            progress.event({"event": "finished", "trial": trial.id, **data})
    assert capsys.readouterr().err == ""
