"""What a queue does to trials that profrun did not ask for: requeues between two looks, refusals of many."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from profrun.cli.progress import Progress
from profrun.contract.paths import TrialPaths
from profrun.contract.states import Status
from profrun.runner.drive import drive
from profrun.runner.interrupt import Interrupts
from profrun.store.state import read_state
from tests.runner.scripted import Scripted, Watcher, leave, new_run

A = "000-a-none-r1"


@dataclass
class Requeues(Scripted):
    """At the first look trial A has been ended by a signal and is about to start again."""

    def _one(self, trial_id: str, trial: TrialPaths) -> Status:
        seen = self._seen[trial_id] = self._seen.get(trial_id, 0) + 1
        if trial_id == A and seen == 1:
            leave(trial, "timeout")
            return Status("running")
        leave(trial)
        return Status("finished")


def test_an_end_from_outside_counts_when_the_queue_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """exit.json of the attempt that was requeued is there before the next look at the queue."""
    monkeypatch.setattr("profrun.runner.drive._LOOK_S", 0.01)
    monkeypatch.setattr("profrun.runner.trial_files.sources", lambda record: [])  # no reader is asked
    run, plan = new_run(tmp_path)
    engine = Requeues(concurrent=True, poll_s=0.5)
    state = drive(run, plan, engine, cwd=tmp_path, observer=Watcher(), interrupts=Interrupts())
    assert [trial.state for trial in state.trials] == ["finished", "finished"]
    assert read_state(run).phase == "finished"


def test_a_refusal_of_many_is_not_told_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, plan = new_run(tmp_path)
    with Progress(run, plan, live=False) as progress:
        for trial in plan.trials:
            data = {"state": "lost", "code": "never-started", "reason": "sbatch refused"}
            progress.event({"event": "finished", "trial": trial.id, **data})
    assert capsys.readouterr().err == ""
