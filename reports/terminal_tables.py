"""The tables of a summary for a terminal; a table without rows is left out."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from profrun.contract.denominator import RECORDING
from profrun.contract.units import UNKNOWN, bytes_text, percent_text, rate_text, some_of, time_text
from profrun.reports.kernel_labels import fitted_labels
from profrun.reports.module_text import module_parts
from profrun.reports.terminal_layout import Part, Table, titled
from profrun.traces.labels import rank_cell

if TYPE_CHECKING:
    from profrun.analysis.trace.collectives import CollectiveRow
    from profrun.analysis.trace.roofline import RooflineRow
    from profrun.analysis.trace.summary import Summary


STEPS = 10
"""Steps that are shown one by one; of more only the slowest are."""
SLOWEST = 5
OUTSIDE = 0.01
"""Part of the kernel time outside of steps that is worth a sentence."""
TORCH_DIFFERS = "it counts calls of other threads on the main thread, and some GPU work twice"
"""Why ``OpRow.torch`` is not empty, in words."""


def tables(summary: Summary, width: int | None = None, *, verbose: bool = False) -> list[Part]:
    """Steps, kernels, operators and modules; roofline, collectives and ranks where the trace has them.

    Times and counts of kernels, operators and modules are those of one step, where there are steps.

    Args:
        summary: the summary.
        width: columns of the terminal; None for as many as wanted.
        verbose: every step, and totals beside the times per step.
    """
    return [
        *_steps(summary, verbose=verbose),
        *_kernels(summary, width, verbose=verbose),
        *_operators(summary, verbose=verbose),
        *module_parts(summary),
        *_roofline(summary),
        *_collectives(summary),
        *_ranks(summary),
    ]


def _table(header: tuple[str, ...], rows: Sequence[Sequence[object]], *, texts: int = 1) -> Table:
    """A table whose first ``texts`` columns are text; the others are numbers."""
    return Table(header, rows, range(texts, len(header)))


def _steps(summary: Summary, *, verbose: bool) -> list[Part]:
    several = len({step.rank for step in summary.steps}) > 1
    if not summary.denominator.several and not several:
        return []  # its time stands above, and its work is that of the tables below
    gpu = ("kernels", "kernel time", "copies", "comm", "no GPU work") if summary.devices else ()
    header = (summary.denominator.of, "time", *gpu)
    shown = list(summary.steps)
    if len(shown) > STEPS and not verbose:
        shown = sorted(shown, key=lambda step: -step.dur_ns)[:SLOWEST]
    rows = [
        (
            f"{step.step} r{rank_cell(step.rank, summary.guessed_ranks)}" if several else step.step,
            time_text(step.dur_ns),
            step.kernels,  # None where it is withheld
            *map(time_text, (step.kernel_ns, step.memcpy_ns, step.comm_ns, step.idle_ns)),
        )[: len(header)]
        for step in shown
    ]
    if len(shown) == len(summary.steps):
        title = "steps" if summary.denominator.several else f"{summary.denominator.the} by rank"
        return titled(title, _table(header, rows))
    times = [step.dur_ns for step in summary.steps]
    note = (
        f"{len(times)} steps: median {time_text(median(times))}, fastest {time_text(min(times))}; "
        f"the {len(shown)} slowest (-v shows all):"
    )
    return titled("steps", _table(header, rows), note=note)


def _title(name: str, summary: Summary) -> str:
    """What the numbers of a table are per."""
    why = ": no steps are recorded" if summary.denominator == RECORDING else ""
    return f"{name} {summary.denominator.per}{why}"


def per_step_count(count: float | None, steps: int) -> str:
    """How often per step: "12", "0.2"."""
    return UNKNOWN if count is None else rate_text(count / steps)


def _kernels(summary: Summary, width: int | None, *, verbose: bool) -> list[Part]:
    sums = summary.per_step
    header = ("kernel", "category", "calls", "time", "share", "p50", *(("p99", "total") if verbose else ()))
    cells: list[tuple[object, ...]] = []
    for row in summary.kernels:
        work = row.in_steps
        if sums is None or work is None:
            own = (str(row.calls), time_text(row.total_ns), percent_text(row.share))
        else:
            part = work.total_ns / sums.kernel_ns if sums.kernel_ns else None
            own = (
                per_step_count(work.calls, sums.steps),
                time_text(work.total_ns / sums.steps),
                percent_text(part),
            )
        more = (time_text(row.p99_ns), time_text(row.total_ns)) if verbose else ()
        cells.append((row.category, *own, time_text(row.p50_ns), *more))
    columns = list(zip(header[1:], *cells, strict=True))
    room = (
        None if width is None else width - sum(2 + max(len(str(cell)) for cell in one) for one in columns) - 2
    )
    labels = fitted_labels(summary.kernels, room)
    rows = [(label, *rest) for label, rest in zip(labels, cells, strict=True)]
    note = _outside(summary)
    return titled(
        _title("kernels", summary),
        _table(header, rows, texts=2),
        omitted=summary.omitted.get("kernels", 0),
        note=note,
    )


def _outside(summary: Summary) -> str:
    """How much kernel time no step launched, where that is more than a little."""
    every = sum(row.total_ns for row in summary.categories)
    outside = every - summary.per_step.kernel_ns if summary.per_step else 0
    if not every or outside < OUTSIDE * every:
        return ""
    of = summary.denominator.every
    return f"{time_text(outside)} of {time_text(every)} of kernel time lie outside of {of}"


def _operators(summary: Summary, *, verbose: bool) -> list[Part]:
    sums, on_gpu = summary.per_step, any(row.device_ns for row in summary.ops)
    times = ("self CPU", "CPU", *(("self GPU", "GPU") if on_gpu else ()))
    header = ("operator", "calls", *times, "share", *(("in all",) if verbose else ()))
    steps = sums.steps if sums else 1
    rows = []
    for row in summary.ops:
        work = row.in_steps or row
        own, every = (
            (work.self_device_ns, row.self_device_ns) if on_gpu else (work.self_cpu_ns, row.self_cpu_ns)
        )
        gpu = (work.self_device_ns, work.device_ns) if on_gpu else ()
        rows.append(
            (
                row.name,
                per_step_count(work.calls, steps),
                *(_per_step(ns, steps) for ns in (work.self_cpu_ns, work.cpu_ns, *gpu)),
                percent_text(_part(own, _whole(summary, on_gpu))),
                *((time_text(every),) if verbose else ()),
            )
        )
    share = f"share: of the {'self GPU' if on_gpu else 'self CPU'} time of all"
    note = "; ".join(part for part in (share, _not_as_torch(summary)) if part)
    title = _title("operators", summary)
    return titled(title, _table(header, rows), omitted=summary.omitted.get("ops", 0), note=note)


def _per_step(ns: int | None, steps: int) -> str:
    return time_text(None if ns is None else ns / steps)


def _part(ns: int | None, whole: int | None) -> float | None:
    return None if ns is None or not whole else ns / whole


def _whole(summary: Summary, on_gpu: bool) -> int | None:
    """The denominator of the operators' shares; None where rows were cut from the table before."""
    sums = summary.per_step
    if sums is not None:
        return sums.self_device_ns if on_gpu else sums.self_cpu_ns
    if summary.omitted.get("ops"):
        return None
    return sum((row.self_device_ns if on_gpu else row.self_cpu_ns) or 0 for row in summary.ops)


