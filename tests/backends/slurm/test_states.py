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
