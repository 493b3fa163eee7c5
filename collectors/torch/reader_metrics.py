"""Hardware counters in kineto files: the arguments of ``cuda_profiler_range`` events, one metric a key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from profrun.collectors.reading import Source
from profrun.collectors.torch.reader_cut import EventFile
from profrun.traces.writer import TraceWriter

CATEGORY = "cuda_profiler_range"


def metrics(writer: TraceWriter, sources: Sequence[Source]) -> None:
    """Fill ``metrics`` after ``slices``; reads a file once more, and only one that holds such events.

    The values were measured over a range, so the slices are ranges on the GPU's track. CUPTI's names state no
    unit; they are counts here (unit 1).
    """
    found = writer.con.execute("SELECT DISTINCT src FROM k_owner WHERE cat = ? ORDER BY 1", [CATEGORY])
    rows = [(src, *row) for (src,) in found.fetchall() for row in _values(sources[src])]
    if not rows:
        return
    writer.meta["replayed"] = True  # CUPTI's range profiler replays kernels
    writer.con.execute(
        "CREATE TABLE k_metric (src INTEGER, ts DECIMAL(38,3), range VARCHAR, name VARCHAR, value DOUBLE)"
    )
    marks = ", ".join(["(?, ?, ?, ?, ?)"] * len(rows))
    writer.con.execute(f"INSERT INTO k_metric VALUES {marks}", [value for row in rows for value in row])
    writer.con.execute(
        """
        INSERT INTO metrics SELECT s.slice, m.name, any_value(m.value), '1'
        FROM k_metric m JOIN (SELECT DISTINCT src, shift FROM k_track) l USING (src)
        JOIN k_slice s ON s.src = m.src AND s.ts_ns = CAST(m.ts * 1000 AS BIGINT) + l.shift
          AND s.name = m.range AND s.kind = 'range'
        GROUP BY s.slice, m.name ORDER BY s.slice, m.name
        """
    )


def _values(source: Source) -> Iterator[tuple[str, str, str, float]]:
    """(time in us as text, range, metric, value) of a file."""
    file = EventFile(source.path, source.gzip)
    try:
        file.open()
        for piece in file.pieces():
            text = file.text(piece)
            if CATEGORY.encode() in text:
                clean, _, _ = file.scan(text, final=True)
                for event in json.loads(b"[" + clean + b"]", parse_float=str):
                    if event.get("cat") == CATEGORY:
                        yield from _of_event(event)
    finally:
        file.blocks.close()


def _of_event(event: dict[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    for name, value in event.get("args", {}).items():
        try:
            at = Decimal(str(event["ts"]))
            if at.is_finite():
                yield str(at), str(event["name"]), str(name), float(value)
        except (TypeError, ValueError, KeyError, InvalidOperation):
            continue