def _not_as_torch(summary: Summary) -> str:
    """Which of the rows differ from torch's own table, and why; empty where none does."""
    names = [row.name for row in summary.ops if row.torch]
    if not names:
        return ""
    return f"torch's own table has other numbers for {some_of(names)}: {TORCH_DIFFERS}"


def _roofline(summary: Summary) -> list[Part]:
    found = summary.roofline
    if not found:
        return []
    clocked = any(row.clock_mhz is not None for row in found.rows)
    header = (
        *("op and shapes", "type", "GPU time", "TFLOP/s", "of peak"),
        *(("MHz", "at clock") if clocked else ()),
        *("TB/s", "of peak"),
    )
    rows = [
        (
            f"{row.op} {row.shapes}",
            row.dtype,
            time_text(row.gpu_ns),
            rate_text(row.tflops),
            percent_text(row.compute_share),
            *(_at_clock(row) if clocked else ()),
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
    if clocked:
        note += (
            "; at clock: of the peak at the mean clock while the kernels ran (readings may be 200 ms old), "
            "which can be above the datasheet's"
        )
    omitted = summary.omitted.get("roofline", 0)
    return titled("roofline", _table(header, rows, texts=2), omitted=omitted, note=note)


def _at_clock(row: RooflineRow) -> tuple[str, str]:
    """Mean clock while the op's kernels ran, and its share of the peak at that clock."""
    clock = UNKNOWN if row.clock_mhz is None else f"{row.clock_mhz:.0f}"
    return clock, percent_text(row.compute_share_at_clock)


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
    several = len({row.host for row in summary.ranks.ranks}) > 1
    header = (
        *("rank", *(("host",) if several else ()), "compute", "comm", "exposed", "waited"),
        *("at least", "at most", "waited for", "last in"),
    )
    rows = [
        (
            rank_cell(row.rank, summary.guessed_ranks),
            *((row.host or "unknown",) if several else ()),
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
