"""The part of a report that shows one trace: the quality of the recording first, then where the time went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from profrun.contract.units import count_text, percent_text, time_text
from profrun.reports.charts import legend, memory_chart, stacked_bar
from profrun.reports.findings import findings_html
from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, table
from profrun.reports.quality_marks import Marks
from profrun.reports.roofs import roofline_html
from profrun.reports.timeline import timeline_html
from profrun.reports.trace_tables import collectives, copies, idle_table, kernels, ops, ranges, runtime

if TYPE_CHECKING:
    from profrun.analysis.trace.gpu import DeviceMetrics
    from profrun.analysis.trace.summary import Summary
    from profrun.reports.content import TraceContent

ROLES = {
    "kernel": "kernels",
    "memcpy": "copies",
    "memset": "fills",
    "comm": "communication",
    "runtime": "runtime calls",
    "dataloader": "data loading",
    "cpu_op": "ops and ranges on the CPU",
    "other": "nothing recorded",
}
STEPS_SHOWN = 60


def trace_html(content: TraceContent, key: str, *, titled: bool = False) -> Html:
    """Every section of one trace.

    Args:
        key: prefix of the ids of its sections, unique in the page.
        titled: its name stands above already.
    """
    marks = Marks(content.summary)
    sections: list[tuple[str, str, Html | None]] = [
        ("integrity", "Can these numbers be trusted?", _quality(content, marks)),
        ("gpus", "GPUs", _devices(content.summary, marks)),
        ("findings", "Diagnosis", findings_html(content.findings)),
        ("steps", "Steps", _steps(content.summary, marks)),
        ("timeline", "Timeline", timeline_html(content.timeline, key) if content.timeline else None),
        ("kernels", "Kernels", kernels(content.summary, marks)),
        ("ops", "Operators", ops(content.summary, marks)),
        ("ranges", "Ranges and modules", ranges(content.summary, marks)),
        ("runtime", "Runtime calls", runtime(content.summary, marks)),
        ("copies", "Copies and fills", copies(content.summary, marks)),
        ("collectives", "Collectives", collectives(content.summary, marks)),
        ("memory", "Memory", _memory(content)),
        ("idle", "Why the GPU was idle", idle_table(content.summary, marks)),
        ("metrics", "Hardware metrics", _metrics(content)),
        ("roofline", "Roofline", roofline_html(content.roofline) if content.roofline else None),
    ]
    present = [(id_, title, body) for id_, title, body in sections if body]
    return el(
        "div",
        None if titled else el("h2", content.name),
        el("p", _what(content.summary), class_="note"),
        el(
            "nav",
            (el("a", title, href=f"#{key}-{id_}") for id_, title, _ in present),
            class_="sections", aria_label=f"sections of {content.name}",
        ),
        (el("section", el("h3", title), body, id=f"{key}-{id_}") for id_, title, body in present),
        _absent([title for _, title, body in sections if not body]),
    )  # fmt: skip


def _what(summary: Summary) -> str:
    version = f" {summary.tool_version}" if summary.tool_version else ""
    blocking = {True: "on", False: "off", None: "not stated"}[summary.launch_blocking]
    counts = ", ".join(f"{count_text(count)} {kind}" for kind, count in summary.counts.items())
    return (
        f"collector {summary.collector}, read from {summary.source}{version}; {time_text(summary.span_ns)} "
        f"from first to last slice; launch blocking {blocking}; slices: {counts or 'none'}"
    )


def _absent(titles: Sequence[str]) -> Html | None:
    return el("p", "Not in this recording: ", ", ".join(titles), ".", class_="note") if titles else None


def _quality(content: TraceContent, marks: Marks) -> Html:
    rows: list[Html] = [
        el(
            "li",
            el("b", finding.severity, class_=f"chip {finding.severity}"),
            " ",
            str(finding),
            el("span", " ", _touches(finding.severity, finding.affects), class_="note")
            if finding.affects
            else None,
            el("code", finding.code),
        )
        for finding in content.summary.quality
    ]
    if not rows:
        rows = [el("li", el("b", "fine", class_="chip fine"), " no check found a reason for doubt")]
    said = [
        el("li", f"{issue['code']}: {issue['message']} ({count_text(issue['count'])} times)")
        for issue in content.issues
    ]
    notes = el("details", el("summary", f"{len(said)} notes of the reader"), el("ul", said)) if said else None
    return el("div", el("ul", rows, class_="quality"), notes)


def _touches(severity: str, affects: Sequence[str]) -> str:
    word = {"critical": "withheld", "warning": "marked with ?"}.get(severity, "touches")
    return f"{word}: {', '.join(affects)}"


def _devices(summary: Summary, marks: Marks) -> Html | None:
    if not summary.devices:
        return None
    return el("div", (_device(device, summary, marks) for device in summary.devices))


def _which(device: DeviceMetrics) -> str:
    """Its number in this trace, as everywhere on the page, and the rank's own where that is another."""
    if device.device == device.ordinal:
        return f"GPU {device.device} of rank {device.rank}"
    return f"GPU {device.device} (GPU {device.ordinal} of rank {device.rank})"


