"""What a report shows of one trace: every question asked once, answers kept as plain results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from profrun.reports.timeline import Timeline, timeline_of

if TYPE_CHECKING:
    from profrun.analysis.rules.diagnose import RuleFinding
    from profrun.analysis.trace.memory import MemorySeries
    from profrun.analysis.trace.roofline import Roofline
    from profrun.analysis.trace.summary import Summary
    from profrun.traces.trace import Trace


METRICS = 200
_METRICS = """SELECT s.name AS kernel, s.slice, m.name, m.value, m.unit
FROM metrics m JOIN slices s USING (slice) ORDER BY s.dur_ns DESC, s.slice, m.name LIMIT ?"""


@dataclass(frozen=True)
class TraceContent:
    """One trace, asked.

    Attributes:
        name: what to call it: the trial's name, or the file's.
        summary: whole tables; the page cuts them and says so.
        findings: of the diagnosis.
        memory: series of allocated bytes.
        roofline: None where the trace's kernels were serialised.
        timeline: slices of a few steps, None for a trace without slices or of serialised kernels.
        meta: the trace's meta.json.
        metrics: hardware counters of the longest kernels: kernel, name, value, unit; metric_count: of all.
        issues: rows of the trace's issues table.
    """

    name: str
    summary: Summary
    findings: list[RuleFinding]
    memory: list[MemorySeries] = field(default_factory=list)
    roofline: Roofline | None = None
    timeline: Timeline | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    issues: list[dict[str, Any]] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    metric_count: int = 0


def content_of(
    trace: Trace, *, name: str, provenance: Mapping[str, Any] | None = None, slices: int = 4000
) -> TraceContent:
    """Ask a trace everything that a report shows.

    Args:
        name: what to call it.
        provenance: the trial's provenance.json, where there is one (clocks and throttle reasons).
        slices: most slices of the timeline view.
    """
    from profrun.analysis.rules.diagnose import diagnose
    from profrun.analysis.trace.memory import allocated
    from profrun.analysis.trace.summary import summarize

    summary = summarize(trace)
    return TraceContent(
        name=name,
        summary=summary,
        findings=diagnose(trace, provenance=provenance),
        memory=allocated(trace),
        roofline=summary.roofline,
        timeline=None if trace.meta.get("replayed") else timeline_of(trace, most=slices),
        meta=trace.meta,
        issues=trace.sql("SELECT code, count, message, example FROM issues ORDER BY code").dicts(),
        metrics=trace.sql(_METRICS, (METRICS,)).dicts(),
        metric_count=int(trace.sql("SELECT count(*) FROM metrics").scalar()),
    )
