"""Whose an event is: files of one rank, files of several, and files that do not say it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.trace.steps import steps
from profrun.analysis.trace.summary import summarize
from profrun.collectors.normalize import normalize
from profrun.collectors.torch.reader_parts import NO_RANK, Part, divide, ranks_of
from profrun.collectors.torch.reader_tracks import Group, PartRank
from profrun.contract.codec import to_json
from profrun.contract.steps import Anchor, StepsDevice, StepsFile
from profrun.traces.trace import Trace
from tests.collectors.torch.kineto import Event, api, document, issues, kernel, op, trace_of, trace_of_files
from tests.conftest import SHARED, missing

WHO = (
    "SELECT p.rank, p.pid, p.rank_guessed, count(s.slice) FROM processes p "
    "LEFT JOIN tracks t USING (process) LEFT JOIN slices s USING (track) GROUP BY ALL ORDER BY 1"
)


def of_rank(rank: int, events: list[Event], **changed: Any) -> list[Event]:
    """The events as a tool that merges files writes them: the rank in the arguments of each."""
    return [event | changed | {"args": event["args"] | {"rank": rank}} for event in events]


def step(name: str, ts: float, dur: float) -> Event:
    args = {"External id": 1}
    return {
        "ph": "X",
        "cat": "user_annotation",
        "name": name,
        "pid": 100,
        "tid": 10,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def one_rank(start: float) -> list[Event]:
    return [
        step("ProfilerStep#3", start, 90),
        op("aten::mm", start + 1, 9, 2),
        api("cudaLaunchKernel", start + 2, 3, 5),
        kernel("gemm", start + 20, 4, 5),
    ]


def test_a_file_of_several_ranks_is_read_as_its_events_say(tmp_path: Path, way: str) -> None:
    """The same pid, correlation and device everywhere: only the rank tells them apart. Rank 3 comes first."""
    events = of_rank(3, one_rank(0)) + of_rank(1, one_rank(1000))
    trace = trace_of(tmp_path, events, distributedInfo={"rank": 7, "world_size": 8})
    assert trace.sql(WHO).rows == [(1, 100, False, 4), (3, 100, False, 4)]
    launched = (
        "SELECT p.rank, k.ts_ns, l.ts_ns FROM slices k JOIN slices l ON l.slice = k.launch JOIN tracks t "
    )
    launched += "ON t.track = k.track JOIN processes p USING (process) ORDER BY 1"
    assert trace.sql(launched).rows == [(1, 1020_000, 1002_000), (3, 20_000, 2_000)]
    found = [(row.rank, row.kernels, row.ts_ns) for row in steps(trace)]
    assert found == [(1, 1, 1_000_000), (3, 1, 0)]
    assert issues(trace) == {}


def test_events_that_say_nothing_belong_to_the_rank_of_their_process(tmp_path: Path, way: str) -> None:
    other = {"pid": 200}
    silent = [op("aten::add", 50, 5, 9) | other]
    events = of_rank(0, one_rank(0)) + of_rank(1, [op("aten::mm", 1000, 9, 2)], **other) + silent
    trace = trace_of(tmp_path, events)
    assert trace.sql(WHO).rows == [(0, 100, False, 4), (1, 200, False, 2)]
    assert issues(trace) == {}


def test_events_of_no_rank_are_kept_as_a_process_whose_rank_is_a_guess(tmp_path: Path, way: str) -> None:
    events = of_rank(0, one_rank(0)) + of_rank(1, one_rank(0)) + [op("aten::add", 50, 5, 9) | {"pid": 300}]
    trace = trace_of(tmp_path, events)
    assert trace.sql(WHO).rows == [(0, 100, False, 4), (1, 100, False, 4), (2, 300, True, 1)]
    assert issues(trace) == {"ranks_by_order": 1}


def test_a_rank_that_few_events_state_is_an_argument_of_them(tmp_path: Path, way: str) -> None:
    events = [*one_rank(0), *of_rank(5, [op("my_send", 50, 5, 9)])]
    trace = trace_of(tmp_path, events, distributedInfo={"rank": 2})
    assert trace.sql(WHO).rows == [(2, 100, False, 5)]
    assert issues(trace) == {"event_ranks_ignored": 1}


def test_the_rank_inside_a_process_group_is_another_key(tmp_path: Path, way: str) -> None:
    event = op("nccl:all_reduce", 0, 9, 1)
    event["args"]["Rank"] = 3
    trace = trace_of(tmp_path, [event], distributedInfo={"rank": 2})
    assert trace.sql(WHO).rows == [(2, 100, False, 1)]
    assert issues(trace) == {}


def test_arrows_and_memory_stay_with_their_rank(tmp_path: Path, way: str) -> None:
    def events(start: float) -> list[Event]:
        forward, backward = op("aten::mm", start, 9, 2, tid=10), op("MmBackward", start + 20, 9, 3, tid=11)
        arrow = {"cat": "fwdbwd", "name": "fwdbwd", "pid": 100, "id": 1, "args": {}}
        sample = {"Device Type": 1, "Device Id": 0, "Total Allocated": start + 8, "Bytes": 8}
        return [
            forward,
            backward,
            arrow | {"ph": "s", "tid": 10, "ts": start},
            arrow | {"ph": "f", "tid": 11, "ts": start + 20},
            {"ph": "i", "s": "t", "name": "[memory]", "pid": 100, "tid": 10, "ts": start + 1, "args": sample},
        ]

    trace = trace_of(tmp_path, of_rank(0, events(0)) + of_rank(1, events(1000)))
    pairs = trace.sql(
        "SELECT b.ts_ns - f.ts_ns FROM ops o JOIN slices b USING (slice) "
        "JOIN slices f ON f.slice = o.backward_of"
    ).rows
    assert pairs == [(20_000,), (20_000,)]
    totals = trace.sql(
        "SELECT p.rank, c.value FROM counters c JOIN tracks USING (track) JOIN processes p "
        "USING (process) WHERE c.name = 'memory allocated' ORDER BY 1"
    ).rows
    assert totals == [(0, 8.0), (1, 1008.0)]


def test_a_stated_rank_is_kept_where_another_file_states_none(tmp_path: Path) -> None:
    """Before, all ranks were numbered anew as soon as one file stated none."""
    files = [document([op("a", 0, 1, 1)]), document([op("b", 0, 1, 1)], distributedInfo={"rank": 0})]
    trace = trace_of_files(tmp_path, files)
    assert trace.sql("SELECT rank, rank_guessed FROM processes ORDER BY process").rows == [
        (1, True),
        (0, False),
    ]
    assert issues(trace) == {"ranks_by_order": 1}


def test_the_hook_says_rank_host_and_gpu(tmp_path: Path) -> None:
    folder = tmp_path / "rank1"
    folder.mkdir()
    gpu = StepsDevice("nvidia", 0, "NVIDIA H200", uuid="e1c0", host_ordinal=3)
    note = StepsFile(1, 100, "explicit", "wall", Anchor(1, 2, 3), host="node7", device=gpu)
    (folder / "steps.json").write_text(json.dumps(to_json(note)))
    (folder / "x.json").write_text(json.dumps(document(one_rank(0))))
    normalize([folder / "x.json"], tmp_path / "trace")
    trace = Trace(tmp_path / "trace")
    assert trace.sql("SELECT rank, rank_guessed, host FROM processes").rows == [(1, False, "node7")]
    assert trace.sql("SELECT uuid, host_ordinal FROM devices").rows == [("e1c0", 3)]


@pytest.mark.parametrize(
    ("stated", "ranks", "guessed"),
    [
        ([None], [0], [False]),  # a single process
        ([5], [5], [False]),
        ([1, 0], [1, 0], [False, False]),
        ([None, None], [0, 1], [True, True]),
        ([1, None, None], [1, 0, 2], [False, True, True]),
        ([0, 0], [0, 1], [False, True]),
        ([3, 3, 1], [3, 0, 1], [False, True, False]),
    ],
)
def test_ranks_of_parts(stated: list[int | None], ranks: list[int], guessed: list[bool]) -> None:
    assert ranks_of(stated) == [PartRank(*pair) for pair in zip(ranks, guessed, strict=True)]


def test_the_parts_of_files() -> None:
    def group(src: int, cat: str, pid: str, rank: int | None) -> Group:
        return Group(0, src, cat, pid, "1", None, None, 10, rank)

    groups = [
        group(0, "cpu_op", "1", None),
        group(1, "cpu_op", "1", 4),
        group(1, "kernel", "0", 4),
        group(2, "cpu_op", "1", 0),
        group(2, "cpu_op", "2", 6),
        group(2, "kernel", "0", -1),
    ]
    found = divide(groups, 3, [(2, 6), (2, None)])
    assert found.parts == [Part(0), Part(1, NO_RANK, 4), Part(2, 0, 0), Part(2, 6, 6), Part(2)]
    assert [one.src for one in found.groups] == [0, 1, 1, 2, 3, 4]
    assert (found.split, found.ignored) == ({2: [0, 6]}, 0)


@pytest.mark.thorough
def test_a_real_merge_of_four_ranks(tmp_path: Path, way: str) -> None:
    """Made by a public tool: the rank on each event, and process ids of its own."""
    path = SHARED / "hostile/merged_all_events.json.gz"
    if not path.exists():
        missing(str(path))
    normalize([path], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        found = trace.sql("SELECT rank, pid, rank_guessed FROM processes ORDER BY rank").rows
        assert found == [
            (0, 3194582, False),
            (1, 103194583, False),
            (2, 203194584, False),
            (3, 303194585, False),
        ]
        query = "SELECT p.rank, count(*) FROM slices s JOIN tracks USING (track) "
        query += "JOIN processes p USING (process)"
        kernels = trace.sql(query + " WHERE s.kind = 'kernel' GROUP BY 1 ORDER BY 1").rows
        assert kernels == [(0, 3114), (1, 3089), (2, 3089), (3, 3089)]
        assert trace.sql("SELECT process, ordinal FROM devices").rows == [(0, 0), (1, 1), (2, 2), (3, 3)]
        assert {row.rank for row in summarize(trace).steps} == {0, 1, 2, 3}
        assert diagnose(trace)
