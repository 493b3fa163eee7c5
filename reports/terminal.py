"""Summary and diagnosis for a terminal: doubts first, then tables that fit the width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.contract.units import bytes_text, percent_text, time_text
from profrun.reports.findings import evidence_lines
from profrun.reports.terminal_sheet import Sheet, cut
from profrun.reports.terminal_tables import tables

if TYPE_CHECKING:
    from profrun.analysis.rules.diagnose import Finding
    from profrun.analysis.trace.gpu import DeviceMetrics
    from profrun.analysis.trace.summary import Summary

__all__ = ["Sheet", "cut", "diagnose_text", "summary_text"]

WAITS = {
    "host_wait_ns": "the host was late",
    "kernel_wait_ns": "usual delay",
    "other_ns": "held back otherwise",
    "unknown_ns": "not known",
}


def summary_text(summary: Summary, *, width: int = 80, wrap: bool = True, colour: bool = False) -> str:
    """The summary: what was recorded, doubts, GPUs with denominators, steps, kernels, operators."""
    sheet = Sheet(width, wrap=wrap, colour=colour)
    version = f" {summary.tool_version}" if summary.tool_version else ""
    sheet.prose(f"{summary.collector} by {summary.source}{version}, span {time_text(summary.span_ns)}")
    for doubt in summary.doubts:
        sheet.prose(doubt.message, word=doubt.severity)
    if summary.withheld:
        sheet.prose(f"withheld for that: {', '.join(summary.withheld)}")
    for device in summary.devices:
        _device(sheet, device, summary)
    for row in summary.idle:
        if row.track is None:
            parts = [(getattr(row, key), text) for key, text in WAITS.items()]
            told = ", ".join(f"{text} {time_text(ns)}" for ns, text in parts if ns)
            idle = f"GPU {row.device} idle {time_text(row.idle_ns)} of {time_text(row.span_ns)}"
            sheet.prose(f"{idle}: {told}" if told else idle)
    for peak in summary.memory:
        where = "host" if peak.device is None else f"GPU {peak.device}"
        share = f", {percent_text(peak.share)} of {bytes_text(peak.capacity_bytes)}" if peak.share else ""
        sheet.prose(f"{where} memory peak {bytes_text(peak.peak_bytes)}{share}")
    tables(sheet, summary)
    return sheet.text()


def _device(sheet: Sheet, device: DeviceMetrics, summary: Summary) -> None:
    withheld = summary.withheld
    timed = any(step.process == device.process for step in summary.steps)

    def share(name: str, of: str) -> str:
        value = getattr(device, name)
        if value is None:
            return "withheld, see above" if f"devices.{name}" in withheld else "not known"
        return f"{percent_text(value)} {of}"

    whose = f" (device {device.ordinal} of rank {device.rank})" if device.device != device.ordinal else ""
    sheet.prose(f"device {device.device} {device.name}{whose}")
    window = f"of {time_text(device.window_ns)} ({'steps' if timed else 'recorded host work'})"
    of_kernels = f"of {time_text(device.occupancy_ns)} of kernel time"
    busy = f"busy {time_text(device.busy_ns)} of {time_text(device.span_ns)} from its first to its last work"
    for line in (
        f"utilization {share('utilization', window)}",
        f"est. SM efficiency {share('est_sm_efficiency', window)}",
        f"est. achieved occupancy {share('est_achieved_occupancy', of_kernels)}",
        busy,
    ):
        sheet.prose(line, indent="  ")


def diagnose_text(
    findings: Sequence[Finding], *, width: int = 80, wrap: bool = True, colour: bool = False
) -> str:
    """Each finding: what, what it means, what to do, the evidence."""
    sheet = Sheet(width, wrap=wrap, colour=colour)
    if not findings:
        sheet.prose("nothing found: no rule's threshold is exceeded")
    for number, finding in enumerate(findings):
        if number:
            sheet.prose("")
        doubts = f" (doubtful: {', '.join(finding.doubts)})" if finding.doubts else ""
        sheet.prose(f"{finding.title}: {finding.message}{doubts}", word=finding.severity)
        sheet.prose(finding.meaning, indent="  ")
        sheet.prose(finding.advice, word="advice", indent="  ")
        told = "; ".join(f"{name} {text}" for name, text in evidence_lines(finding.evidence, most=3))
        if told:
            sheet.prose(told, word="evidence", indent="  ")
    return sheet.text()
