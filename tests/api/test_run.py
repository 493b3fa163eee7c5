"""Plan and submit from Python, and the run that comes of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import profrun
from profrun.contract.codec import to_json
from profrun.errors import FailedError, InputError, UnavailableError, UsageError
from tests.api.conftest import Told, plain, write_job
from tests.cli.running import call

Capture = pytest.CaptureFixture[str]


def test_a_run_is_what_the_commands_say_of_it(run: profrun.Run, capsys: Capture) -> None:
    printed = call(capsys, "status", run.path, "--json").json
    assert plain(to_json(run.result)) == printed
    assert (run.state, run.name, len(run.trials)) == ("finished", run.path.name, 4)
    assert [trial.median_step_ns is not None for trial in run.trials] == [True] * 4
    assert [(pair.a, pair.b) for pair in run.comparisons] == [("baseline-none", "optimised-none")]
    assert run.expectations == ()
    assert run.table("trials").to_polars()["trial"].to_list() == [trial.trial for trial in run.trials]
    assert run.table("expectations").rows() == []
    assert "checks" in run.table("expectations").columns


def test_a_run_tells_why_the_trials_of_a_point_vary_or_how_many_it_needs(run: profrun.Run) -> None:
    found = run.variation("baseline-none")
    assert (found.count, found.refused) == (2, "at least 5 trials are needed, there are 2")
    with pytest.raises(UsageError):
        run.variation("nobody")


def test_submit_prints_and_returns_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path, repeats=1, variants={"baseline": {"seconds": 0.001}})
    printed = call(capsys, "submit", "job.yaml", "--runs", "elsewhere", "--json").json
    assert plain(to_json(profrun.find_run(runs="elsewhere").result)) == printed


def test_an_observer_is_told_what_happens(submitted: tuple[profrun.Run, Told]) -> None:
    _, told = submitted
    assert told.events.count("started") == told.events.count("normalised") == 4
    assert told.events[-1] == "done"
    assert told.ticks > 0


def test_what_the_command_line_warns_of_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from profrun.runner import pipeline

    def executed(*_: object) -> None:
        raise InputError("it goes no further")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pipeline, "execute", executed)
    told, job = Told(), write_job(tmp_path, image="example/image:1", command="python work.py 1")
    with pytest.raises(InputError, match="it goes no further"):
        profrun.submit(job, observer=told)
    assert [note.split("; ")[0].split(": ")[-1] for note in told.notes] == [
        "nothing uses 'seconds'",
        "the local backend runs the command on this machine",
    ]


def test_traces_of_a_run_from_any_folder(
    run: profrun.Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with run.trace(1) as by_number, run.trace("001-optimised") as by_name:
        assert by_number.path == by_name.path == Path(run.trials[1].trace or "")
        assert len(by_number.summary().steps) == 8
    assert run.traces("baseline-none") == [Path(run.trials[0].trace or ""), Path(run.trials[2].trace or "")]
    assert len(run.traces()) == 4
    with pytest.raises(UsageError, match="baseline-none has 2 traces"):
        run.trace("baseline-none")
    with pytest.raises(UsageError, match=r"no trials of .* match '9'"):
        run.trace(9)
    with pytest.raises(UsageError, match="match 'baseline-torch'"):
        run.traces("baseline-torch")


def test_runs_are_found_by_name_path_and_last(
    run: profrun.Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = run.path.parent
    for reference in ("last", run.name, run.name[:-3], run.path, str(run.path)):
        assert profrun.find_run(reference, runs=root).path == run.path
    monkeypatch.setenv("PROFRUN_RUNS", str(root))
    monkeypatch.chdir(tmp_path)
    assert [one.path for one in profrun.all_runs()] == [run.path] == [profrun.find_run().path]
    monkeypatch.delenv("PROFRUN_RUNS")
    assert profrun.all_runs() == []
    with pytest.raises(UsageError, match="no run 'last' in runs"):
        profrun.find_run()


def test_a_run_shows_itself(run: profrun.Run) -> None:
    text = str(run)
    assert text.splitlines()[0] == f"{run.name}: finished, 4 of 4 trials finished"
    assert text.splitlines()[1].startswith("optimised-none against baseline-none: ")
    assert run._repr_html_().startswith(f"<pre>{run.name}")
    assert repr(run) == f"Run({str(run.path)!r})"
    assert run.report() == run.path / "report.html"


def test_a_plan_starts_nothing(tmp_path: Path) -> None:
    job = write_job(tmp_path)
    planned = profrun.plan(str(job), set="repeats=3")
    assert [trial.id for trial in planned.trials[:3]] == [
        "000-baseline-none-r1",
        "001-optimised-none-r1",
        "002-baseline-none-r2",
    ]
    assert len(planned.trials) == len(profrun.plan(job, set=["repeats=3"]).trials) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.yaml", "work.py"]


@pytest.mark.parametrize(
    ("more", "kind", "said"),
    [
        ({"job": "nowhere.yaml"}, UsageError, "there is no job spec at nowhere.yaml"),
        ({"set": "colour=red"}, UsageError, "colour"),
        ({"backend": "moon"}, UsageError, "moon"),
        ({"runs": "job.yaml"}, UnavailableError, "job.yaml"),
    ],
)
def test_what_cannot_run_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], kind: type[Exception], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path)
    with pytest.raises(kind, match=said) as error:
        profrun.submit(**{"job": "job.yaml", **more})  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.yaml", "work.py"]


def test_a_comparison_that_fails_keeps_the_run_and_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("surprise")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("profrun.runner.finish.write_findings", broken)
    job = write_job(tmp_path, repeats=1, variants={"baseline": {"seconds": 0.001}})
    with pytest.raises(
        FailedError, match="ran, but its comparisons or its report could not be made"
    ) as error:
        profrun.submit(job)
    assert isinstance(error.value.__cause__, KeyError)
    found = profrun.find_run()
    assert str(found.path) in str(error.value)
    assert [trial.state for trial in found.trials] == ["finished"]
    assert (found.path / "report.html").exists()


def test_submit_in_a_thread(tmp_path: Path) -> None:
    """Signals belong to the main thread; a run that another thread drives does without them."""
    job = write_job(tmp_path, repeats=1, variants={"baseline": {"seconds": 0.001}}, workdir=str(tmp_path))
    found: list[profrun.Run] = []
    thread = threading.Thread(target=lambda: found.append(profrun.submit(job, runs=tmp_path / "runs")))
    thread.start()
    thread.join(120)
    assert [run.state for run in found] == ["finished"]


def test_a_trial_that_fails_is_told_by_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = profrun.submit(write_job(tmp_path, repeats=1, command="python -c 'import sys; sys.exit(3)'"))
    assert run.state == "failed"
    assert {(trial.state, trial.exit_code) for trial in run.trials} == {("failed", 3)}
    with pytest.raises(InputError, match="has no trace"):
        run.trace(0)
    with pytest.raises(InputError, match="has no traces"):
        run.traces()
