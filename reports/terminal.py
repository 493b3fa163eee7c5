"""Summary and diagnosis for a terminal: doubts first, then tables that fit the width."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from profrun.reports.findings import evidence_lines
from profrun.reports.names import kernel_labels
from profrun.reports.units import bytes_text, percent, time_text

if TYPE_CHECKING:
    from profrun.analysis.diagnose import Finding
    from profrun.analysis.gpu import DeviceMetrics
    from profrun.analysis.summary import Summary

COLOURS = {
    "wrong": "bold red",
    "critical": "bold red",
    "care": "bold yellow",
    "warning": "bold yellow",
    "note": "bold",
    "info": "bold",
}
WAITS = {
    "host_wait_ns": "the host was late",
    "kernel_wait_ns": "usual delay",
    "other_ns": "held back otherwise",
    "unknown_ns": "not known",
}


class Sheet:
    """Lines of text, wrapped where asked, with colours where asked.

    Args:
        width: columns that tables keep to.
        wrap: break prose at the width too; without it a message stays on one line, for ``grep``.
        colour: use ANSI colours.
    """

    def __init__(self, width: int, *, wrap: bool, colour: bool) -> None:
        from rich.console import Console

        self.width, self.wrap = width, wrap
        self._out = StringIO()
        self._console = Console(
            file=self._out, width=width, force_terminal=colour, color_system="standard" if colour else None,
            no_color=not colour, highlight=False, markup=False, emoji=False, legacy_windows=False,
        )  # fmt: skip

    def prose(self, text: str, *, word: str = "", indent: str = "") -> None:
        """A paragraph; ``word`` in front of it is coloured by what it says."""
        from rich.text import Text

        whole = f"{indent}{word}{': ' if word else ''}{text}"
        lines = [whole]
        if self.wrap and whole:
            lines = textwrap.wrap(
                whole,
                self.width,
                subsequent_indent=indent + "  ",
                break_on_hyphens=False,
            )
        for number, line in enumerate(lines):
            shown = Text(line)
            if word and not number:
                shown.stylize(COLOURS.get(word, "bold"), len(indent), len(indent) + len(word))
            self._console.print(shown, soft_wrap=True)

    def table(
        self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int, omitted: int = 0
    ) -> None:
        """Columns with two spaces in front; the first takes what the others leave and is cut with '...'.

        Args:
            left: how many columns, from the first, are text; the others are numbers, to the right.
        """
        from rich.table import Table

        if not rows:
            return
        self.prose("")
        self._console.print(title, style="bold")
        rest = sum(max(len(row[at]) for row in [header, *rows]) + 2 for at in range(1, len(header)))
        room = max(self.width - 2 - rest, 12)
        found = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, header_style="bold")
        for number, name in enumerate(header):
            found.add_column(
                name, justify="left" if number < left else "right", no_wrap=True, overflow="crop"
            )
        for row in rows:
            found.add_row(cut(row[0], room), *row[1:])
        from rich.padding import Padding

        self._console.print(Padding(found, (0, 0, 0, 2)))
        if omitted:
            self.prose(f"... and {omitted} more (--top 0 shows all)", indent="  ")

    def text(self) -> str:
        """Everything so far, without spaces at the ends of lines."""
        return "\n".join(line.rstrip() for line in self._out.getvalue().splitlines())


def cut(name: str, room: int) -> str:
    """A name in at most ``room`` characters; the middle goes, because kernels often differ at their ends."""
    head = (room - 2) // 2
    return name if len(name) <= room else f"{name[:head]}...{name[len(name) - (room - 3 - head) :]}"


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
        _device(sheet, device, summary.withheld)
    for row in summary.idle:
        if row.track is None:
            parts = [(getattr(row, key), text) for key, text in WAITS.items()]
            told = ", ".join(f"{text} {time_text(ns)}" for ns, text in parts if ns)
            idle = f"GPU {row.device} idle {time_text(row.idle_ns)} of {time_text(row.span_ns)}"
            sheet.prose(f"{idle}: {told}" if told else idle)
    for peak in summary.memory:
        where = "host" if peak.device is None else f"GPU {peak.device}"
        share = f", {percent(peak.share)} of {bytes_text(peak.capacity_bytes)}" if peak.share else ""
        sheet.prose(f"{where} memory peak {bytes_text(peak.peak_bytes)}{share}")
    _tables(sheet, summary)
    return sheet.text()


def _device(sheet: Sheet, device: DeviceMetrics, withheld: Sequence[str]) -> None:
    def share(name: str, of: str) -> str:
        value = getattr(device, name)
        if value is None:
            return "withheld, see above" if f"devices.{name}" in withheld else "not known"
        return f"{percent(value)} {of}"

    sheet.prose(f"device {device.device} {device.name}")
    window = f"of {time_text(device.window_ns)} (steps)"
    of_kernels = f"of {time_text(device.occupancy_ns)} of kernel time"
    busy = f"busy {time_text(device.busy_ns)} of {time_text(device.span_ns)} from its first to its last work"
    for line in (
        f"utilization {share('utilization', window)}",
        f"est. SM efficiency {share('est_sm_efficiency', window)}",
        f"est. achieved occupancy {share('est_achieved_occupancy', of_kernels)}",
        busy,
    ):
        sheet.prose(line, indent="  ")


def shown(value: int | None) -> str:
    """A count; '-' for one that is withheld (``Summary`` sets it None whatever its declared type)."""
    return "-" if value is None else str(value)


def _tables(sheet: Sheet, summary: Summary) -> None:
    several = len({step.rank for step in summary.steps}) > 1
    sheet.table(
        "steps",
        ("step", "time", "kernels", "kernel time", "copies", "comm", "no GPU work"),
        [
            (
                f"{step.step} r{step.rank}" if several else str(step.step),
                time_text(step.dur_ns),
                shown(step.kernels),
                *map(time_text, (step.kernel_ns, step.memcpy_ns, step.comm_ns, step.idle_ns)),
            )
            for step in summary.steps
        ],
        left=1,
    )
    sheet.table(
        "kernels",
        ("kernel", "category", "calls", "total", "p50", "p99"),
        [
            (label, row.category, str(row.calls), time_text(row.total_ns),
             time_text(row.p50_ns), time_text(row.p99_ns))
            for row, label in zip(summary.kernels, kernel_labels(summary.kernels), strict=True)
        ],
        left=2,
        omitted=summary.omitted.get("kernels", 0),
    )  # fmt: skip
    sheet.table(
        "operators",
        ("operator", "calls", "self CPU", "CPU", "self device", "device"),
        [
            (row.name, str(row.calls),
             *map(time_text, (row.self_cpu_ns, row.cpu_ns, row.self_device_ns, row.device_ns)))
            for row in summary.ops
        ],
        left=1,
        omitted=summary.omitted.get("ops", 0),
    )  # fmt: skip


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
