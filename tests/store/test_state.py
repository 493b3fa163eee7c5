"""A run's state from its folder alone: the log folded, then corrected by what the trials left."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.contract.exit import Artefact
from profrun.contract.paths import TrialPaths
from profrun.errors import InputError
from profrun.store.documents import Steps
from profrun.store.lock import driving
from profrun.store.runs import Run
from profrun.store.state import read_state, read_trial
from tests.conftest import examples
from tests.runner.scripted import begin, leave, new_run

A = "000-a-none-r1"


def _begin(run: Run, trial: str = A, attempt: int = 1) -> TrialPaths:
    """A trial that was started."""
    paths = begin(run.trial(trial), attempt)
    handle = {"backend": "local", "data": {"pid": 1}}
    run.log().append("started", trial, attempt=attempt, handle=handle)
    return paths


def test_a_fresh_run_is_planned_and_nobody_drives_it(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    state = read_state(run)
    assert (state.job, state.backend, state.cwd, state.phase) == ("t", "scripted", tmp_path, "interrupted")
    assert [(t.id, t.state, t.attempt, t.steps) for t in state.trials] == [
        (A, "planned", 0, Steps()),
        ("001-b-none-r1", "planned", 0, Steps()),
    ]


def test_a_driven_run_is_running(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    with driving(run.lock, run.name):
        assert read_state(run).phase == "running"


def test_exit_json_is_right_where_the_log_says_otherwise(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    leave(_begin(run), "failed", reason="it broke", started_ns=5, ended_ns=9)
    record = read_state(run).trials[0]
    assert (record.state, record.exit_code, record.reason) == ("failed", 3, "it broke")
    assert (record.started_ns, record.ended_ns) == (5, 9)


def test_exit_json_of_an_earlier_attempt_says_nothing(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    leave(_begin(run), "failed")
    run.log().append("queued", A, attempt=2)
    assert read_state(run).trials[0].state == "queued"


def test_exit_json_of_a_later_attempt_counts_because_a_queue_starts_trials_again_by_itself(
    tmp_path: Path,
) -> None:
    """A requeued or preempted trial is a new attempt that no event of ours tells of."""
    run, _ = new_run(tmp_path)
    _begin(run)
    leave(begin(run.trial(A), 2), artefacts=(Artefact("raw/rank0/x.sqlite", 1, "whole"),))
    record = read_state(run).trials[0]
    assert (record.state, record.attempt) == ("finished", 2)
    assert record.exit is not None
    assert len(record.exit.artefacts) == 1  # of which its trace is made


def test_a_damaged_exit_json_is_no_success(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    paths = _begin(run)
    for content in ("", "{", "[]", '{"state": 1}'):
        paths.exit.write_text(content)
        assert read_state(run).trials[0].state == "running"


def test_damaged_steps_are_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    leave(_begin(run))
    (run.trial(A).folder / "raw/rank0/steps.json").write_text('{"steps": [{"step": 0}]}')
    state = read_state(run)
    assert state.trials[0].state == "finished"
    assert "steps.json is damaged" in state.notes[0]


def test_one_trial_reads_like_all(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    leave(_begin(run), "failed", reason="it broke")
    assert [read_trial(run, item.id) for item in read_state(run).trials] == list(read_state(run).trials)
    with pytest.raises(InputError, match="has no trial 9"):
        read_trial(run, "9")


def test_torn_lines_are_counted(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    with run.events.open("ab") as file:
        file.write(b'{"ts":1,"event":"sta')
    assert read_state(run).notes == ("1 unreadable lines in events.jsonl",)


def test_a_run_without_a_plan_is_broken_and_a_folder_without_created_is_none(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    run.plan.unlink()
    assert read_state(run).phase == "broken"
    run.events.write_text("")
    with pytest.raises(InputError, match="not a whole run"):
        read_state(run)


@given(st.data())
@examples(40, 1000)
def test_any_prefix_of_a_log_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A kill may come between any two bytes; what was known before it stays known."""
    root = tmp_path_factory.getbasetemp() / "prefix"
    if not root.exists():
        run, _ = new_run(root)
        leave(_begin(run))
        log = run.log()
        log.append("finished", A, state="finished", exit_code=0)
        log.append("normalised", A, trace=f"trials/{A}/trace")
        log.append("done", state="failed")
        (root / "name").write_text(run.name)
        (root / "whole").write_bytes(run.events.read_bytes())
    run = Run(root / (root / "name").read_text())
    whole = (root / "whole").read_bytes()
    first = whole.index(b"\n") + 1
    started = whole.index(b'"started"')
    cut = data.draw(st.integers(first, len(whole)))
    run.events.write_bytes(whole[:cut])
    record = read_state(run).trials[0]
    known = whole.index(b"\n", started) <= cut
    assert record.state == ("finished" if known else "planned")
