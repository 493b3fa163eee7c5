"""What Slurm says, and what that means for a trial: never success."""

from __future__ import annotations

import pytest

from profrun.backends.slurm.states import (
    ENDED,
    Row,
    ended_status,
    living_status,
    parse_sacct,
    parse_squeue,
)
from profrun.contract.states import Status
from tests.backends.slurm.answers import SQUEUE


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
    ("reason", "words"),
    [
        ("PartitionDown", "the partition is down"),
        ("ReqNodeNotAvail, UnavailableNodes:n1", "down, drained or reserved"),
        ("Nodes required for job are DOWN, DRAINED or reserved for jobs", "down or drained"),
        ("QOSMaxJobsPerUserLimit", "limit of the quality of service"),
        ("AssocGrpGRES", "limit of the account or user"),
        ("PartitionTimeLimit", "lower `cluster.time`"),
        ("JobHeldUser", "scontrol release"),
    ],
)
def test_why_a_job_waits_is_said_in_words(reason: str, words: str) -> None:
    status = living_status(Row("PENDING", reason))
    assert status is not None
    assert (status.state, status.code) == ("queued", None)
    assert status.reason is not None
    assert status.reason.startswith(reason)
    assert words in status.reason


def test_a_task_that_waits_for_its_own_array_waits_as_planned() -> None:
    status = living_status(Row("PENDING", "JobArrayTaskLimit"))
    assert status is not None
    assert (status.state, status.code) == ("queued", "waits-turn")


def test_a_reason_without_words_stays_as_it_is() -> None:
    assert living_status(Row("PENDING", "NewInSlurm99")) == Status("queued", "NewInSlurm99")
