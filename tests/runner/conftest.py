"""A run some of whose trials finished with a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runner.scripted import begin, leave, new_run

SPEC = """
name: t
command: python x.py
variants: {a: {}, b: {}}
collectors: [none]
launch_blocking: both
repeats: 2
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run whose trials of a finished with a trace; b's second failed, b's blocking ones never ran."""
    run, plan = new_run(tmp_path, SPEC)
    for trial in plan.trials:
        if trial.variant == "b" and trial.blocking:
            continue
        paths = begin(run.trial(trial.id))
        paths.trace.mkdir()
        (paths.trace / "meta.json").write_text("{}")
        run.log().append("started", trial.id, attempt=1)
        leave(paths, "failed" if trial.variant == "b" and trial.repeat == 2 else "finished")
    return tmp_path
