"""Copies by direction, with their bandwidth."""

from __future__ import annotations

from profrun.analysis.trace.copies import copies
from tests.analysis.kit import memory_trace


def test_copies_by_direction_with_their_bandwidth() -> None:
    def copy(at: int, direction: str, size: int | None, dur: int) -> tuple[object, ...]:
        columns = {"copies.direction": direction, "copies.bytes": size, "copies.src_kind": "pinned"}
        return ("memcpy", "m", at, dur, "stream 7", columns)

    rows = copies(
        memory_trace([copy(0, "HtoD", 1000, 10), copy(20, "HtoD", 3000, 30), copy(60, "DtoH", None, 5)])
    )
    assert [(row.direction, row.calls, row.bytes, row.total_ns, row.gb_s) for row in rows] == [
        ("HtoD", 2, 4000, 40, 100.0), ("DtoH", 1, None, 5, None)]  # fmt: skip
