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
