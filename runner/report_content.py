"""Gathers what a report shows of a trace: each question is asked once, of ``profrun.analysis``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from profrun.reports.content import TraceContent

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

METRICS = 200
"""Most hardware counters that a report shows."""


def trace_content(
    trace: Trace, *, name: str, provenance: Mapping[str, object] | None = None, slices: int = 4000
) -> TraceContent:
    """Ask a trace everything that a report shows of it.

    Args:
        trace: any trace.
        name: what to call it.
        provenance: the trial's provenance.json, where there is one, for clocks and throttle reasons.
        slices: most slices of the timeline; kernels that were serialised have no timeline.
    """
    from profrun.analysis.rules.diagnose import diagnose
    from profrun.analysis.trace.memory import allocated
    from profrun.analysis.trace.recorded_tables import hardware_metrics, reader_issues
    from profrun.analysis.trace.summary import summarize
    from profrun.analysis.trace.timeline_slices import timeline_slices

    metrics, metric_count = hardware_metrics(trace, most=METRICS)
    return TraceContent(
        name=name,
        summary=summarize(trace),
        findings=diagnose(trace, provenance=provenance),
        memory=allocated(trace),
        timeline=None if trace.meta.get("replayed") else timeline_slices(trace, most=slices),
        issues=reader_issues(trace),
        metrics=metrics,
        metric_count=metric_count,
    )
