"""What the ranks of ``profrun wrap`` have left becomes a run."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profrun.contract.codec import to_json
from profrun.contract.command import Command
from profrun.contract.exit import Exit
from profrun.contract.recording import Rank
from profrun.errors import InputError, UsageError
from profrun.in_job.wrap_join import Asked, join
from profrun.jobs.dump import yaml_text
from profrun.jobs.load import load_job
from profrun.plans.make import make_plan
from profrun.runner.pipeline import finish, reopen
from profrun.runner.wrapped import complete, is_wrapped, job_of, launches, spec_of
from profrun.store.files import write_json
from profrun.store.runs import Run, read_plan
from profrun.store.state import RunState
from tests.runner.scripted import leave

COMMAND = Command(
    "", "out", "train", "a", "none", ("python", "x.py", "{b}"), "/w", profiler="none", values={"lr": 1}
)


def launch(out: Path, *ranks: int, world: int = 2, ends: bool = True, **more: Any) -> str:
    """Let ranks come; with ``ends``, rank 0 leaves steps and ``exit.json``. Returns the trial's id."""
    own = [Asked(replace(COMMAND, **more), Rank(rank, 0, world), f"{more}", "Open MPI") for rank in ranks]
    joined = [join(out, asked) for asked in own]
    paths, command = joined[0]
    paths.hook.mkdir(exist_ok=True)
    if ends:
        leave(paths)
    return command.trial


def completed(out: Path) -> tuple[RunState, list[str]]:
    told: list[str] = []
    state, plan = complete(out, told.append)
    assert finish(state, plan) == []
    return state, told


def test_a_folder_becomes_a_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert not is_wrapped(out)
    names = [launch(out, 0, 1), launch(out, 1, 0, variant="b", values={"lr": 2})]
    assert is_wrapped(out)
    state, told = completed(out)
    assert told == []
    assert (state.phase, state.backend, state.job) == ("finished", "wrap", "train")
    assert [record.id for record in state.trials] == names == ["000-a-none-r1", "001-b-none-r1"]
    assert all(record.trace is not None for record in state.trials)
    assert [trial.values for trial in read_plan(Run(out)).trials] == [{"lr": 1}, {"lr": 2}]
    assert Run(out).report.exists()
    assert Run(out).comparison.exists()


def test_again_makes_only_what_is_new(tmp_path: Path) -> None:
    launch(tmp_path, 0, 1)
    completed(tmp_path)
    trace = tmp_path / "trials/000-a-none-r1/trace/meta.json"
    before = trace.stat().st_mtime_ns
    launch(tmp_path, 0, 1, variant="b")
    state, _ = completed(tmp_path)
    assert [record.state for record in state.trials] == ["finished", "finished"]
    assert trace.stat().st_mtime_ns == before
    text = Run(tmp_path).events.read_text()
    assert text.count('"event":"created"') == 1
    assert text.count('"event":"finished"') == 2


def test_ranks_that_are_missing_are_named(tmp_path: Path) -> None:
    launch(tmp_path, 1, 2, world=5, ends=False)
    state, told = completed(tmp_path)
    assert told == [
        "000-a-none-r1: ranks 0, 3-4 of 5 have never come",
        "000-a-none-r1: no word of the end of ranks 1-2: still running, or killed",
    ]
    (record,) = state.trials
    assert (state.phase, record.state) == ("failed", "lost")
    assert record.reason == "rank 0 has never come; ranks 1-2 did"


def test_a_trial_that_ends_later_is_taken_then(tmp_path: Path) -> None:
    trial = launch(tmp_path, 0, 1, ends=False)
    state, told = completed(tmp_path)
    assert told == [f"{trial}: no word of the end of ranks 0-1: still running, or killed"]
    assert state.trials[0].reason == (
        "rank 0 has not said how the trial ended: it still runs, or it was killed"
    )
    paths = Run(tmp_path).trial(trial)
    leave(paths)
    state, told = completed(tmp_path)
    assert (state.phase, state.trials[0].state, told) == ("finished", "finished", [])
    assert state.trials[0].trace is not None


