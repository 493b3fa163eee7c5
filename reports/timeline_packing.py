"""A timeline as one text for the script of the page: compressed columns in base64.

What is compressed (zlib) is, one after the other:

* the length of the header in bytes, 4 bytes, little-endian;
* the header, JSON in ASCII: names, tracks, and how many bytes per value each column has (``columns``);
* the columns, in the order of ``columns``. A column is split into planes: the lowest bytes of all its
  values, then the next bytes, and so on. Planes compress well, because the high bytes are mostly 0, and a
  script reads them fast. Values have as many planes as the largest needs.

``start`` holds differences within a row, ``launch`` and ``slice`` hold differences to the value before with
the sign in the lowest bit. Times are counted from the first slice of the trace, so they are exact as numbers
of JavaScript below 2^53 ns, which is 104 days.

``reports/static/timeline_data.js`` reads it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.timeline_slices import CATEGORIES

if TYPE_CHECKING:
    from profrun.analysis.trace.timeline_slices import Timeline

LEVEL = 6
"""Effort of zlib: of 1 to 9, the default."""
MOST_NS = 2**53
"""From this time on numbers of JavaScript are not exact."""


def packed(timeline: Timeline) -> str:
    """The whole timeline.

    Args:
        timeline: its times are below ``MOST_NS``; a larger one is cut to that, which 104 days reach.
    """
    columns = dict(_columns(timeline))
    planes = {name: _width(values) for name, values in columns.items()}
    header = _header(timeline) | {
        "columns": [[name, width, len(columns[name])] for name, width in planes.items()]
    }
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode("ascii")
    press = zlib.compressobj(LEVEL)
    parts = [press.compress(len(text).to_bytes(4, "little") + text)]
    parts += [press.compress(_planes(values, planes[name])) for name, values in columns.items()]
    parts.append(press.flush())
    return base64.b64encode(b"".join(parts)).decode("ascii")


def _header(timeline: Timeline) -> dict[str, object]:
    return {
        "span": timeline.span_ns,
        "window": timeline.window[:2],
        "processes": timeline.processes,
        "tracks": timeline.tracks,
        "categories": CATEGORIES,
        "names": timeline.names,
        "details": timeline.details,
        "counters": [[one.name, one.unit, one.process, one.words] for one in timeline.counters],
        "steps": timeline.steps,
        "run": timeline.denominator.the if timeline.denominator.of == "run" else None,
    }


def _columns(timeline: Timeline) -> Iterator[tuple[str, NDArray[np.uint64]]]:
    """Every column as whole numbers that are not negative."""
    start = np.minimum(timeline.start, MOST_NS)
    gaps = np.diff(start, prepend=0)
    first = timeline.rows[:-1][np.diff(timeline.rows) > 0]
    gaps[first] = start[first]
    yield "rows", np.diff(timeline.rows).astype(np.uint64)
    yield "start", gaps.astype(np.uint64)
    yield "dur", np.minimum(timeline.dur, MOST_NS).astype(np.uint64)
    yield "name", timeline.name.astype(np.uint64)
    yield "category", timeline.category.astype(np.uint64)
    yield "launch", _signed(timeline.launch)
    yield "slice", _signed(timeline.slice)
    yield "detail", (timeline.detail + 1).astype(np.uint64)
    for number, one in enumerate(timeline.counters):
        yield f"times{number}", np.diff(np.clip(one.times, 0, MOST_NS), prepend=0).astype(np.uint64)
        yield f"values{number}", one.values.astype("<f8").view(np.uint64)


def _signed(values: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Differences to the value before, with the sign in the lowest bit."""
    wide = values.astype(np.int64)
    change: NDArray[np.int64] = wide - np.concatenate([[0], wide[:-1]])
    return np.asarray((change << 1) ^ (change >> 63), dtype=np.int64).astype(np.uint64)


def _width(values: NDArray[np.uint64]) -> int:
    """Bytes that the largest value needs, at least 1."""
    largest = int(values.max()) if len(values) else 0
    return max(1, (largest.bit_length() + 7) // 8)


def _planes(values: NDArray[np.uint64], width: int) -> bytes:
    """The lowest bytes of all values, then the next, ``width`` in all."""
    spread = values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
    return np.ascontiguousarray(spread.T).tobytes()
