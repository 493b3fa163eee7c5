"""Small synthetic traces for tests: the trace, the question and the expected table on one screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from profrun.traces.meta import TraceMeta
from profrun.traces.trace import Trace
from profrun.traces.writer import TraceWriter

ThinSlice = tuple[Any, ...]  # (kind, name, ts_ns, dur_ns, track name, {column: value})


def make_trace(
    out: Path,
    slices: Sequence[ThinSlice],
    *,
    meta: Mapping[str, Any] | None = None,
    side: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    device: Mapping[str, Any] | None = None,
) -> Trace:
    """Write and open a one-process, one-GPU trace.

    A slice is (kind, name, ts_ns, dur_ns, track[, columns]); its id is its place in the list. Tracks named
    'stream N' are GPU streams of device 0, all others host threads. ``columns`` may set any column of slices,
    and with the prefix of a side table ('kernels.grid_x') a row there. ``side`` adds whole rows to tables.
    """
    with TraceWriter(out) as writer:
        writer.meta.update({"source": "synthetic", "collector": "torch", "vendor": "nvidia"})
        writer.meta.update(cast("TraceMeta", meta or {}))
        writer.insert("processes", ("process", "pid", "rank"), [(0, 100, 0)])
        gpu = {"device": 0, "process": 0, "vendor": "nvidia", "ordinal": 0, "name": "Test GPU", "sm_count": 4}
        gpu |= dict(device or {})
        writer.insert("devices", tuple(gpu), [tuple(gpu.values())])
        tracks: dict[str, int] = {}
        for row in slices:
            tracks.setdefault(row[4], len(tracks))
        rows: dict[str, list[Mapping[str, Any]]] = {"tracks": [_track(*one) for one in tracks.items()]}
        for number, (kind, name, ts_ns, dur_ns, track, *rest) in enumerate(slices):
            core = (number, kind, name, ts_ns, dur_ns, tracks[track])
            for table, values in _slice_rows(core, rest[0] if rest else {}).items():
                rows.setdefault(table, []).append(values)
        for table, more in (side or {}).items():
            rows.setdefault(table, []).extend(more)
        for table, those in rows.items():
            _insert(writer, table, those)
        writer.finish()
    return Trace(out)


def _track(name: str, track: int) -> dict[str, Any]:
    """The row of a track."""
    stream = name.startswith("stream ")
    return {
        "track": track,
        "kind": "stream" if stream else "thread",
        "process": 0,
        "device": 0 if stream else None,
        "native_id": int(name.split()[1]) if stream else track,
        "name": name,
    }


def _slice_rows(core: tuple[Any, ...], columns: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Table -> row, of one slice."""
    row = dict(zip(("slice", "kind", "name", "ts_ns", "dur_ns", "track"), core, strict=True))
    found = {"slices": row}
    if row["kind"] == "kernel":
        found["kernels"] = {"slice": row["slice"]}
    for key, value in columns.items():
        table, _, column = key.rpartition(".")
        found.setdefault(table or "slices", {"slice": row["slice"]})[column] = value
    return found


def _insert(writer: TraceWriter, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """All rows of a table go into few statements, because each takes a millisecond."""
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    writer.insert(table, columns, [tuple(map(row.get, columns)) for row in rows])
