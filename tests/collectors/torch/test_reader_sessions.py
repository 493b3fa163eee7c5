"""Files that one process wrote one after the other are one rank; files of several ranks are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.collectors.torch.reader_sessions import Session, homes
from tests.collectors.torch.kineto import Event, api, document, issues, kernel, op, trace_of_files

WHO = "SELECT rank, pid, rank_guessed FROM processes ORDER BY process"
WORK = """
SELECT p.rank, d.ordinal, t.native_id, count(*) FROM slices JOIN tracks t USING (track)
JOIN processes p ON p.process = t.process JOIN devices d ON d.device = t.device GROUP BY ALL ORDER BY ALL
"""


def session(start: float, corr: int) -> list[Event]:
    """A step of process 100 that launches one kernel."""
    return [
        op("aten::mm", start, 20, corr),
        api("cudaLaunchKernel", start + 5, 5, corr),
        kernel("gemm", start + 12, 30, corr),
    ]


def test_two_sessions_of_a_process_are_one_rank_with_one_gpu(tmp_path: Path) -> None:
    files = [document(session(5000, 1)), document(session(100, 1))]  # the later one is given first
    trace = trace_of_files(tmp_path, files)
    assert trace.sql(WHO).rows == [(0, 100, False)]
    assert trace.sql(WORK).rows == [(0, 0, 7, 2)]
    assert trace.meta["sessions"] == [{"process": 0, "begin_ns": 5_000_000}]
    launched = "SELECT k.ts_ns - a.ts_ns FROM slices k JOIN slices a ON a.slice = k.launch"
    assert trace.sql(launched).rows == [(7_000,), (7_000,)]  # each in its own file, though the ids are equal
    assert issues(trace) == {}


def test_sessions_keep_the_rank_that_their_files_state(tmp_path: Path) -> None:
    stated = {"distributedInfo": {"rank": 3, "world_size": 8}}
    files = [document(session(100, 1), **stated), document(session(5000, 1), **stated)]
    trace = trace_of_files(tmp_path, files)
    assert trace.sql(WHO).rows == [(3, 100, False)]
    assert issues(trace) == {}


def test_ranks_in_containers_may_share_a_process_id(tmp_path: Path) -> None:
    trace = trace_of_files(tmp_path, [document(session(100, 1)), document(session(105, 1))])
    assert trace.sql(WHO).rows == [(0, 100, True), (1, 100, True)]
    assert issues(trace) == {"ranks_by_order": 2}


def part(
    begin: int | None,
    end: int | None,
    *,
    pid: int | None = 7,
    rank: int | None = None,
    host: str | None = None,
) -> Session:
    return Session(pid, rank, host, begin, end)


@pytest.mark.parametrize(
    ("parts", "home"),
    [
        ([part(0, 10), part(20, 30), part(40, 50)], [0, 0, 0]),
        ([part(20, 30), part(0, 10)], [1, 1]),
        ([part(0, 10), part(10, 30)], [0, 1]),  # they touch
        ([part(0, 10), part(20, 30, pid=8)], [0, 1]),
        ([part(0, 10, rank=0), part(20, 30, rank=1)], [0, 1]),
        ([part(0, 10, rank=0), part(20, 30)], [0, 0]),
        ([part(0, 10, host="a"), part(20, 30, host="b")], [0, 1]),
        ([part(None, None), part(None, None)], [0, 1]),  # no common axis
        ([part(0, 10, pid=None), part(20, 30, pid=None)], [0, 1]),
        # two ranks with the same process id, each with two sessions: ranks tell them apart, nothing else does
        ([part(0, 9, rank=0), part(0, 9, rank=1), part(20, 30, rank=1), part(20, 30, rank=0)], [0, 1, 1, 0]),
        ([part(0, 9), part(0, 9), part(20, 30), part(20, 30)], [0, 1, 2, 3]),
    ],
)
def test_the_first_session_of_each_process(parts: list[Session], home: list[int]) -> None:
    assert homes(parts) == home
