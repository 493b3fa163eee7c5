"""Exports: what stands in the files, and that nothing is lost on the way."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.errors import UnavailableError, UsageError
from profrun.traces.export import FileTracks, export
from tests.conftest import examples
from tests.tracekit import make_trace
from tests.traces.exported import events_of, small


def test_gzip_by_name(tmp_path: Path) -> None:
    trace = small(tmp_path / "t")
    export(trace, tmp_path / "x.json.gz", "chrome")
    assert len([e for e in events_of(tmp_path / "x.json.gz") if e["ph"] == "X"]) == 6
    export(trace, tmp_path / "x.pftrace.gz", "perfetto")
    export(trace, tmp_path / "x.pftrace", "perfetto")
    assert gzip.decompress((tmp_path / "x.pftrace.gz").read_bytes()) == (tmp_path / "x.pftrace").read_bytes()


def test_an_existing_file_is_not_overwritten_and_a_failed_one_not_left(tmp_path: Path) -> None:
    trace = small(tmp_path / "t")
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
    assert [e for e in events_of(tmp_path / "x.json") if e["ph"] == "X"] == []
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


def test_samples_of_a_long_run_do_not_hide_a_short_window(tmp_path: Path) -> None:
    """Those within the slices are written, and one on either side; reasons are counters of 0 and 1."""
    values = {"SM clock": (1, 2, 3, 4, 5, 6), "slowed by": (2, 1, 0, 1, 64, 2)}
    counters = [
        {"track": 1, "ts_ns": ts, "name": name, "value": float(value), "unit": unit}
        for (name, row), unit in zip(values.items(), ("MHz", "mask"), strict=True)
        for ts, value in zip((-900, 900, 1010, 1050, 1200, 9000), row, strict=True)
    ]
    tracks = [{"track": 1, "kind": "counter", "process": 0, "device": 0, "name": "samples"}]
    side = {"tracks": tracks, "counters": counters}
    with make_trace(tmp_path / "t", [("op", "a", 1000, 100, "main")], side=side) as trace:
        result = export(trace, tmp_path / "x.json", "chrome")
    found: dict[str, list[tuple[float, float]]] = {}
    for event in events_of(tmp_path / "x.json"):
        if event["ph"] == "C":
            sample = (float(event["ts"]) * 1000 - result.shift_ns, event["args"]["value"])
            found.setdefault(event["name"], []).append(sample)
    assert found == {
        "GPU 0: SM clock": [(900, 2), (1010, 3), (1050, 4), (1200, 5)],
        "GPU 0: slowed by power cap": [(900, 1), (1010, 0), (1050, 1), (1200, 0)],
        "GPU 0: slowed by idle": [(900, 0), (1010, 0), (1050, 0), (1200, 1)],
    }
