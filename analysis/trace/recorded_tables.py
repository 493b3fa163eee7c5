"""What a trace recorded beside its slices, as rows: hardware counters of kernels, and the reader's issues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class MetricRow:
    """One hardware counter of one launch of a kernel.

    Attributes:
        kernel: name of the kernel; slice: id of the launch in the trace.
        name, unit: as the tool calls them; value: in that unit.
    """

    kernel: str
    slice: int
    name: str
    value: float
    unit: str | None


@dataclass(frozen=True)
class IssueRow:
    """One kind of trouble that the reader had with the profiler's file, and how often.

    Attributes:
        code: stable short name; message: the trouble in words.
        count: how often it occurred; example: one place where it did.
    """

    code: str
    count: int
    message: str
    example: str | None


def hardware_metrics(trace: Trace, *, most: int) -> tuple[list[MetricRow], int]:
    """The hardware counters of the longest kernels.

    Args:
        trace: any trace.
        most: rows to return.

    Returns:
        At most ``most`` rows, and the number of rows that the trace has.
    """
    rows = trace.sql(
        "SELECT s.name, s.slice, m.name, m.value, m.unit FROM metrics m JOIN slices s USING (slice) "
        "ORDER BY s.dur_ns DESC, s.slice, m.name LIMIT ?",
        (most,),
    ).rows
    return [MetricRow(*row) for row in rows], int(trace.sql("SELECT count(*) FROM metrics").scalar())


def reader_issues(trace: Trace) -> list[IssueRow]:
    """The issues of the reader, by code."""
    rows = trace.sql("SELECT code, count, message, example FROM issues ORDER BY code").rows
    return [IssueRow(*row) for row in rows]