def _device(device: DeviceMetrics, summary: Summary, marks: Marks) -> Html:
    peaks = summary.peaks.get(device.device)
    timed = any(step.process == device.process for step in summary.steps)
    what = "first to last step with their GPU work" if timed else "the recorded host work (no steps)"
    window = f"of {time_text(device.window_ns)}, {what}"
    told = {"tool": "the profiler's figures", "estimated": "estimated from registers and shared memory"}
    source = told.get(device.occupancy_source or "", device.occupancy_source or "no kernel has one")
    tiles: list[tuple[str, str, Any, Callable[[Any], str], str]] = [
        ("utilization", "utilization", device.utilization, percent_text, f"any kernel running; {window}"),
        ("est_sm_efficiency", "est. SM efficiency", device.est_sm_efficiency, percent_text,
         f"blocks over SMs, at most 1; {window}"),
        ("est_achieved_occupancy", "est. achieved occupancy", device.est_achieved_occupancy, percent_text,
         f"{source}; of {time_text(device.occupancy_ns)} of kernel time"),
        ("busy_ns", "busy", device.busy_ns, time_text,
         f"kernels, copies and fills; of {time_text(device.span_ns)}, first to last GPU work"),
        ("matrix_core_share", "on tensor / matrix cores", device.matrix_core_share, percent_text,
         f"by kernel names; of {time_text(device.total_kernel_ns)} of kernel time"),
    ]  # fmt: skip
    if device.comm_ns:
        tiles.append(
            ("exposed_comm_ns", "exposed communication", device.exposed_comm_ns, time_text,
             f"not under computation; of {time_text(device.comm_ns)} of communication")
        )  # fmt: skip
    peak = f"peaks: {peaks.source}" if peaks else "its peak rates are not in the table"
    streams = f"{device.streams} stream{'s' * (device.streams != 1)}"
    return el(
        "article",
        el("h4", f"{_which(device)}: {device.name}"),
        el("p", f"{device.vendor}, {streams}; {peak}", class_="note"),
        el(
            "dl",
            (
                el(
                    "div",
                    el("dt", title, None if marks.hidden(f"devices.{name}") else marks.of(f"devices.{name}")),
                    el("dd", marks.value(f"devices.{name}", value, show), class_="big",
                       data_v="" if value is None else value, data_number=f"devices.{name}"),
                    el("dd", of.split(";")[0] if marks.hidden(f"devices.{name}") else of, class_="of"),
                    class_="tile",
                )
                for name, title, value, show, of in tiles
            ),
            class_="tiles",
        ),
    )  # fmt: skip


def _steps(summary: Summary, marks: Marks) -> Html | None:
    if not summary.steps:
        return None
    most = max(step.span_ns or 0 for step in summary.steps)
    shown = summary.steps[:STEPS_SHOWN]
    present = [role for role in ROLES if any(step.wall_ns and step.wall_ns.get(role) for step in shown)]
    several = len({step.rank for step in shown}) > 1
    bars = [
        el(
            "tr",
            el("th", f"{step.step}{f', rank {step.rank}' if several else ''}", scope="row"),
            el("td", _bar(step.wall_ns, most, step.step)),
            el("td", time_text(step.span_ns), class_="n"),
        )
        for step in shown
    ]
    cut = f", {len(shown)} shown of {len(summary.steps)}" if len(shown) < len(summary.steps) else ""
    note = (
        "Each instant of a step's span counts once, for the first of these that was active; the span is the "
        "host range with the GPU work it launched."
    )
    return el(
        "div",
        el("p", note, class_="note"),
        legend((role, ROLES[role]) for role in present),
        el(
            "table",
            el("caption", f"wall time of each step by what was active{cut}"),
            el("thead", el("tr", el("th", "step", scope="col"), el("th", "parts of the span", scope="col"),
                           el("th", "span", scope="col", class_="n"))),
            el("tbody", *bars),
            class_="bars",
        ),
        _step_table(summary, marks),
    )  # fmt: skip


