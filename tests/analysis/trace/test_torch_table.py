"""What torch's own table has instead, where it differs: against its rules, call by call, and real tables."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.trace.ops import operators
from profrun.analysis.trace.torch_table import torch_tree
from profrun.collectors.normalize import normalize
from profrun.traces.nest import nesting
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace
from tests.conftest import SHARED, examples, missing, unpack

LAUNCH = "cudaLaunchKernel"
KINETO = {"source": "kineto"}


def test_calls_of_other_threads_lie_on_the_main_thread_in_torchs_table() -> None:
    rows = [
        ("step", "ProfilerStep#1", 0, 100, "main"),
        ("op", "aten::mm", 10, 40, "main"),
        ("api", "cudaEventQuery", 20, 5, "watchdog"),  # inside aten::mm in time
        ("api", "cudaEventQuery", 70, 5, "watchdog"),
    ]
    found = {row.name: (row.self_cpu_ns, row.torch) for row in operators(memory_trace(rows, meta=KINETO))}
    assert found == {
        "ProfilerStep*": (60, {"self_cpu_ns": 55}),
        "aten::mm": (40, {"self_cpu_ns": 35}),
        "cudaEventQuery": (10, {}),
    }
    other = operators(memory_trace(rows, meta={"source": "nsys"}))  # no table of torch's to compare with
    assert [row.torch for row in other] == [{}, {}, {}]


def test_a_call_with_the_id_of_an_op_counts_its_gpu_time_in_torchs_table() -> None:
    rows = [
        ("step", "ProfilerStep#1", 0, 100, "main"),
        ("op", "aten::mm", 10, 40, "main", {"ops.external_id": 7}),
        ("api", LAUNCH, 20, 5, "main", {"correlation": 900}),
        ("kernel", "gemm", 50, 30, "stream 7", {"launch": 2}),
        ("api", "cudaEventQuery", 60, 5, "main", {"correlation": 7}),
        ("api", "cudaEventQuery", 70, 5, "main", {"correlation": 8}),
    ]
    found = {row.name: (row.device_ns, row.torch) for row in operators(memory_trace(rows, meta=KINETO))}
    assert found == {
        "ProfilerStep*": (30, {"device_ns": 60}),
        "aten::mm": (30, {}),
        LAUNCH: (0, {}),
        "cudaEventQuery": (0, {"self_device_ns": 30, "device_ns": 30}),
    }


def test_the_profilers_own_work_is_inside_the_main_threads_slices_in_torchs_table() -> None:
    rows = [
        ("op", "aten::mm", 0, 50, "main"),
        ("api", LAUNCH, 10, 30, "main"),
        ("overhead", "Command Buffer Full", 12, 20, "profiler overhead"),
    ]
    found = {row.name: (row.self_cpu_ns, row.torch) for row in operators(memory_trace(rows, meta=KINETO))}
    # which op torch gives the overhead's GPU time to depends on an id that is not in the file
    assert found == {
        "aten::mm": (20, {"device_ns": None}),
        LAUNCH: (30, {"self_cpu_ns": 10, "device_ns": None}),
    }


Made = tuple[str, str, int, int, str, dict[str, Any]]
KINDS = ("step", "range", "op", "api")


@st.composite
def recordings(draw: st.DrawFn) -> list[Made]:
    """Ops and calls of two threads, and calls of a third one; names and tracks of few kinds."""
    found = [("step", "ProfilerStep#1", 0, 200, "main")]
    for _ in range(draw(st.integers(1, 14))):
        kind, name = draw(st.sampled_from([("op", "a"), ("op", "b"), ("api", LAUNCH), ("range", "nccl:x")]))
        track = draw(st.sampled_from(["main", "main", "autograd", "watchdog"]))
        found.append((kind, name, draw(st.integers(0, 150)), draw(st.integers(1, 60)), track))
    found.sort(key=lambda one: (one[4], one[2], -one[3], KINDS.index(one[0])))
    ts, dur = (np.array([one[place] for one in found], dtype=np.int64) for place in (2, 3))
    tracks = np.unique([one[4] for one in found], return_inverse=True)[1]
    parents = nesting(tracks, ts, dur).parent.tolist()
    return [(*one, {"parent": None if up < 0 else up}) for one, up in zip(found, parents, strict=True)]


def as_torch(trace: Trace) -> dict[str, int]:
    """Self CPU time by name as ``EventList._populate_cpu_children`` gives it, event by event."""
    rows = trace.sql(
        "SELECT s.slice, s.kind, s.name, s.ts_ns, s.ts_ns + s.dur_ns AS stop, s.parent, t.name AS thread "
        "FROM slices s JOIN tracks t USING (track) WHERE t.kind = 'thread' ORDER BY s.slice"
    ).dicts()
    by_slice = {row["slice"]: row for row in rows}

    def in_op(row: dict[str, Any]) -> bool:
        above = by_slice.get(row["parent"])
        return above is not None and (above["kind"] == "op" or in_op(above))

    events = [row for row in rows if not row["name"].startswith("nccl:")]
    for row in events:
        if row["kind"] == "api" and not in_op(row):
            row["thread"] = "main"
    own = {row["slice"]: row["stop"] - row["ts_ns"] for row in events}
    for thread in {row["thread"] for row in events}:
        open_: list[dict[str, Any]] = []
        mine = [row for row in events if row["thread"] == thread]
        mine.sort(key=lambda one: (one["ts_ns"], -one["stop"], KINDS.index(one["kind"]), one["slice"]))
        for row in mine:
            while open_:
                above = open_[-1]
                if row["ts_ns"] >= above["stop"] or row["stop"] > above["stop"]:
                    open_.pop()
                else:
                    own[above["slice"]] -= row["stop"] - row["ts_ns"]
                    break
            open_.append(row)
    found: dict[str, int] = {}
    for row in events:
        found[row["name"]] = found.get(row["name"], 0) + own[row["slice"]]
    return found


@examples(25, 2000)
@given(recordings())
def test_torchs_self_times_are_those_of_its_own_rule(made: list[Made]) -> None:
    trace = memory_trace(made, meta=KINETO)
    mine: dict[str, int] = {}
    for row in operators(trace):
        if not row.name.startswith("nccl:"):
            name = "ProfilerStep#1" if row.kind == "step" else row.name
            mine[name] = mine.get(name, 0) + (row.torch.get("self_cpu_ns", row.self_cpu_ns) or 0)
    assert mine == as_torch(trace)
    assert torch_tree(trace) is torch_tree(trace)


def tables() -> Iterator[tuple[str, str]]:
    """(run, trial's trace) of the whole runs that lie beside the checkout."""
    for name in ("ddp", "dead", "hf"):
        archive = SHARED / "h200_runs" / f"{name}.tar.xz"
        if archive.exists():
            with tarfile.open(archive) as packed:
                for member in packed.getnames():
                    if member.endswith(".key_averages.json"):
                        yield name, member


@pytest.mark.thorough
@pytest.mark.parametrize(("run", "member"), list(tables()) or [("ddp", "")])
def test_real_tables_are_equal_or_the_row_says_what_torch_has(run: str, member: str, tmp_path: Path) -> None:
    archive = SHARED / "h200_runs" / f"{run}.tar.xz"
    if not archive.exists():
        missing(str(archive))
    with tarfile.open(archive) as packed:
        wanted = [
            one
            for one in packed.getmembers()
            if one.name.startswith(member.removesuffix(".key_averages.json"))
        ]
        unpack(packed, tmp_path, wanted)
    table = json.loads((tmp_path / member).read_text())["rows"]
    normalize([tmp_path / member.removesuffix(".key_averages.json")], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        mine = {row.name: row for row in operators(trace)}
    compared = 0
    for want in table:
        row = mine.get(want["key"])
        if row is None or want["device_type"] != "CPU" or not (want["self_cpu"] or want["cpu"]):
            continue
        for name in ("self_cpu", "cpu", "self_device", "device"):
            value = row.torch.get(f"{name}_ns", getattr(row, f"{name}_ns"))
            assert value is None or abs(value - want[name] * 1000) < 1, (row.name, name)
            compared += 1
        assert row.torch.get("calls", row.calls) == want["count"]
    assert compared > 300
