"""Exports: what stands in the files, and that nothing is lost on the way."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.errors import UnavailableError, UsageError
from profrun.traces.export import FileTracks, export
from profrun.traces.export_chrome import microseconds
from profrun.traces.export_perfetto import double, fixed64, number, text, varint
from profrun.traces.trace import Trace
from tests.conftest import examples
from tests.tracekit import make_trace

BIG = 1_758_927_066_581_847_261  # unix ns: not a whole number of microseconds, not exact as a double


def _small(folder: Path, start: int = BIG) -> Trace:
    """A host thread with a nested call, two kernels that overlap by 5 ns on one stream, a counter."""
    return make_trace(
        folder,
        [
            ("op", "aten::mm", start, 100, "main"),
            ("api", "cudaLaunchKernel", start + 10, 20, "main"),
            ("api", "crosses", start + 90, 30, "main"),
            ("kernel", 'k "1"', start + 50, 25, "stream 7", {"launch": 1, "kernels.grid_x": 4}),
            ("kernel", "k2", start + 70, 10, "stream 7", {"launch": 1}),
            ("kernel", "k3", start + 80, 10, "stream 7"),
        ],
        side={
            "tracks": [{"track": 2, "kind": "counter", "process": 0, "name": "memory"}],
            "counters": [
                {"track": 2, "ts_ns": start + 3, "name": "allocated", "value": 1.5, "unit": "byte"},
                {"track": 2, "ts_ns": start + 9, "name": "allocated", "value": 2.5, "unit": "byte"},
            ],
        },
    )


def _events(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    whole = gzip.decompress(data) if path.suffix == ".gz" else data
    found: list[dict[str, Any]] = json.loads(whole, parse_float=Decimal)["traceEvents"]
    return found


def test_chrome(tmp_path: Path) -> None:
    trace = _small(tmp_path / "t")
    result = export(trace, tmp_path / "x.json", "chrome")
    assert (result.slices, result.tracks_added, result.counters, result.flows) == (6, 2, 2, 2)
    events = _events(tmp_path / "x.json")
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


def test_gzip_by_name(tmp_path: Path) -> None:
    trace = _small(tmp_path / "t")
    export(trace, tmp_path / "x.json.gz", "chrome")
    assert len([e for e in _events(tmp_path / "x.json.gz") if e["ph"] == "X"]) == 6
    export(trace, tmp_path / "x.pftrace.gz", "perfetto")
    export(trace, tmp_path / "x.pftrace", "perfetto")
    assert gzip.decompress((tmp_path / "x.pftrace.gz").read_bytes()) == (tmp_path / "x.pftrace").read_bytes()


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
    events = _events(tmp_path / "x.json")
    assert len({e["pid"] for e in events if e["ph"] == "X"}) == 3
    assert all(e["pid"] > 0 for e in events)
    names = sorted(e["args"]["name"] for e in events if e["name"] == "process_name")
    assert names == ["rank 0: process (pid 100)", "rank 1: process (pid 100)", "rank 2: process (pid 0)"]


def test_an_existing_file_is_not_overwritten_and_a_failed_one_not_left(tmp_path: Path) -> None:
    trace = _small(tmp_path / "t")
    (tmp_path / "x").write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        export(trace, tmp_path / "x", "perfetto")
    assert (tmp_path / "x").read_text() == "mine"
    with pytest.raises(UnavailableError, match="cannot be written"):
        export(trace, tmp_path / "no" / "x", "perfetto")
    with pytest.raises(UsageError, match="unknown export format"):
        export(trace, tmp_path / "y", "svg")  # type: ignore[arg-type]


def test_an_empty_trace(tmp_path: Path) -> None:
    trace = make_trace(tmp_path / "t", [])
    assert export(trace, tmp_path / "x.json", "chrome").slices == 0
    assert [e for e in _events(tmp_path / "x.json") if e["ph"] == "X"] == []
    assert export(trace, tmp_path / "x.pftrace", "perfetto").slices == 0


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=60)


@examples(100, 3000)
@given(spans=SPANS, nests=st.booleans())
def test_tracks_hold_every_slice_once_and_never_cross(spans: list[tuple[int, int]], nests: bool) -> None:
    """On each track, slices are apart, or (where that is meant) one holds the other whole."""
    tracks = FileTracks(nests)
    placed: dict[int, list[tuple[int, int]]] = {}
    ends: dict[int, list[int]] = {}
    for start, length in sorted(spans, key=lambda span: (span[0], -span[1])):
        track, closed = tracks.place(start, start + length)
        for number_, end in closed:
            assert end <= start
            ends.setdefault(number_, []).append(end)
        placed.setdefault(track, []).append((start, start + length))
    for number_, end in tracks.rest():
        ends.setdefault(number_, []).append(end)
    assert sum(map(len, placed.values())) == len(spans)
    for track, items in placed.items():
        assert sorted(ends[track]) == sorted(end for _, end in items)
        for at, (_, end) in enumerate(items):
            for other_start, other_end in items[at + 1 :]:
                apart = other_start >= end
                inside = nests and other_end <= end
                assert apart or inside


def test_tracks_are_as_few_as_can_be(tmp_path: Path) -> None:
    """Interval partitioning by start needs as many tracks as slices overlap at most."""
    tracks = FileTracks(False)
    for start, end in ((0, 10), (2, 4), (3, 9), (4, 6), (10, 12)):
        tracks.place(start, end)
    assert len(tracks.open) == 3


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_microseconds_are_exact(value: int) -> None:
    assert Decimal(microseconds(value)) * 1000 == value


def test_wire_format() -> None:
    """Examples of the protobuf encoding documentation."""
    assert number(1, 150) == b"\x08\x96\x01"
    assert text(2, "testing") == b"\x12\x07testing"
    assert number(1, -2) == b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    assert varint(0) == b"\0"
    assert varint(2**64 - 1) == b"\xff" * 9 + b"\x01"
    assert fixed64(47, 1) == b"\xf9\x02" + b"\x01" + b"\0" * 7
    assert double(44, 1.0) == b"\xe1\x02" + b"\0" * 6 + b"\xf0\x3f"
