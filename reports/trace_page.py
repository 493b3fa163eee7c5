"""The part of a report that shows one trace: its answer, whether to trust it, then where the time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.reports import trace_tables
from profrun.reports.calls_section import calls_html
from profrun.reports.device_section import devices_html
from profrun.reports.findings_section import findings_html
from profrun.reports.html import Html, el, sections_html
from profrun.reports.html_table import Column, table
from profrun.reports.memory_section import memory_html
from profrun.reports.phase_table import phase_bands
from profrun.reports.places_section import places_html
from profrun.reports.quality_marks import Marks
from profrun.reports.roofline_section import roofline_html
from profrun.reports.run_chart import run_chart
from profrun.reports.step_section import steps_html
from profrun.reports.timeline_section import timeline_html
from profrun.reports.verdict_section import facts_line, trust_html, verdict_html

if TYPE_CHECKING:
    from profrun.analysis.trace.recorded_tables import MetricRow
    from profrun.reports.content import TraceContent


def trace_html(content: TraceContent, key: str, *, titled: bool = False) -> Html:
    """Every section of one trace; the last line names the sections that it does not have.

    Args:
        content: what is shown.
        key: prefix of the ids of its sections, unique in the page.
        titled: its name stands above already.
    """
    summary = content.summary
    marks = Marks(summary)
    of = summary.denominator
    timeline, roofline = content.timeline, summary.roofline
    sections: list[tuple[str, str, Html | None]] = [
        ("findings", "Diagnosis", findings_html(content.findings, key)),
        ("gpus", "GPUs", devices_html(summary, marks)),
        ("run", "Course of the run", run_chart(content.run, phase_bands(summary)) if content.run else None),
        ("steps", "The run" if of.of == "run" else "Steps", steps_html(summary, content.spread, marks)),
        ("timeline", "Timeline", timeline_html(timeline, key) if timeline else None),
        ("calls", "Call tree", calls_html(content.calls, summary.modules, key, of, content.places)),
        *_lines(content, key),
        ("kernels", "Kernels", trace_tables.kernels(summary, marks)),
        ("ops", "Operators", trace_tables.ops(summary, content.shapes, marks)),
        ("ranges", "Ranges", trace_tables.ranges(summary, marks)),
        ("runtime", "Runtime calls", trace_tables.runtime(summary, marks)),
        ("copies", "Copies and fills", trace_tables.copies(summary, marks)),
        ("collectives", "Collectives", trace_tables.collectives(summary, marks)),
        ("memory", "Memory", memory_html(summary.memory, content.memory, summary.gpus)),
        ("idle", "Why the GPU was idle", trace_tables.idle_table(summary, marks)),
        ("metrics", "Hardware metrics", _metrics(content)),
        ("roofline", "Roofline", roofline_html(roofline, summary.gpus) if roofline else None),
    ]
    return el(
        "div",
        None if titled else el("h2", content.tab or content.name),
        verdict_html(content, key),
        el("div", trust_html(content), id=f"{key}-integrity"),
        el("p", f"{content.name}: " if content.tab else None, facts_line(content), class_="note"),
        sections_html(sections, key, of=content.name, absent="Not in this recording: "),
    )


def _lines(content: TraceContent, key: str) -> list[tuple[str, str, Html | None]]:
    """The section on lines; none where no trial asked for them, so that nobody takes them for missing."""
    title = "GPU time by line"
    if content.places is None:
        missing = content.places_missing
        return [("lines", title, el("p", missing, class_="note"))] if missing else []
    return [("lines", title, places_html(content.places, key, content.summary.denominator))]


def _metrics(content: TraceContent) -> Html | None:
    rows = content.metrics
    if not rows:
        return None
    columns: list[Column[MetricRow]] = [
        Column("kernel", lambda row: row.kernel, "name"),
        Column("slice", lambda row: row.slice, "count", "which launch: its id in the trace"),
        Column("metric", lambda row: row.name, "name", "as the tool calls it"),
        Column("value", lambda row: row.value, "amount"),
        Column("unit", lambda row: row.unit),
    ]
    caption, total = "metrics of single launches, longest kernel first", content.metric_count
    found = table("metrics", columns, rows, caption=caption, limit=len(rows), filterable=True, total=total)
    return el("div", el("p", "All of them: `profrun query TRACE 'FROM metrics'`.", class_="note"), found)
