"""What a GPU is called: by a number that a user recognises, with its rank and host where they are needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.trace.summary import summarize
from profrun.analysis.trace.timeline_slices import timeline_slices
from profrun.reports.terminal import summary_text
from profrun.traces.export import export
from profrun.traces.labels import labels, make_labels, rank_cell
from profrun.traces.schema import DeviceRow, ProcessRow
from profrun.traces.trace import Trace
from profrun.traces.writer import TraceWriter
from tests.reports.documents import page

Who = tuple[int, str | None, bool]  # rank, host, guessed
Gpu = tuple[int, int, int | None]  # process, ordinal, number on the host


def called(processes: list[Who], devices: list[Gpu], used: set[int] | None = None) -> list[str]:
    """Labels of the devices, in order."""
    people = [
        {"process": number, "pid": 100 + number, "rank": rank, "host": host, "rank_guessed": guessed}
        for number, (rank, host, guessed) in enumerate(processes)
    ]
    gpus = [
        {"device": number, "process": process, "ordinal": ordinal, "host_ordinal": on_host}
        for number, (process, ordinal, on_host) in enumerate(devices)
    ]
    everything = set(range(len(gpus))) if used is None else used
    found = make_labels(cast("list[ProcessRow]", people), cast("list[DeviceRow]", gpus), everything)
    return list(found.gpus.values())


@pytest.mark.parametrize(
    ("processes", "devices", "expected"),
    [
        # one process
        ([(0, None, False)], [(0, 0, None), (0, 1, None)], ["GPU 0", "GPU 1"]),
        ([(5, "a", False)], [(0, 5, None)], ["GPU 5 (rank 5)"]),  # one rank's file of eight
        # two ranks, each sees its own GPU as 0
        (
            [(0, "a", False), (1, "a", False)],
            [(0, 0, None), (1, 0, None)],
            ["GPU 0 (rank 0)", "GPU 0 (rank 1)"],
        ),
        # the same, and the recording says which number each has on the host
        ([(0, "a", False), (1, "a", False)], [(0, 0, 2), (1, 0, 3)], ["GPU 2 (rank 0)", "GPU 3 (rank 1)"]),
        # two ranks, both see both; ids of the trace are 0 to 3
        (
            [(0, "a", False), (1, "a", False)],
            [(0, 0, None), (0, 1, None), (1, 0, None), (1, 1, None)],
            ["GPU 0 (rank 0)", "GPU 1 (rank 0)", "GPU 0 (rank 1)", "GPU 1 (rank 1)"],
        ),
        # a rank that nothing states
        ([(0, None, False), (1, None, True)], [(1, 1, None)], ["GPU 1 (guessed rank 1)"]),
        ([(0, None, True)], [(0, 0, None)], ["GPU 0 (guessed rank 0)"]),
        # two processes of one rank
        (
            [(0, "a", False), (0, "a", False)],
            [(0, 0, None), (1, 0, None)],
            ["GPU 0 (pid 100)", "GPU 0 (pid 101)"],
        ),
        # a host that is not known beside one that is
        (
            [(0, "a", False), (1, "b", False), (2, None, False)],
            [(0, 0, None), (1, 0, None), (2, 0, None)],
            ["a, GPU 0 (rank 0)", "b, GPU 0 (rank 1)", "unknown host, GPU 0 (rank 2)"],
        ),
        # one way of counting in a process: the number on the host is not known for all of its GPUs
        ([(0, "a", False)], [(0, 0, 1), (0, 1, None)], ["GPU 0", "GPU 1"]),
    ],
)
def test_the_name_of_a_gpu(processes: list[Who], devices: list[Gpu], expected: list[str]) -> None:
    assert called(processes, devices) == expected


def test_eight_ranks_on_two_hosts() -> None:
    processes: list[Who] = [(rank, f"node{rank // 4}", False) for rank in range(8)]
    devices: list[Gpu] = [(rank, rank % 4, None) for rank in range(8)]
    assert called(processes, devices)[::3] == [
        "node0, GPU 0 (rank 0)",
        "node0, GPU 3 (rank 3)",
        "node1, GPU 2 (rank 6)",
    ]


def test_a_gpu_that_did_nothing_does_not_decide_how_others_are_counted() -> None:
    devices: list[Gpu] = [(0, 0, 2), (0, 1, None)]
    assert called([(0, "a", False)], devices, used={0}) == ["GPU 2", "GPU 1"]


def test_labels_are_distinct_whatever_the_rows_say() -> None:
    processes: list[Who] = [(0, "a", False)] * 3
    assert len(set(called(processes, [(0, 0, None), (1, 0, None), (2, 0, None)]))) == 3


def test_a_rank_in_a_column() -> None:
    assert [rank_cell(rank, {1}) for rank in (0, 1)] == ["0", "1 (guessed)"]


def two_ranks(out: Path, *, own: bool, hosts: tuple[str | None, str | None], guessed: bool) -> Trace:
    """Two ranks with a step, a launch, a kernel and an allocator record each; ``own``: each sees one GPU."""
    with TraceWriter(out) as writer:
        writer.meta.update({"source": "synthetic", "collector": "torch", "vendor": "nvidia"})
        people = [(0, 100, 0, hosts[0], False), (1, 101, 1, hosts[1], guessed)]
        writer.insert("processes", ("process", "pid", "rank", "host", "rank_guessed"), people)
        gpus = [(0, 0, 0), (1, 1, 0)] if own else [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)]
        columns: tuple[str, ...] = ("device", "process", "vendor", "ordinal", "name", "memory_bytes")
        writer.insert("devices", columns, [(d, p, "nvidia", o, "NVIDIA H200", 100) for d, p, o in gpus])
        mine = [0, 1] if own else [0, 3]
        columns = ("track", "kind", "process", "device", "native_id", "name")
        writer.insert("tracks", columns, [(p, "thread", p, None, 5, "main") for p in (0, 1)])
        writer.insert("tracks", columns, [(2 + p, "stream", p, mine[p], 7, "stream 7") for p in (0, 1)])
        writer.insert("tracks", columns, [(4 + p, "counter", p, mine[p], None, "memory") for p in (0, 1)])
        samples = [(4 + p, 5, "memory allocated", 95.0, "byte") for p in (0, 1)]
        writer.insert("counters", ("track", "ts_ns", "name", "value", "unit"), samples)
        columns = ("slice", "kind", "name", "ts_ns", "dur_ns", "track", "parent", "depth", "launch")
        for p in (0, 1):
            rows: list[tuple[object, ...]] = [
                (3 * p, "step", "ProfilerStep#1", 0, 100_000, p, None, 0, None),
                (3 * p + 1, "api", "cudaLaunchKernel", 10, 5, p, 3 * p, 1, None),
                (3 * p + 2, "kernel", "gemm", 100, 20_000, 2 + p, None, None, 3 * p + 1),
            ]
            writer.insert("slices", columns, rows)
            writer.insert("kernels", ("slice",), [(3 * p + 2,)])
        writer.finish()
    return Trace(out)


@pytest.mark.parametrize(
    ("own", "hosts", "guessed", "expected"),
    [
        (True, ("a", "a"), False, ("GPU 0 (rank 0)", "GPU 0 (rank 1)")),
        (False, ("a", "a"), False, ("GPU 0 (rank 0)", "GPU 1 (rank 1)")),
        (False, ("a", "b"), True, ("a, GPU 0 (rank 0)", "b, GPU 1 (guessed rank 1)")),
    ],
)
def test_every_screen_says_the_same(
    own: bool, hosts: tuple[str, str], guessed: bool, expected: tuple[str, str], tmp_path: Path
) -> None:
    with two_ranks(tmp_path / "t", own=own, hosts=hosts, guessed=guessed) as trace:
        assert [labels(trace).gpus[device] for device in ((0, 1) if own else (0, 3))] == list(expected)
        summary = summarize(trace)
        terminal = summary_text(summary)
        findings = [finding for finding in diagnose(trace) if finding.code == "memory-near-full"]
        timeline = timeline_slices(trace)
        html = page(trace).text
        export(trace, tmp_path / "x.json", "chrome")
        assert timeline is not None
        names = [track.name for track in timeline.tracks]
        exported = {
            event["args"]["name"]
            for event in json.loads((tmp_path / "x.json").read_text())["traceEvents"]
            if event["name"] == "thread_name"
        }
        for label in expected:
            assert f"{label}: NVIDIA H200" in terminal
            assert f"{label} memory peak" in terminal
            assert label in repr(findings)
            assert f"{label} stream 7" in names
            assert f"{label}: NVIDIA H200" in html
            assert f"{label} stream 7" in exported
        assert ("1 (guessed)" in terminal) == guessed
        assert ("1 (guessed)" in html) == guessed
