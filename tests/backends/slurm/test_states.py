"""What Slurm says, and what that means for a trial: never success."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profrun.backends.slurm.backend import SlurmBackend, Task
from profrun.backends.slurm.commands import Slurm, explained
from profrun.backends.slurm.states import (
    ENDED,
    Row,
    ended_status,
    living_status,
    parse_sacct,
    parse_squeue,
)
from profrun.contract.codec import to_json
from profrun.contract.exit import Exit
from profrun.errors import ProfrunError, UnavailableError, UsageError
from profrun.store.events import Handle
from profrun.store.files import write_json
from profrun.store.runs import Run

SQUEUE = """7_0|RUNNING|None
7_1|PENDING|Priority
7_2|PENDING|DependencyNeverSatisfied
7_3|COMPLETED|None
"""


def test_squeue_is_read() -> None:
    rows = parse_squeue(SQUEUE)
    assert rows["7_0"] == Row("RUNNING")
    assert rows["7_1"] == Row("PENDING", "Priority")
    assert [living.state if (living := living_status(row)) else None for row in rows.values()] == [
        "running",
        "queued",
        "failed",
        None,
    ]


def test_sacct_is_read() -> None:
    rows = parse_sacct("7_0|COMPLETED|0:0\n7_1|CANCELLED by 0|0:15\n7_2|OUT_OF_ME+|0:125\n")
    assert rows["7_1"] == Row("CANCELLED", None, "0:15")
    assert ended_status(rows["7_1"], None).state == "cancelled"


@pytest.mark.parametrize("state", ENDED)
def test_without_exit_json_nothing_is_success(state: str) -> None:
    status = ended_status(Row(state, None, "1:0"), "srun: error: node is gone")
    assert status.state in ("lost", "failed", "cancelled", "timeout")
    assert status.reason is not None
    assert state in status.reason
    assert "node is gone" in status.reason


def test_a_state_that_nobody_knows_is_lost() -> None:
    assert living_status(Row("QUANTUM")) is None
    assert ended_status(Row("QUANTUM"), None).state == "lost"


@pytest.mark.parametrize(
    ("stderr", "kind", "words"),
    [
        (
            "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
            UsageError,
            "Invalid partition name specified",
        ),
        (
            "sbatch: error: Batch job submission failed: Requested node configuration is not available\n",
            UnavailableError,
            "Requested node configuration is not available",
        ),
        (
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
            UnavailableError,
            "the Slurm controller cannot be reached",
        ),
    ],
)
def test_refusals_carry_slurms_reason(stderr: str, kind: type[ProfrunError], words: str) -> None:
    error = explained("sbatch", stderr)
    assert isinstance(error, kind)
    assert words in str(error)


class Scripted(Slurm):
    """Answers from a table instead of starting anything."""

    def __init__(self, answers: dict[str, Any]) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[list[str]] = []

    def run(self, argv: Any, *, text: Any = None, env: Any = None) -> str:
        self.asked.append(list(argv))
        answer = self.answers.get(argv[0], "")
        if isinstance(answer, ProfrunError):
            raise answer
        return str(answer)


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
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


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
