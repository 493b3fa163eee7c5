"""The Slurm backend against commands that answer from a table."""

from __future__ import annotations

from pathlib import Path

from profrun.backends.slurm.backend import SlurmBackend
from profrun.backends.slurm.commands import explained
from profrun.backends.slurm.tasks import Task
from profrun.contract.codec import to_json
from profrun.contract.exit import Exit
from profrun.store.events import Handle
from profrun.store.files import write_json
from profrun.store.runs import Run
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
