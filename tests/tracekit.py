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
        for name, track in tracks.items():
            stream = name.startswith("stream ")
            writer.insert(
                "tracks",
                ("track", "kind", "process", "device", "native_id", "name"),
                [
                    (
                        track,
                        "stream" if stream else "thread",
                        0,
                        0 if stream else None,
                        int(name.split()[1]) if stream else track,
                        name,
                    )
                ],
            )
        for number, (kind, name, ts_ns, dur_ns, track, *rest) in enumerate(slices):
            _insert_slice(writer, number, (kind, name, ts_ns, dur_ns, tracks[track]), rest[0] if rest else {})
        for table, rows in (side or {}).items():
            for values in rows:
                writer.insert(table, tuple(values), [tuple(values.values())])
        writer.finish()
    return Trace(out)


def _insert_slice(
    writer: TraceWriter, number: int, core: tuple[Any, ...], columns: Mapping[str, Any]
) -> None:
    row: dict[str, Any] = dict(
        zip(("slice", "kind", "name", "ts_ns", "dur_ns", "track"), (number, *core), strict=True)
    )
    side: dict[str, dict[str, Any]] = {}
    if row["kind"] == "kernel":
        side["kernels"] = {"slice": number}
    for key, value in columns.items():
        table, _, column = key.rpartition(".")
        if table:
            side.setdefault(table, {"slice": number})[column] = value
        else:
            row[key] = value
    writer.insert("slices", tuple(row), [tuple(row.values())])
    for table, values in side.items():
        writer.insert(table, tuple(values), [tuple(values.values())])
