"""A run some of whose trials finished with a trace, and a list of the traces that are opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profrun.traces.trace import Trace
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


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The traces that the test opens, in order."""
    found: list[Path] = []
    really = Trace.__init__

    def counted(self: Trace, path: Path, **more: Any) -> None:
        found.append(path)
        really(self, path, **more)

    monkeypatch.setattr(Trace, "__init__", counted)
    return found