def _bar(wall: dict[str, int] | None, most: int, step: int) -> Html | str:
    if wall is None:
        return "withheld"
    parts = {role: wall.get(role, 0) for role in ROLES}
    told = ", ".join(f"{ROLES[role]} {time_text(value)}" for role, value in parts.items() if value)
    return el("div", stacked_bar(parts, most, f"step {step}: {told}"), title=told)


def _step_table(summary: Summary, marks: Marks) -> Html:
    def ns(name: str, title: str, note: str) -> Column:
        return Column(title, lambda row: getattr(row, name), "ns", note, mark=marks.of(f"steps.{name}"))

    def count(name: str, title: str, note: str) -> Column:
        return Column(title, lambda row: getattr(row, name), "count", note, mark=marks.of(f"steps.{name}"))

    gpu = [
        count("kernels", "kernels", "kernels that calls of the step launched"),
        ns("kernel_ns", "kernel time", "sum over those kernels, wherever they ran, without communication"),
        ns("memcpy_ns", "copies", "sum over copies that the step launched"),
        ns("comm_ns", "communication", "sum over communication kernels that the step launched"),
        ns("gpu_busy_ns", "GPU busy", "union of all GPU work that the step launched"),
        ns("idle_ns", "no GPU work", "part of the host time in which no GPU work of the process ran"),
        count("launches", "launches", "calls that enqueued its GPU work; a graph launch counts once"),
    ]
    columns = [
        count("step", "step", "number from the range's name"),
        *([count("rank", "rank", "")] if len({step.rank for step in summary.steps}) > 1 else []),
        ns("dur_ns", "host time", "the step's host range"),
        *(gpu if summary.devices else ()),
    ]
    return table("steps", columns, summary.steps, caption="steps", limit=STEPS_SHOWN)


def _memory(content: TraceContent) -> Html | None:
    peaks = content.summary.memory
    if not peaks:
        return None
    capacity = {peak.device: peak.capacity_bytes for peak in peaks}
    charts = [
        el(
            "figure",
            el("figcaption", f"{_where(one.device)}: {one.name}, {count_text(len(one.times))} records"),
            memory_chart(
                one.times.tolist(), one.values.tolist(), one.name, capacity=capacity.get(one.device)
            ),
        )
        for one in content.memory
        if len(one.times) > 1
    ]
    columns = [
        Column("where", lambda row: _where(row.device)),
        Column("peak", lambda row: row.peak_bytes, "bytes", "highest total that the allocator handed out"),
        Column("of capacity", lambda row: row.share, "share", "peak over the memory of the device"),
        Column(
            "reserved", lambda row: row.reserved_bytes, "bytes", "highest total the caching allocator held"
        ),
        Column("at start", lambda row: row.first_bytes, "bytes", "total at the first record"),
        Column("at end", lambda row: row.last_bytes, "bytes", "total at the last record"),
        Column("records", lambda row: row.records, "count", "allocations and frees recorded"),
        Column("ops at the peak", lambda row: ", ".join(row.ops) or None),
    ]
    return el("div", charts, table("memory", columns, peaks, caption="peaks, of torch's caching allocators"))


def _metrics(content: TraceContent) -> Html | None:
    if not content.metrics:
        return None
    columns = [
        Column("kernel", lambda row: row["kernel"], "name"),
        Column("slice", lambda row: row["slice"], "count", "which launch: its id in the trace"),
        Column("metric", lambda row: row["name"], "name", "as the tool calls it"),
        Column("value", lambda row: row["value"], "number"),
        Column("unit", lambda row: row["unit"]),
    ]
    said = "metrics of single launches, longest kernel first"
    rows, total = content.metrics, content.metric_count
    shown = table("metrics", columns, rows, caption=said, limit=len(rows), filterable=True, total=total)
    return el("div", el("p", "All of them: `profrun query TRACE 'FROM metrics'`.", class_="note"), shown)


def _where(device: int | None) -> str:
    return "host" if device is None else f"GPU {device}"
