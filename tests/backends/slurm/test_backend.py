"""The Slurm backend against commands that answer from a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.backends.slurm.allocation import SlurmPlan
from profrun.backends.slurm.backend import SlurmBackend
from profrun.backends.slurm.commands import explained
from profrun.backends.slurm.tasks import Task
from profrun.contract.codec import to_json
from profrun.contract.exit import Exit
from profrun.contract.states import Status
from profrun.errors import UsageError
from profrun.store.events import Handle
from profrun.store.files import write_json
from profrun.store.runs import Run
from tests.backends.plans import plan
from tests.backends.slurm.answers import SQUEUE, Scripted


def _end(run: Path, ended: Exit) -> None:
    paths = Run(run).trial(ended.trial)
    paths.folder.mkdir(parents=True, exist_ok=True)
    write_json(paths.exit, to_json(ended))


HANDLES = {f"{index:03}-a": Handle("slurm", {"job": "7", "index": index}) for index in range(3)}


def test_one_question_a_round_for_all(tmp_path: Path) -> None:
    slurm = Scripted({"squeue": SQUEUE})
    states = SlurmBackend(slurm).status(HANDLES, Run(tmp_path))
    assert [status.state for status in states.values()] == ["running", "queued", "failed"]
    assert [argv[0] for argv in slurm.asked if argv[0] != "scancel"] == ["squeue"]


def test_while_nothing_changes_it_asks_less_and_less(tmp_path: Path) -> None:
    backend = SlurmBackend(Scripted({"squeue": SQUEUE}))
    pauses = []
    for _ in range(8):
        backend.status(HANDLES, Run(tmp_path))
        pauses.append(backend.poll_s)
    assert pauses == [5.0, 10.0, 20.0, 30.0, 30.0, 30.0, 30.0, 30.0]


def test_a_task_that_squeue_forgot_is_looked_up_in_the_accounts(tmp_path: Path) -> None:
    slurm = Scripted({"squeue": "", "sacct": "7_0|NODE_FAIL|1:0\n"})
    backend = SlurmBackend(slurm)
    assert backend.status(HANDLES, Run(tmp_path))["000-a"].state == "finalising"  # exit.json may still come
    backend._since = dict.fromkeys(HANDLES, -1000.0)
    found = backend.status(HANDLES, Run(tmp_path))
    assert found["000-a"].state == "failed"
    assert found["001-a"].state == "lost"


def test_without_accounting_it_is_asked_once(tmp_path: Path) -> None:
    slurm = Scripted({"squeue": "", "sacct": explained("sacct", "Slurm accounting storage is disabled")})
    backend = SlurmBackend(slurm)
    for _ in range(3):
        backend.status(HANDLES, Run(tmp_path))
    assert [argv[0] for argv in slurm.asked].count("sacct") == 1


def test_the_wrappers_word_goes_before_slurms(tmp_path: Path) -> None:
    _end(tmp_path, Exit("000-a", "finished", exit_code=0))
    slurm = Scripted({"squeue": "7_0|FAILED|NonZeroExitCode\n"})
    assert SlurmBackend(slurm).status(HANDLES, Run(tmp_path))["000-a"].state == "finished"


def test_a_requeued_task_looks_ended_for_a_moment_and_is_not_given_up(tmp_path: Path) -> None:
    """As seen on 22.05: RUNNING, FAILED, PENDING; the wrapper has said that SIGTERM ended it."""
    _end(tmp_path, Exit("000-a", "timeout", stopped_by="SIGTERM"))
    slurm = Scripted({"squeue": "7_0|FAILED|NonZeroExitCode\n"})
    backend, one = SlurmBackend(slurm), {"000-a": HANDLES["000-a"]}
    assert backend.status(one, Run(tmp_path))["000-a"].state == "finalising"
    slurm.answers["squeue"] = "7_0|PENDING|BeginTime\n"
    assert backend.status(one, Run(tmp_path))["000-a"].state == "queued"
    slurm.answers["squeue"] = "7_0|FAILED|NonZeroExitCode\n"
    assert backend.status(one, Run(tmp_path))["000-a"].state == "finalising"
    backend._since = {"000-a": -1000.0}
    assert backend.status(one, Run(tmp_path))["000-a"].state == "timeout"  # nobody started it again
    _end(tmp_path, Exit("000-a", "timeout", stopped_by="limit"))
    assert SlurmBackend(slurm).status(one, Run(tmp_path))["000-a"].state == "timeout"


def test_silent_ranks_have_time_to_answer_while_their_task_runs_and_a_moment_longer(tmp_path: Path) -> None:
    _end(tmp_path, Exit("000-a", "failed", code="rank-silent", wrappers=2, silent=(1,)))
    slurm = Scripted({"squeue": "7_0|RUNNING|None\n"})
    backend, one = SlurmBackend(slurm), {"000-a": HANDLES["000-a"]}
    assert backend.status(one, Run(tmp_path))["000-a"].state == "running"
    slurm.answers["squeue"] = "7_0|COMPLETED|None\n"
    assert backend.status(one, Run(tmp_path))["000-a"].state == "finalising"
    backend._since = {"000-a": -1000.0}
    assert backend.status(one, Run(tmp_path))["000-a"] == Status("failed", code="rank-silent")


def test_tasks_of_a_killed_driver_are_found_again(tmp_path: Path) -> None:
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm/array0.json").write_text('{"trials": ["000-a", "001-a"], "job": null}')
    slurm = Scripted({"squeue": "9\n"})
    backend = SlurmBackend(slurm)
    assert backend._task("001-a", Handle("slurm", {}), Run(tmp_path)) == Task("9", 1)
    assert backend._task("002-a", Handle("slurm", {}), Run(tmp_path)) is None


def test_a_task_cancelled_while_it_waited_is_over_at_once(tmp_path: Path) -> None:
    """Slurm forgets what never started; a task that did start still gets its time to report."""
    for trial, started in (("000-a", False), ("001-a", True)):
        paths = Run(tmp_path).trial(trial)
        paths.folder.mkdir(parents=True)
        paths.cancel.write_text("{}")
        if started:
            paths.phase.write_text('{"phase": "app"}')
    states = SlurmBackend(Scripted({"squeue": ""})).status(HANDLES, Run(tmp_path))
    assert [states["000-a"].state, states["001-a"].state] == ["cancelled", "finalising"]


def _prepared(backend: SlurmBackend, folder: Path, cluster: str = "") -> SlurmPlan:
    made = plan(resources="timeout: 5m", cluster=cluster)
    return backend.prepare(made, made.trials, Run(folder / "runs/x"), folder)


def test_one_job_for_all_trials_of_a_comparison(tmp_path: Path) -> None:
    slurm = Scripted({"sinfo": "gpu*|12:00:00\n", "sbatch": "71\n"})
    backend = SlurmBackend(slurm)
    prepared = _prepared(backend, tmp_path)
    run = Run(tmp_path / "runs/x")
    (tmp_path / "runs").mkdir()
    handles = backend.submit(prepared, prepared.plan.trials, run)
    assert [argv[0] for argv in slurm.asked] == ["sinfo", "sbatch"]
    assert {handle.data["job"] for handle in handles.values()} == {"71"}
    names = [trial.id for trial in prepared.plan.trials]
    assert (run.path / "slurm/allocation0.turns").read_text().split() == names
    (request,) = backend.render(prepared, prepared.plan.trials, run)
    assert request.text == (run.path / "slurm/allocation0.sh").read_text()
    slurm.answers["squeue"] = "71|RUNNING|None\n"
    (run.path / "slurm/allocation0.said").write_text(f"begin {names[0]}\n")
    found = backend.status(handles, run)
    assert [found[name].state for name in names[:2]] == ["running", "queued"]
    assert found[names[1]].reason == "its turn comes in allocation 71"
    # A driver that was killed before it wrote the handles down finds the same.
    assert backend.status({name: Handle("slurm", {}) for name in names}, run) == found


def test_a_script_with_secrets_goes_to_slurm_alone(tmp_path: Path) -> None:
    slurm = Scripted({"sinfo": "gpu*|12:00:00\n", "sbatch": "71\n"})
    backend = SlurmBackend(slurm)
    prepared = _prepared(backend, tmp_path, "setup: [export MY_PASSWORD=abcdEF1234]")
    (tmp_path / "runs").mkdir()
    run = Run(tmp_path / "runs/x")
    backend.submit(prepared, prepared.plan.trials, run)
    assert slurm.asked[-1] == ["sbatch", "--parsable"]
    (request,) = backend.render(prepared, prepared.plan.trials, run)
    assert slurm.texts[-1] == request.text
    assert "export MY_PASSWORD=abcdEF1234\n" in request.text
    kept = (run.path / "slurm/allocation0.sh").read_text()
    assert kept == request.text.replace("abcdEF1234", "<redacted>")


def test_a_partition_with_a_short_limit_gets_a_job_for_each_trial(tmp_path: Path) -> None:
    backend = SlurmBackend(Scripted({"sinfo": "gpu*|1:00:00\n"}))
    prepared = _prepared(backend, tmp_path)
    assert prepared.plan.job.cluster.allocation == "each"
    assert backend.lane(prepared, prepared.plan.trials[0]) is None


def test_what_is_resumed_waits_for_the_allocation_that_runs(tmp_path: Path) -> None:
    backend = SlurmBackend(Scripted({"sinfo": "gpu*|12:00:00\n"}))
    prepared = _prepared(backend, tmp_path)
    lane = backend.lane(prepared, prepared.plan.trials[0])
    assert lane is not None
    assert lane.together


def test_a_step_that_fails_is_a_failed_trial_while_the_others_go_on(tmp_path: Path) -> None:
    run, names = Run(tmp_path), ["000-a", "001-a"]
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm/allocation0.turns").write_text("000-a\n001-a\n")
    (tmp_path / "slurm/allocation0.said").write_text("begin 000-a\nend 000-a 1\nbegin 001-a\n")
    (tmp_path / "slurm/allocation0.000-a.log").write_text("srun: error: no such option\n")
    handles = {name: Task("7", n, "allocation0").handle for n, name in enumerate(names)}
    backend = SlurmBackend(Scripted({"squeue": "7|RUNNING|None\n"}))
    assert backend.status(handles, run)["000-a"].state == "finalising"  # exit.json may still come
    backend._since = {"000-a": -1000.0}
    found = backend.status(handles, run)
    assert [found[name].state for name in names] == ["failed", "running"]
    assert "no such option" in (found["000-a"].reason or "")


def test_an_allocation_that_ends_before_a_turn_loses_that_trial_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm/allocation0.turns").write_text("000-a\n001-a\n")
    (tmp_path / "slurm/allocation0.said").write_text("begin 000-a\nend 000-a 0\n")
    _end(tmp_path, Exit("000-a", "finished", exit_code=0))
    handles = {name: Task("7", n, "allocation0").handle for n, name in enumerate(("000-a", "001-a"))}
    backend = SlurmBackend(Scripted({"squeue": "7|TIMEOUT|TimeLimit\n"}))
    backend._since = dict.fromkeys(handles, -1000.0)
    found = backend.status(handles, Run(tmp_path))
    assert [status.state for status in found.values()] == ["finished", "lost"]
    assert "ended before its turn (Slurm says TIMEOUT)" in (found["001-a"].reason or "")


def test_cancelling_one_trial_signals_its_step_and_leaves_the_allocation(tmp_path: Path) -> None:
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm/allocation0.turns").write_text("000-a\n001-a\n")
    (tmp_path / "slurm/allocation0.said").write_text("begin 000-a\n")
    for name in ("000-a", "001-a"):
        Run(tmp_path).trial(name).folder.mkdir(parents=True)
    slurm = Scripted({"squeue": "7.0|profrun:000-a\n7.batch|batch\n"})
    SlurmBackend(slurm).cancel({"000-a": Task("7", 0, "allocation0").handle}, Run(tmp_path), grace=0)
    assert [argv[2:] for argv in slurm.asked if argv[0] == "scancel"] == [["7.0"]]
    slurm.asked.clear()
    both = {name: Task("7", n, "allocation0").handle for n, name in enumerate(("000-a", "001-a"))}
    SlurmBackend(slurm).cancel(both, Run(tmp_path), grace=0)
    assert [argv[2:] for argv in slurm.asked if argv[0] == "scancel"] == [["--state=PENDING", "7"], ["7"]]


def test_a_shell_whose_allocation_has_ended_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    unknown = explained("scontrol", "slurm_load_jobs error: Invalid job id specified")
    backend = SlurmBackend(Scripted({"sinfo": "", "scontrol": unknown}))
    with pytest.raises(UsageError, match=r"job 7, which does not run") as caught:
        _prepared(backend, tmp_path)
    assert "unset SLURM_JOB_ID" in str(caught.value)
