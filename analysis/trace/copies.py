"""The table of copies and fills, by direction and kinds of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class CopyRow:
    """Copies or fills of one direction and pair of memory kinds.

    Attributes:
        direction, src_kind, dst_kind, managed: as in the trace.
        calls, total_ns, bytes: bytes None when no row has them.
        gb_s: bytes / ns of the rows that have bytes (1e9 bytes per second).
        timed_bytes, timed_ns: numerator and denominator of gb_s.
    """

    direction: str
    src_kind: str | None
    dst_kind: str | None
    managed: bool | None
    calls: int
    total_ns: int
    bytes: int | None
    gb_s: float | None
    timed_bytes: int
    timed_ns: int


def copies(trace: Trace) -> list[CopyRow]:
    """Copies and fills by direction and memory kinds, most time first."""
    rows = trace.sql(
        "SELECT c.direction, c.src_kind, c.dst_kind, c.managed, count(*), sum(s.dur_ns)::BIGINT AS total, "
        "sum(c.bytes)::BIGINT, coalesce(sum(c.bytes) FILTER (s.dur_ns > 0), 0)::BIGINT, "
        "coalesce(sum(s.dur_ns) FILTER (c.bytes IS NOT NULL), 0)::BIGINT "
        "FROM copies c JOIN slices s USING (slice) WHERE s.kind IN ('memcpy', 'memset') "
        "GROUP BY ALL ORDER BY total DESC, 1, 2, 3, 4"
    ).rows
    return [
        CopyRow(
            direction=direction,
            src_kind=src_kind,
            dst_kind=dst_kind,
            managed=managed,
            calls=calls,
            total_ns=total,
            bytes=size,
            gb_s=timed / time if timed and time else None,
            timed_bytes=timed,
            timed_ns=time,
        )
        for direction, src_kind, dst_kind, managed, calls, total, size, timed, time in rows
    ]
