"""``profrun runs``."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from profrun.cli.options import JsonOption, RunsOption, runs_root
from profrun.cli.output import columns, complain, emit, say

if TYPE_CHECKING:
    from profrun.store.state import RunState


EXAMPLES = (
    ("profrun runs", "the runs in ./runs"),
    ("profrun runs --runs /data/runs --json", "of another folder, for a script"),
)


def command(runs: RunsOption = None, json_: JsonOption = False) -> None:
    """List the runs."""
    from profrun.errors import ProfrunError
    from profrun.reports.tones import toned
    from profrun.store.runs import all_runs
    from profrun.store.state import read_state

    root = runs_root(runs)
    states = []
    for run in all_runs(root):
        try:
            states.append(read_state(run))
        except ProfrunError as error:
            complain(str(error))
    if json_:
        emit({"runs": [_document(state) for state in states]})
        return
    if not states:
        say(f"no runs in {root}; make one with `profrun submit JOB`")
        return
    rows = [
        (
            state.run.name,
            state.backend,
            toned(state.phase),
            f"{state.count('finished')}/{len(state.trials) - state.count('skipped')}",
            f"{datetime.datetime.fromtimestamp(state.created_ns // 10**9).astimezone():%Y-%m-%d %H:%M}",
        )
        for state in states
    ]
    say(columns(("run", "backend", "state", "trials", "created"), rows, right=(3,)))


def _document(state: RunState) -> dict[str, object]:
    return {
        "run": state.run.name,
        "path": str(state.run.path),
        "job": state.job,
        "backend": state.backend,
        "state": state.phase,
        "created_ns": state.created_ns,
        "trials": len(state.trials),
        "finished": state.count("finished"),
    }
