"""Which rank a file is of: its collectives know it better than its head."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collectors.torch.kineto import Event, document, issues, op, trace_of, trace_of_files
from tests.conftest import first

RANKS = "SELECT rank, rank_guessed FROM processes ORDER BY process"


def collective(name: str, rank: int, members: str = "[0, 1, 2, 3]", size: int = 4) -> Event:
    """The metadata that torch writes with a collective."""
    args = {"Collective name": name, "Rank": rank, "Group size": size, "Process Group Ranks": members}
    event = op("record_param_comms", 0, 9, 1)
    event["args"] |= args
    return event


@pytest.mark.usefixtures("way")
def test_files_that_were_given_each_others_rank_are_put_right(tmp_path: Path) -> None:
    files = [
        document([collective("allreduce", rank)], distributedInfo={"rank": stated, "world_size": 4})
        for rank, stated in ((0, 3), (3, 0), (1, 1))
    ]
    trace = trace_of_files(tmp_path, files)
    assert trace.sql(RANKS).rows == [(0, False), (3, False), (1, False)]
    assert issues(trace) == {"rank_contradicted": 2}
    assert trace.sql("SELECT example FROM issues").rows == [
        ("file of rank 3, collectives of rank 0; file of rank 0, collectives of rank 3",)
    ]


@pytest.mark.usefixtures("way")
def test_collectives_state_a_rank_where_the_file_states_none(tmp_path: Path) -> None:
    files = [document([collective("_allgather_base", rank)]) for rank in (2, 0)]
    trace = trace_of_files(tmp_path, files)
    assert trace.sql(RANKS).rows == [(2, False), (0, False)]
    assert issues(trace) == {}


@pytest.mark.parametrize(
    "event",
    first(
        4,
        [
            collective("broadcast", 0),  # the root's rank
            collective("reduce", 0),
            collective("allreduce", 0, "[2, 3]", 2),  # a place in the group, not a rank
            collective("allreduce", 0, "[0]", 1),
            collective("allreduce", 0, "[]", 4),
            collective("allreduce", 7),
            collective("allreduce", -1),
            collective("allreduce", 0, "[0, 1, ..., 7]", 8),  # cut short, and world_size is 4
        ],
    ),
)
def test_what_is_no_rank_of_the_process_is_not_taken_for_one(tmp_path: Path, event: Event) -> None:
    trace = trace_of(tmp_path, [event], distributedInfo={"rank": 2, "world_size": 4})
    assert trace.sql(RANKS).rows == [(2, False)]
    assert issues(trace) == {}


def test_a_long_list_of_members_that_was_cut_short(tmp_path: Path) -> None:
    event = collective("reduce_scatter_base", 5, "[0, 1, 2, 3, ..., 63]", 64)
    trace = trace_of(tmp_path, [event], distributedInfo={"rank": 2, "world_size": 64})
    assert trace.sql(RANKS).rows == [(5, False)]


def test_collectives_that_disagree_state_nothing(tmp_path: Path) -> None:
    events = [collective("allreduce", 0), collective("barrier", 1)]
    trace = trace_of(tmp_path, events, distributedInfo={"rank": 2, "world_size": 4})
    assert trace.sql(RANKS).rows == [(2, False)]
    assert issues(trace) == {}
