"""The tables of a summary for a terminal; a table without rows is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.contract.units import bytes_text, percent_text, rate_text, time_text
from profrun.reports.kernel_labels import kernel_labels
from profrun.reports.terminal_layout import Part, Table, first_three, titled
from profrun.traces.labels import rank_cell

if TYPE_CHECKING:
    from profrun.analysis.trace.collectives import CollectiveRow
    from profrun.analysis.trace.summary import Summary


TORCH_DIFFERS = "it counts calls of other threads on the main thread, and some GPU work twice"
"""Why ``OpRow.torch`` is not empty, in words."""


def tables(summary: Summary) -> list[Part]:
    """Steps, kernels and operators; roofline, collectives and ranks where the trace has them."""
    return [
        *_steps(summary),
        *_kernels(summary),
        *_operators(summary),
        *_roofline(summary),
        *_collectives(summary),
        *_ranks(summary),
    ]


def _table(header: tuple[str, ...], rows: Sequence[Sequence[object]], *, texts: int = 1) -> Table:
    """A table whose first ``texts`` columns are text; the others are numbers."""
    return Table(header, rows, range(texts, len(header)))


def _steps(summary: Summary) -> list[Part]:
    several = len({step.rank for step in summary.steps}) > 1
    header = ("step", "time", "kernels", "kernel time", "copies", "comm", "no GPU work")
    rows = [
        (
            f"{step.step} r{rank_cell(step.rank, summary.guessed_ranks)}" if several else step.step,
            time_text(step.dur_ns),
            step.kernels,  # None where it is withheld
            *map(time_text, (step.kernel_ns, step.memcpy_ns, step.comm_ns, step.idle_ns)),
        )
        for step in summary.steps
    ]
    return titled("steps", _table(header, rows))


def _kernels(summary: Summary) -> list[Part]:
    header = ("kernel", "category", "calls", "total", "p50", "p99")
    rows = [
        (label, row.category, row.calls, *map(time_text, (row.total_ns, row.p50_ns, row.p99_ns)))
        for row, label in zip(summary.kernels, kernel_labels(summary.kernels), strict=True)
    ]
    return titled("kernels", _table(header, rows, texts=2), omitted=summary.omitted.get("kernels", 0))


def _operators(summary: Summary) -> list[Part]:
    header = ("operator", "calls", "self CPU", "CPU", "self device", "device")
    rows = [
        (
            row.name,
            row.calls,
            *map(time_text, (row.self_cpu_ns, row.cpu_ns, row.self_device_ns, row.device_ns)),
        )
        for row in summary.ops
    ]
    return titled(
        "operators", _table(header, rows), omitted=summary.omitted.get("ops", 0), note=_not_as_torch(summary)
    )


def _not_as_torch(summary: Summary) -> str:
    """Which of the rows differ from torch's own table, and why; empty where none does."""
    names = [row.name for row in summary.ops if row.torch]
    if not names:
        return ""
    return f"torch's own table has other numbers for {first_three(names)}: {TORCH_DIFFERS}"


def _roofline(summary: Summary) -> list[Part]:
    found = summary.roofline
    if not found:
        return []
    header = ("op and shapes", "type", "GPU time", "TFLOP/s", "of peak", "TB/s", "of peak")
    rows = [
        (
            f"{row.op} {row.shapes}",
            row.dtype,
            time_text(row.gpu_ns),
            rate_text(row.tflops),
            percent_text(row.compute_share),
            rate_text(row.tb_s),
            "caches" if row.cached else percent_text(row.memory_share),
        )
        for row in found.rows
        if row.tflops is not None or row.tb_s is not None
    ]
    names = {peaks.name: peaks.source for peaks in found.peaks.values() if peaks}
    known = "; ".join(f"peaks of {name}, dense: {source}" for name, source in names.items())
    covered = percent_text(found.covered_ns / found.total_ns if found.total_ns else None)
    note = (
        f"work from recorded shapes, {covered} of GPU time; each input and output counted once; "
        f"{known or 'the peaks of this GPU are not known'}"
    )
    omitted = summary.omitted.get("roofline", 0)
    return titled("roofline", _table(header, rows, texts=2), omitted=omitted, note=note)


def _collectives(summary: Summary) -> list[Part]:
    several = len({row.rank for row in summary.collectives}) > 1
    matched = any(row.matched for row in summary.collectives)
    header = ("collective", "size", "calls", "total", "mean", "bus GB/s", *(("no wait",) if matched else ()))
    rows = [
        (
            _collective(row, rank_cell(row.rank, summary.guessed_ranks) if several else ""),
            bytes_text(row.bytes),
            row.calls,
            time_text(row.total_ns),
            time_text(row.mean_ns),
            rate_text(row.bus_gb_s),
            *((rate_text(row.transfer_bus_gb_s),) if matched else ()),
        )
        for row in summary.collectives
    ]
    note = "bus rates are of the mean time: a rank's wait for the slowest is in it"
    if matched:
        note += "; 'no wait' counts from the last rank's start"
    omitted = summary.omitted.get("collectives", 0)
    return titled("collectives", _table(header, rows), omitted=omitted, note=note)


def _collective(row: CollectiveRow, rank: str) -> str:
    parts = (row.op, row.dtype or "", f"r{rank}" if rank else "")
    return " ".join(part for part in parts if part)


def _ranks(summary: Summary) -> list[Part]:
    if summary.ranks is None:
        return []
    header = ("rank", "compute", "comm", "exposed", "waited", "at least", "at most", "waited for", "last in")
    rows = [
        (
            rank_cell(row.rank, summary.guessed_ranks),
            *map(time_text, (row.compute_ns, row.comm_ns, row.exposed_comm_ns)),
            *map(time_text, (row.waited_ns, row.waited_low_ns, row.waited_high_ns, row.waited_for_ns)),
            f"{row.last} of {row.collectives}",
        )
        for row in summary.ranks.ranks
    ]
    note = (
        "waited: in collectives, for later ranks; at least, at most: whatever the clocks of the ranks are; "
        "waited for: by all others together"
    )
    return titled("ranks", _table(header, rows), note=note)
