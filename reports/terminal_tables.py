"""The tables of a summary for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.units import bytes_text, percent_text, rate_text, time_text
from profrun.reports.kernel_labels import kernel_labels
from profrun.reports.terminal_sheet import Sheet

if TYPE_CHECKING:
    from profrun.analysis.trace.collectives import CollectiveRow
    from profrun.analysis.trace.summary import Summary


def shown(value: int | None) -> str:
    """A count; '-' for one that is withheld (``Summary`` sets it None whatever its declared type)."""
    return "-" if value is None else str(value)


def tables(sheet: Sheet, summary: Summary) -> None:
    """Steps, kernels, operators; roofline, collectives and ranks where there is something to show."""
    _steps(sheet, summary)
    _kernels(sheet, summary)
    _operators(sheet, summary)
    _roofline(sheet, summary)
    _collectives(sheet, summary)
    _ranks(sheet, summary)


def _steps(sheet: Sheet, summary: Summary) -> None:
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


def _kernels(sheet: Sheet, summary: Summary) -> None:
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


def _operators(sheet: Sheet, summary: Summary) -> None:
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


def _roofline(sheet: Sheet, summary: Summary) -> None:
    found = summary.roofline
    rows = [row for row in found.rows if row.tflops is not None or row.tb_s is not None] if found else []
    if not found or not rows:
        return
    names = {peaks.name: peaks.source for peaks in found.peaks.values() if peaks}
    known = "; ".join(f"peaks of {name}, dense: {source}" for name, source in names.items())
    covered = percent_text(found.covered_ns / found.total_ns if found.total_ns else None)
    sheet.table(
        "roofline",
        ("op and shapes", "type", "GPU time", "TFLOP/s", "of peak", "TB/s", "of peak"),
        [
            (f"{row.op} {row.shapes}", row.dtype or "-", time_text(row.gpu_ns), rate_text(row.tflops),
             percent_text(row.compute_share), rate_text(row.tb_s),
             "caches" if row.cached else percent_text(row.memory_share))
            for row in rows
        ],
        left=2,
        omitted=summary.omitted.get("roofline", 0),
        note=f"work from recorded shapes, {covered} of GPU time; each input and output counted once; "
        f"{known or 'the peaks of this GPU are not known'}",
    )  # fmt: skip


def _collectives(sheet: Sheet, summary: Summary) -> None:
    rows = summary.collectives
    several, matched = len({row.rank for row in rows}) > 1, any(row.matched for row in rows)
    waits = "bus rates are of the mean time: a rank's wait for the slowest is in it"
    sheet.table(
        "collectives",
        ("collective", "size", "calls", "total", "mean", "bus GB/s", *(("no wait",) if matched else ())),
        [
            (_collective(row, several=several), bytes_text(row.bytes), str(row.calls),
             time_text(row.total_ns), time_text(row.mean_ns), rate_text(row.bus_gb_s),
             *((rate_text(row.transfer_bus_gb_s),) if matched else ()))
            for row in rows
        ],
        left=1,
        omitted=summary.omitted.get("collectives", 0),
        note=f"{waits}; 'no wait' counts from the last rank's start" if matched else waits,
    )  # fmt: skip


def _collective(row: CollectiveRow, *, several: bool) -> str:
    parts = (row.op, row.dtype or "", f"r{row.rank}" if several else "")
    return " ".join(part for part in parts if part)


def _ranks(sheet: Sheet, summary: Summary) -> None:
    found = summary.ranks
    if found is None:
        return
    sheet.table(
        "ranks",
        ("rank", "compute", "comm", "exposed", "waited", "waited for", "last in"),
        [
            (str(row.rank), *map(time_text, (row.compute_ns, row.comm_ns, row.exposed_comm_ns, row.waited_ns,
                                             row.waited_for_ns)), f"{row.last} of {row.collectives}")
            for row in found.ranks
        ],
        left=1,
        note="waited: in collectives, for later ranks; waited for: by all others together",
    )  # fmt: skip
