"""Exports for Chrome: what stands in the file."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from profrun.traces.export import export
from profrun.traces.export_chrome import microseconds
from tests.tracekit import make_trace
from tests.traces.exported import BIG, events_of, small


def test_chrome(tmp_path: Path) -> None:
    trace = small(tmp_path / "t")
    result = export(trace, tmp_path / "x.json", "chrome")
    assert (result.slices, result.tracks_added, result.counters, result.flows) == (6, 2, 2, 2)
    events = events_of(tmp_path / "x.json")
    complete = [(e["name"], e["ts"], e["dur"], e["cat"]) for e in events if e["ph"] == "X"]
    assert sorted(complete) == sorted(
        [
            ("aten::mm", Decimal("0.000"), Decimal("0.100"), "op"),
            ("cudaLaunchKernel", Decimal("0.010"), Decimal("0.020"), "api"),
            ("crosses", Decimal("0.090"), Decimal("0.030"), "api"),
            ('k "1"', Decimal("0.050"), Decimal("0.025"), "kernel"),
            ("k2", Decimal("0.070"), Decimal("0.010"), "kernel"),
            ("k3", Decimal("0.080"), Decimal("0.010"), "kernel"),
        ]
    )
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    where = {e["name"]: tracks[e["tid"]] for e in events if e["ph"] == "X"}
    assert where == {
        "aten::mm": "main",
        "cudaLaunchKernel": "main",
        "crosses": "main (2)",
        'k "1"': "GPU 0 stream 7",
        "k2": "GPU 0 stream 7 (2)",
        "k3": "GPU 0 stream 7",
    }
    arrows = [(e["ph"], e["id"], e["ts"]) for e in events if e["ph"] in "sf"]
    assert sorted(arrows) == [
        ("f", 4, Decimal("0.050")),
        ("f", 5, Decimal("0.070")),
        ("s", 4, Decimal("0.010")),
        ("s", 5, Decimal("0.010")),
    ]
    samples = [(e["ts"], e["args"]["value"]) for e in events if e["ph"] == "C"]
    assert samples == [(Decimal("0.003"), Decimal("1.5")), (Decimal("0.009"), Decimal("2.5"))]
    whole = json.loads((tmp_path / "x.json").read_text())
    assert whole["otherData"]["start_ns"] == BIG


def test_pids_never_collide(tmp_path: Path) -> None:
    """Two ranks in containers are both process 14; so is a thread of theirs."""
    trace = make_trace(
        tmp_path / "t",
        [("api", "a", 10, 5, "main")],
        side={
            "processes": [{"process": 1, "pid": 100, "rank": 1}, {"process": 2, "pid": 0, "rank": 2}],
            "tracks": [
                {"track": 5, "kind": "thread", "process": 1, "native_id": 0, "name": "main"},
                {"track": 6, "kind": "thread", "process": 2, "native_id": 0, "name": "main"},
            ],
            "slices": [
                {"slice": 1, "kind": "api", "name": "b", "ts_ns": 10, "dur_ns": 5, "track": 5},
                {"slice": 2, "kind": "api", "name": "c", "ts_ns": 10, "dur_ns": 5, "track": 6},
            ],
        },
    )
    export(trace, tmp_path / "x.json", "chrome")
    events = events_of(tmp_path / "x.json")
    assert len({e["pid"] for e in events if e["ph"] == "X"}) == 3
    assert all(e["pid"] > 0 for e in events)
    names = sorted(e["args"]["name"] for e in events if e["name"] == "process_name")
    assert names == ["rank 0: process (pid 100)", "rank 1: process (pid 100)", "rank 2: process (pid 0)"]


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_microseconds_are_exact(value: int) -> None:
    assert Decimal(microseconds(value)) * 1000 == value
