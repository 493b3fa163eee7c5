"""Readying a trial: earlier attempts are put aside whole, the wrapper is told exactly what was planned."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.backends.base import PreparedPlan
from profrun.contract.codec import to_json
from profrun.contract.paths import TrialPaths
from profrun.contract.sampling import SampledSource, SamplesHeader
from profrun.contract.steps import Anchor
from profrun.errors import UnavailableError
from profrun.runner.trial_files import normalise, prepare, rotate
from profrun.store import files
from profrun.store.state import read_trial
from profrun.traces.trace import Trace
from tests.conftest import examples
from tests.runner.scripted import Scripted, begin, leave, new_run
from tests.support.repository import commit

A = "000-a-none-r1"


def test_the_wrapper_is_told_what_was_planned(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    assert prepare(run, PreparedPlan(plan, Path("/src")), plan.trials[0], Scripted()) == 1
    told = json.loads((run.trial(A).folder / "command.json").read_text())
    assert (told["trial"], told["attempt"], told["cwd"]) == (A, 1, "/src")
    assert told["argv"] == ["python", "x.py", "--n", "1"]
    assert (run.trial(A).folder / "raw").is_dir()


def test_a_backend_may_change_what_the_job_sees(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine = Scripted()
    engine.adapt = lambda prepared, trial, run, command: replace(command, cwd="/work")  # type: ignore[method-assign]
    prepare(run, PreparedPlan(plan, Path("/src")), plan.trials[0], engine)
    assert json.loads((run.trial(A).folder / "command.json").read_text())["cwd"] == "/work"


def test_the_commit_is_that_of_the_submitting_side(tmp_path: Path) -> None:
    """Also where the backend gives the job other paths: git is asked here, with the paths of this machine."""
    source = tmp_path / "src"
    sha = commit(source, {"x.py": "1"})
    run, plan = new_run(tmp_path)
    engine = Scripted()
    engine.adapt = lambda prepared, trial, run, command: replace(command, cwd="/work")  # type: ignore[method-assign]
    prepare(run, PreparedPlan(plan, source), plan.trials[0], engine)
    told = json.loads((run.trial(A).folder / "command.json").read_text())["git"]
    assert told == {"sha": sha, "dirty": False, "why": None, "seen_by": "submit"}


@given(st.lists(st.sets(st.sampled_from(["exit.json", "stdout.log", "raw/rank0/x", "trace/m"])), max_size=4))
@examples(25, 500)
def test_attempts_are_kept_whole_and_counted(
    tmp_path_factory: pytest.TempPathFactory, attempts: list[set[str]]
) -> None:
    paths = TrialPaths(tmp_path_factory.mktemp("rotate") / "t")
    trial = paths.folder
    trial.mkdir()
    for number, names in enumerate(attempts, start=1):
        assert rotate(paths) == number
        begin(paths, number)
        for name in names:
            (trial / name).parent.mkdir(parents=True, exist_ok=True)
            (trial / name).write_text(str(number))
    assert rotate(paths) == len(attempts) + 1
    assert [path.name for path in trial.iterdir()] in ([], ["attempts"])
    for number, names in enumerate(attempts, start=1):
        kept = {
            str(path.relative_to(trial / "attempts" / str(number))): path.read_text()
            for path in (trial / "attempts" / str(number)).rglob("*")
            if path.is_file() and path.name != "command.json"
        }
        assert kept == dict.fromkeys(names, str(number))


def test_a_rotation_that_was_killed_is_finished(tmp_path: Path) -> None:
    paths = TrialPaths(tmp_path / "t")
    trial = paths.folder
    (trial / "attempts/1").mkdir(parents=True)
    (trial / "attempts/1/exit.json").write_text("{}")  # moved before the kill
    begin(paths, 1)
    (trial / "stdout.log").write_text("x")
    assert rotate(paths) == 2
    assert sorted(path.name for path in (trial / "attempts/1").iterdir()) == [
        "command.json",
        "exit.json",
        "stdout.log",
    ]


def test_a_full_disk_while_a_trial_is_readied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, plan = new_run(tmp_path)
    prepare(run, PreparedPlan(plan, tmp_path), plan.trials[0], Scripted())
    leave(run.trial(A), "failed")

    def full(fd: int, data: bytes, *, durable: bool = True) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_all", full)
    with pytest.raises(UnavailableError, match="the disk is full"):
        prepare(run, PreparedPlan(plan, tmp_path), plan.trials[0], Scripted())
    assert (run.trial(A).folder / "attempts/1/exit.json").exists()


def test_a_trace_has_all_steps_of_its_trial_and_its_samples(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    prepare(run, PreparedPlan(plan, tmp_path), plan.trials[0], Scripted())
    run.log().append("started", A, attempt=1)
    leave(run.trial(A), steps=(10, 20))
    host = SampledSource("host", ("cpu_busy",))
    header = to_json(SamplesHeader("h", 1, Anchor(0, 0, 0), 10.0, (host,)))
    (run.trial(A).folder / "samples.h.jsonl").write_text(f"{json.dumps(header)}\n[7, 0, 1.5]\n")
    made = normalise(run, read_trial(run, A)).trace
    assert made is not None
    with Trace(made) as trace:
        assert trace.sql("SELECT step, dur_ns, part FROM step_times").rows == [
            (0, 10, "active"),
            (1, 20, "active"),
        ]
        assert trace.sql("SELECT ts_ns, name, value FROM counters").rows == [(7, "CPU cores busy", 1.5)]


def test_a_signal_during_a_query_is_no_bug_of_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = new_run(tmp_path)
    leave(begin(run.trial(A)))

    def interrupted(*args: object, **more: object) -> None:
        raise RuntimeError("Query interrupted")  # DuckDB's words for a KeyboardInterrupt

    monkeypatch.setattr("profrun.collectors.normalize.normalize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        normalise(run, read_trial(run, A))
    assert not list(run.trial(A).folder.glob("*crash*"))


def test_a_damaged_trace_is_made_again(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    prepare(run, PreparedPlan(plan, tmp_path), plan.trials[0], Scripted())
    run.log().append("started", A, attempt=1)
    leave(run.trial(A))
    assert normalise(run, read_trial(run, A)).trace is not None
    (run.trial(A).folder / "trace/meta.json").unlink()
    record = read_trial(run, A)
    assert record.trace is None
    assert normalise(run, record).error is None
    assert read_trial(run, A).trace is not None


@pytest.mark.parametrize("attempt", [-5, 0, 10**15, "1", None])
def test_an_attempt_of_an_odd_number_is_put_aside_all_the_same(tmp_path: Path, attempt: object) -> None:
    trial = begin(TrialPaths(tmp_path / A))
    trial.command.write_text(json.dumps(json.loads(trial.command.read_text()) | {"attempt": attempt}))
    for name in ("7", "9x", "²", "1" * 200):
        (trial.attempts / name).mkdir(parents=True)
    assert rotate(trial) == 9
    assert (trial.attempts / "8/command.json").exists()


def test_the_traceback_of_a_reader_is_not_written_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = new_run(tmp_path)
    trial = begin(run.trial(A))
    (tmp_path / "victim").write_text("mine")
    (trial.folder / "normalise-crash.log").symlink_to(tmp_path / "victim")
    monkeypatch.setattr("profrun.runner.trial_files.sources", lambda record: 1 // 0)
    assert "bug in a reader" in str(normalise(run, read_trial(run, A)).error)
    assert (tmp_path / "victim").read_text() == "mine"
    assert "ZeroDivisionError" in (trial.folder / "normalise-crash.log").read_text()
