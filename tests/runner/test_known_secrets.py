"""Which values a run and the environment keep secret."""

from __future__ import annotations

from pathlib import Path

from profrun.contract.private import Private
from profrun.runner.known_secrets import known_secrets
from profrun.store.private import write_private
from tests.runner.scripted import begin, new_run


def test_values_of_the_run_of_its_trials_and_of_the_environment_by_name(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    write_private(run.path, Private(values=("of the run",)))
    write_private(begin(run.trial(plan.trials[0].id)).folder, Private(values=("of a trial", "of the run")))
    environ = {"API_TOKEN": "of the environment", "HOME": "/home/somebody", "PIN_PASSWORD": "short"}
    assert known_secrets(run, environ) == ("of the run", "of a trial", "of the environment")
    assert known_secrets(None, environ) == ("of the environment",)
