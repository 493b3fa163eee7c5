"""Run folders: made, listed, found by whatever a person types."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

import pytest

from profrun.errors import InputError, UnavailableError, UsageError
from profrun.plans.model import PlanFile
from profrun.store.runs import Run, all_runs, create, created, find, read_plan, run_name
from profrun.store.state import read_state
from tests.runner.scripted import new_run

NAMES = ("gpt-20260102T030405Z-00aa", "gpt-20260102T030405Z-01bb", "bert-20260203T000000Z-aaaa")


def _runs(root: Path) -> None:
    for name in NAMES:
        (root / name).mkdir(parents=True)
        Run(root / name).log().append("created", run=name)


def test_a_name_holds_job_time_and_token() -> None:
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    assert run_name("gpt", now, "00aa") == NAMES[0]


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("last", NAMES[2]),
        (NAMES[1], NAMES[1]),
        ("bert", NAMES[2]),
        ("gpt-20260102T030405Z-00", NAMES[0]),
        (f"runs/{NAMES[0]}", NAMES[0]),
        (f"./runs/{NAMES[0]}/", NAMES[0]),
    ],
)
def test_a_run_is_found_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _runs(Path("runs"))
    assert find(Path("runs"), reference).path == tmp_path / "runs" / name


def test_an_ambiguous_beginning_lists_what_it_may_mean(tmp_path: Path) -> None:
    _runs(tmp_path)
    with pytest.raises(UsageError, match=f"'gpt' is the beginning of 2 runs: {NAMES[1]}, {NAMES[0]}"):
        find(tmp_path, "gpt")


def test_an_unknown_run_says_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no runs there"):
        find(tmp_path / "nowhere", "last")
    _runs(tmp_path)
    with pytest.raises(UsageError, match=f"no run 'x'.*the runs there are {NAMES[2]}"):
        find(tmp_path, "x")


def test_listed_oldest_first_and_other_folders_left_out(tmp_path: Path) -> None:
    _runs(tmp_path)
    (tmp_path / "zzz").mkdir()
    assert [run.name for run in all_runs(tmp_path)] == list(NAMES)


def _create(root: Path) -> Run:
    return create(
        root,
        "gpt",
        spec_text="name: gpt\n",
        resolved_text="name: gpt\nimage: x\n",
        plan={"job": "gpt", "vendor": "auto", "warnings": [], "trials": [], "format": 2},
        backend="local",
        cwd=Path("/somewhere"),
        version="0",
    )


def test_a_fresh_run_can_be_read_back(tmp_path: Path) -> None:
    run = _create(tmp_path / "deep" / "runs")
    assert created(run)["cwd"] == "/somewhere"
    assert read_plan(run) == PlanFile("gpt", "auto", (), ())
    assert run.job.read_text() == "name: gpt\n"
    assert sorted(path.name for path in run.path.iterdir()) == [
        "events.jsonl",
        "job.yaml",
        "plan.json",
        "resolved.yaml",
        "trials",
    ]


def test_a_run_killed_while_it_was_made_is_told_apart(tmp_path: Path) -> None:
    _runs(tmp_path)
    with pytest.raises(InputError, match="never planned to the end"):
        read_plan(find(tmp_path, "bert"))


def test_an_unwritable_runs_folder_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path, *args: object, **kwargs: object) -> None:
        raise PermissionError(13, os.strerror(13), str(path))

    monkeypatch.setattr(Path, "mkdir", denied)
    with pytest.raises(UnavailableError, match=r"runs cannot be written: Permission denied.*--runs DIR"):
        _create(tmp_path / "runs")


@pytest.mark.parametrize("trial", ["../../../victim", "/etc", "..", "", "a/b", "a\nb", "\x1b[2J"])
def test_a_plan_whose_trials_have_no_plain_names_is_damaged(tmp_path: Path, trial: str) -> None:
    run, _ = new_run(tmp_path)
    plan = json.loads(run.plan.read_text())
    plan["trials"][1]["id"] = trial
    run.plan.write_text(json.dumps(plan))
    with pytest.raises(InputError, match="which is no name of a folder"):
        read_plan(run)
    with pytest.raises(InputError, match="is damaged"):
        run.trial(trial)
    state = read_state(run)
    assert (state.phase, state.trials) == ("broken", ())


def test_a_name_that_no_file_can_have_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with pytest.raises(UsageError):
        find(tmp_path / "runs", "x" * 100_000)