def test_a_trial_whose_folder_was_removed_is_left_out(tmp_path: Path) -> None:
    """What failed need not stay in the run; the others keep their numbers."""
    names = [launch(tmp_path, 0, world=1, variant=variant) for variant in "ab"]
    completed(tmp_path)
    shutil.rmtree(Run(tmp_path).trial(names[0]).folder)
    state, _ = completed(tmp_path)
    assert [(record.id, record.index) for record in state.trials] == [("001-b-none-r1", 1)]
    shutil.rmtree(Run(tmp_path).trial(names[1]).folder)
    with pytest.raises(InputError, match="nothing was recorded"):
        complete(tmp_path, print)


def test_what_a_late_rank_says_is_added(tmp_path: Path) -> None:
    """Rank 0 had given up on it: it was called failed."""
    trial = launch(tmp_path, 0, 1)
    paths = Run(tmp_path).trial(trial)
    own = Exit(trial, "finished", exit_code=0, wrappers=2)
    write_json(paths.answer(0), to_json(own))
    write_json(paths.exit, to_json(replace(own, state="failed", code="rank-silent", silent=(1,))))
    state, told = completed(tmp_path)
    assert (state.trials[0].state, told) == (
        "failed",
        [f"{trial}: no word of the end of rank 1: still running, or killed"],
    )
    write_json(paths.answer(1), to_json(replace(own, rank=1)))
    state, told = completed(tmp_path)
    assert (state.phase, state.trials[0].state, told) == ("finished", "finished", [])


def test_the_spec_of_the_run_describes_its_commands(tmp_path: Path) -> None:
    launch(tmp_path, 0, world=1)
    launch(tmp_path, 0, world=1, collector="torch", profiler="torch", options={"with_stack": True})
    completed(tmp_path)
    job = load_job(Run(tmp_path).resolved)
    assert job == job_of(yaml_text(spec_of(launches(tmp_path))))
    trials = make_plan(job).trials
    assert [(trial.id, trial.argv) for trial in trials] == [
        ("000-a-none-r1", COMMAND.argv),
        ("001-a-torch-r1", COMMAND.argv),
    ]
    assert trials[1].options == {"torch": {"with_stack": True}}


def test_variants_with_commands_of_their_own(tmp_path: Path) -> None:
    argv = {"a": ("python", "x.py", "--lr", "1"), "b": ("python", "x.py", "--text", "a b's")}
    for variant, words in argv.items():
        launch(tmp_path, 0, world=1, variant=variant, argv=words)
    completed(tmp_path)
    job = load_job(Run(tmp_path).resolved)
    assert {trial.variant: trial.argv for trial in make_plan(job).trials} == argv


def test_nothing_of_profrun_can_go_on_with_it(tmp_path: Path) -> None:
    launch(tmp_path, 0, world=1)
    completed(tmp_path)
    with pytest.raises(UsageError, match="another launcher started the trials of this run"):
        reopen(Run(tmp_path))


def test_what_is_no_such_folder(tmp_path: Path) -> None:
    (tmp_path / "launches").mkdir()
    with pytest.raises(InputError, match="nothing was recorded"):
        complete(tmp_path, print)
    launch(tmp_path, 0, world=1)
    Run(tmp_path).log().append("created", backend="local")
    with pytest.raises(UsageError, match="is a run already"):
        complete(tmp_path, print)
    (tmp_path / "launches/000/launch.json").write_text("{}")
    with pytest.raises(InputError, match=r"launch\.json is damaged"):
        complete(tmp_path, print)


@pytest.mark.parametrize("name", ["lock", "events.jsonl", "trials/000-a-none-r1/trace"])
def test_nothing_is_written_through_a_link(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    launch(out, 0, 1)
    (tmp_path / "victim").write_text("mine")
    (out / name).symlink_to(tmp_path / "victim")
    with pytest.raises(InputError, match="symbolic link"):
        complete(out, print)
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.parametrize("trial", ["x-a-none-r1", "../../victim", "9999999999-a"])
def test_a_launch_of_a_trial_with_an_odd_name_is_damaged(tmp_path: Path, trial: str) -> None:
    launch(tmp_path, 0, 1)
    document = tmp_path / "launches/000/launch.json"
    document.write_text(document.read_text().replace("000-a-none-r1", trial))
    with pytest.raises(InputError, match="is damaged"):
        complete(tmp_path, print)
