"""The summary and the critical path of a trace as text, quality first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.units import bytes_text, percent_text, time_text
from profrun.reports.terminal_layout import PLAIN, Part, Prose, Style, Table, lay_out, titled
from profrun.reports.terminal_tables import tables

if TYPE_CHECKING:
    from profrun.analysis.trace.critical_path import CriticalPath
    from profrun.analysis.trace.gpu import DeviceMetrics
    from profrun.analysis.trace.summary import Summary

WAITS = {
    "host_wait_ns": "the host was late",
    "kernel_wait_ns": "usual delay",
    "other_ns": "held back otherwise",
    "unknown_ns": "not known",
}
"""Field of an ``IdleRow`` -> cause of that idle time in words."""


def summary_text(summary: Summary, style: Style = PLAIN) -> str:
    """The summary: what was recorded, its quality, GPUs with what their shares are of, then tables."""
    version = f" {summary.tool_version}" if summary.tool_version else ""
    recorded = f"{summary.collector} by {summary.source}{version}, span {time_text(summary.span_ns)}"
    parts: list[Part] = [Prose(recorded)]
    parts += [Prose(str(finding), finding.severity) for finding in summary.quality]
    if summary.withheld:
        parts.append(f"withheld because of this: {', '.join(summary.withheld)}")
    for device in summary.devices:
        parts += _device(device, summary)
    for row in summary.idle:
        if row.track is None:
            waits = [(getattr(row, key), text) for key, text in WAITS.items()]
            told = ", ".join(f"{text} {time_text(ns)}" for ns, text in waits if ns)
            idle = f"{summary.gpus[row.device]} idle {time_text(row.idle_ns)} of {time_text(row.span_ns)}"
            parts.append(f"{idle}: {told}" if told else idle)
    for peak in summary.memory:
        where = "host" if peak.device is None else summary.gpus[peak.device]
        share = f", {percent_text(peak.share)} of {bytes_text(peak.capacity_bytes)}" if peak.share else ""
        parts.append(f"{where} memory peak {bytes_text(peak.peak_bytes)}{share}")
    return lay_out([*parts, *tables(summary)], style)


def _device(device: DeviceMetrics, summary: Summary) -> list[Part]:
    withheld = summary.withheld
    timed = any(step.process == device.process for step in summary.steps)

    def share(name: str, of: str) -> str:
        value = getattr(device, name)
        if value is None:
            return "withheld, see above" if f"devices.{name}" in withheld else "not known"
        return f"{percent_text(value)} {of}"

    window = f"of {time_text(device.window_ns)} ({'steps' if timed else 'recorded host work'})"
    of_kernels = f"of {time_text(device.occupancy_ns)} of kernel time"
    return [
        f"{summary.gpus[device.device]}: {device.name}",
        f"  utilization {share('utilization', window)}",
        f"  est. SM efficiency {share('est_sm_efficiency', window)}",
        f"  est. achieved occupancy {share('est_achieved_occupancy', of_kernels)}",
        f"  busy {time_text(device.busy_ns)} of {time_text(device.span_ns)} from its first to its last work",
    ]


def critical_path_text(path: CriticalPath, style: Style = PLAIN, *, top: int = 15) -> str:
    """The critical path by kind of work, then by what the work was; ``top``: most rows of the latter."""
    share = path.total_ns or 1
    kinds = sorted(((ns, kind) for kind, ns in path.by_kind.items() if ns), reverse=True)
    names = [(name, kind, time_text(ns), percent_text(ns / share)) for kind, name, ns in path.by_name[:top]]
    head = f"critical path of process {path.process}: {time_text(path.total_ns)}"
    kind_rows = [(kind, time_text(ns), percent_text(ns / share)) for ns, kind in kinds]
    by_kind = titled("by kind", Table(("kind", "time", "share"), kind_rows, right=(1, 2)))
    by_name = titled("by name", Table(("name", "kind", "time", "share"), names, right=(2, 3)))
    return lay_out([head, *by_kind, *by_name], style)
