"""Traces that another process makes: the same trace, and what happens where that process fails."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from profrun.runner.drive import drive
from profrun.runner.interrupt import Interrupts
from profrun.runner.make_trace import made_elsewhere, trace_command
from profrun.runner.trial_files import Normalised, normalise
from profrun.store.state import read_state, read_trial
from profrun.traces.schema import TABLES
from profrun.traces.trace import Trace
from tests.runner.scripted import Scripted, Watcher, begin, leave, new_run

A = "000-a-none-r1"
HERE = ("env", "PROFRUN_ELSEWHERE=1")
"""Stands for srun: words before a command that carry it out."""

CLAIM = '{"made": true, "error": null, "seconds": 1}'


def _never() -> None:
    """Nothing to show."""


def test_another_process_makes_the_same_trace(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    for rank in ("rank0", "rank1", "rank2"):
        leave(begin(run.trial(A)))
        steps = run.trial(A).raw / "rank0/steps.json"
        document = json.loads(steps.read_text())
        (run.trial(A).raw / rank).mkdir(exist_ok=True)
        (run.trial(A).raw / rank / "steps.json").write_text(json.dumps({**document, "rank": int(rank[-1])}))
    record = read_trial(run, A)
    assert normalise(run, record).error is None
    here = tmp_path / "here"
    shutil.move(record.paths.trace, here)
    done = made_elsewhere(HERE, run, record, _never)
    assert isinstance(done, Normalised), done
    assert done.trace == record.paths.trace
    with Trace(here) as one, Trace(done.trace) as other:
        assert one.meta == other.meta
        assert one.meta["counts"]["rows"]["step_times"] > 0
        for table in TABLES:
            assert one.sql(f'FROM "{table}"').rows == other.sql(f'FROM "{table}"').rows, table


def test_a_trace_that_another_process_has_made_meanwhile_stays(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    leave(begin(run.trial(A)))
    record = read_trial(run, A)
    assert normalise(run, record).error is None
    mark = record.paths.trace / "first"
    mark.touch()
    done = made_elsewhere(HERE, run, record, _never)
    assert isinstance(done, Normalised)
    assert done.trace == record.paths.trace
    assert mark.exists()
    assert [path.name for path in record.paths.folder.glob("trace*")] == ["trace"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("/no/such/srun",), "/no/such/srun cannot be started: No such file or directory"),
        (("sh", "-c", "echo x >&2; echo Requested nodes are busy >&2; exit 1"), "Requested nodes are busy"),
        (("sh", "-c", "exit 3"), "it ended with exit code 3"),
        (
            ("sh", "-c", """echo '{"made": true, "error": null, "seconds": 1}'"""),
            "what it made is not seen here",
        ),
    ],
)
def test_why_there_is_no_trace_is_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    leave(begin(run.trial(A)))
    assert made_elsewhere(words, run, read_trial(run, A), _never) == said


def test_a_command_names_this_python_and_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = new_run(tmp_path)
    words = trace_command(("srun",), run, A)
    assert words == ["srun", sys.executable, "-m", "profrun.runner.make_trace", str(run.path), A]


@pytest.mark.parametrize("words", [HERE, ("false",)])
def test_a_run_has_its_traces_also_where_the_other_place_fails(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    run, plan = new_run(tmp_path)
    watcher = Watcher()
    engine = Scripted(elsewhere=words)
    drive(run, plan, engine, cwd=run.path, observer=watcher, interrupts=Interrupts())
    assert [trial.trace is not None for trial in read_state(run).trials] == [True, True]
    noted = f"{A}: its trace is made here, not on a node: it ended with exit code 1"
    assert (noted in watcher.notes) == (words != HERE)


def test_a_trial_that_left_nothing_costs_no_job(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    watcher = Watcher()
    engine = Scripted(
        elsewhere=("sh", "-c", f"touch {tmp_path}/asked"), ends={trial.id: "lost" for trial in plan.trials}
    )
    drive(run, plan, engine, cwd=run.path, observer=watcher, interrupts=Interrupts())
    assert not (tmp_path / "asked").exists()
    assert watcher.notes == []
