"""A comparison and its gate as text for a terminal, and the rows of it that other pages quote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from profrun.analysis.compare.model import is_too_wide
from profrun.analysis.compare.stats import MIN_TRIALS
from profrun.contract.units import (
    UNKNOWN,
    amount_text,
    bytes_text,
    counted,
    quantity_text,
    rate_text,
    signed_change_interval_text,
    signed_change_text,
    signed_time_text,
    some_of,
    time_range_text,
    time_text,
)
from profrun.reports.compare_sentence import Called, go_on, refusal, side_legend, verdict_line
from profrun.reports.terminal_layout import PLAIN, Part, Prose, Style, Table, cut, lay_out

if TYPE_CHECKING:
    from profrun.analysis.compare.gate import Gate
    from profrun.analysis.compare.model import Comparison, Interval, Metric, RatePair, Reason, Row, SideInfo

NAME_WIDTH = 46
"""Characters of a name in a row of a table; --json has whole names."""
HEAD_WIDTH = 9
"""Characters of the name of a side at the top of a column: no wider than the times below it."""
_FACTS: tuple[tuple[str, Callable[[SideInfo], str]], ...] = (
    ("GPU work", lambda side: time_text(side.gpu_ns or None)),
    ("kernel launches", lambda side: rate_text(side.work.kernels or None)),
    ("matrix FLOPs", lambda side: amount_text(side.work.matrix_flops)),
    ("tokens", lambda side: amount_text(side.work.tokens)),
    ("memory peak", lambda side: bytes_text(side.memory_peak)),
)
"""What is shown of a side that is not compared: title -> its text."""
BASIS = {"cpu": "self CPU time"}
"""``Row.basis`` -> what the times of the rows are; GPU time for every other basis but a step's own time."""


def reason_line(reason: Reason) -> Prose:
    """A reason with its severity, or "allowed", before it."""
    return Prose(str(reason), "allowed" if reason.allowed else reason.severity)


def comparison_text(
    comparison: Comparison, style: Style = PLAIN, *, top: int = 20, called: Called | None = None
) -> str:
    """The whole answer for a terminal.

    Args:
        comparison: the comparison.
        style: width and colours.
        top: rows of the view; 0 for all.
        called: what the user called; a refusal shows it with what makes it go on.
    """
    commands = go_on(comparison, called)
    parts = [
        *answer_parts(comparison),
        *detail_parts(comparison, top),
        *([""] if commands else []),
        *commands,
    ]
    return lay_out(parts, style)


def answer_parts(comparison: Comparison) -> list[Part]:
    """What is proven, and where nothing is, what can be said or done."""
    stops = [one for one in comparison.reasons if one.stops]
    parts: list[Part] = [verdict_line(comparison)]
    if len(stops) > 1:
        parts = [f"{refusal(comparison)}, for {len(stops)} reasons", *map(reason_line, stops)]
    return [*parts, *(f"  {one}" for one in comparison.next_steps)]


def detail_parts(comparison: Comparison, top: int) -> list[Part]:
    """Both sides, what must be known of them, what changed or was measured, and notes; ``top`` as above."""
    parts: list[Part] = [_side_line(name, side) for name, side in zip("ab", comparison.sides, strict=True)]
    for name, side in zip("ab", comparison.sides, strict=True):
        parts += _window_lines(name, side)
    notes = notes_of(comparison.reasons)
    parts += [reason_line(one) for one in comparison.reasons if not one.stops and one.severity != "info"]
    if comparison.ratio is None:
        return [*parts, *_facts(comparison), *notes]
    parts += _metrics(comparison)
    rows = [
        (part.name, time_text(part.a_ns), time_text(part.b_ns), signed_time_text(part.delta_ns))
        for part in comparison.parts
    ]
    of = comparison.denominator
    work = f" {comparison.rate}" if comparison.per else ""
    title = f"mean typical step{work} (named outliers left out)" if of.several else f"parts {comparison.rate}"
    parts += ["", title]
    parts.append(Table(("part", *heads(comparison), "change"), rows, right=(1, 2, 3)))
    parts += _view(comparison, top)
    return [*parts, *_vendors(comparison), *notes]


def notes_of(reasons: Sequence[Reason]) -> list[Part]:
    """What restricts nothing, below an empty line."""
    notes = [reason_line(one) for one in reasons if one.severity == "info"]
    return ["", *notes] if notes else []


def heads(comparison: Comparison) -> tuple[str, str]:
    """Titles of the columns of both sides: their names where these are short, else their letters."""
    a, b = (side.name for side in comparison.sides)
    return (a, b) if max(len(a), len(b)) <= HEAD_WIDTH else ("a", "b")


def _facts(comparison: Comparison) -> list[Part]:
    """What was measured of each side, without a verdict; only what is known of one at least."""
    a, b = comparison.sides
    denominator = comparison.denominator
    times = (denominator.time, time_text(a.step_ns or None), time_text(b.step_ns or None))
    rows = [times, *((name, of(a), of(b)) for name, of in _FACTS)]
    known = [row for row in rows if row[1:] != (UNKNOWN, UNKNOWN)]
    return [
        "",
        f"measured {denominator.rate}, without a verdict",
        Table(("what", *heads(comparison)), known, right=(1, 2)),
    ]


def _side_line(letter: str, side: SideInfo) -> str:
    device = "/".join(side.devices) or "no GPU"
    counts = counted(side.trials, "trial")
    if side.denominator.several:
        counts += f", {counted(side.steps, 'step')}"
    text = f"{side_legend(letter, side.name, side.labels)} ({device}, {side.collector}, {counts})"
    return f"{text}; outlying steps: {some_of(side.outliers)}" if side.outliers else text


def _window_lines(letter: str, side: SideInfo) -> list[Part]:
    """That the profiled window of a side does not lie in the steady phase, for its first such trial."""
    if not side.windows:
        return []
    (label, window), more = side.windows[0], len(side.windows) - 1
    others = f" (and so in {counted(more, 'other trial')})" if more else ""
    return [Prose(f"{letter}: {label}: {window.text}{others}", "note")]


def shown_metrics(comparison: Comparison) -> list[Metric]:
    """The other quantities; busy time and kernel time only where they are not all of the GPU's work."""
    metrics = {metric.name: metric for metric in comparison.metrics}
    work = metrics.get("GPU work")
    for name in ("GPU busy", "kernel time"):
        part = metrics.get(name)
        if work and part and abs(work.a - part.a) < 0.01 * work.a and abs(work.b - part.b) < 0.01 * work.b:
            del metrics[name]
    return list(metrics.values())


def not_compared(comparison: Comparison) -> str | None:
    """Why the energy of the sides is not among the quantities; None where it is, or was not sampled."""
    return f"energy is not compared: {comparison.energy_note}" if comparison.energy_note else None


def _metrics(comparison: Comparison) -> list[Part]:
    metrics, why = shown_metrics(comparison), not_compared(comparison)
    note: list[Part] = [Prose(why, "note")] if why else []
    if not metrics:
        return note
    header = ("quantity", *heads(comparison), "change", "95 % interval", "proven")
    rows = [_metric_row(metric) for metric in metrics]
    title = f"other quantities {comparison.rate}"
    return ["", title, Table(header, rows, right=(1, 2, 3, 4)), *note]


def _metric_row(metric: Metric) -> tuple[str, ...]:
    return (
        metric.name,
        quantity_text(metric.a, metric.unit),
        quantity_text(metric.b, metric.unit),
        signed_change_text(metric.ratio),
        interval_cell(metric.ci95),
        proven_word(metric),
    )


def proven_word(metric: Metric) -> str:
    """What is proven of a quantity in one word; "-" where nothing is."""
    return UNKNOWN if metric.verdict == "inconclusive" else metric.verdict


def interval_cell(interval: Interval | None) -> str:
    """The interval of a change for a column of a table, on a terminal or on a page."""
    return "too wide" if is_too_wide(interval) else signed_change_interval_text(interval)


def _view(comparison: Comparison, top: int) -> list[Part]:
    """The rows by kernel, op or what else was asked for, and how much of the change they explain."""
    rows = comparison.rows
    if not rows:
        return []
    shown = rows[:top] if top else rows
    basis = rows[0].basis
    by = "op" if basis == "cpu" and comparison.by == "kernel" else comparison.by
    header = ("what", by, *heads(comparison), "change", "%", "calls")
    what = f"{BASIS.get(basis, 'GPU time')} {comparison.rate}"
    if basis == "step":
        what = comparison.denominator.time
    parts: list[Part] = ["", f"by {by}, {what}, largest change first"]
    parts.append(Table(header, [_view_row(row) for row in shown], right=(2, 3, 4, 5)))
    if len(shown) < len(rows):
        rest = signed_time_text(sum(row.delta_ns for row in rows[len(shown) :]))
        parts.append(f"  ... and {len(rows) - len(shown)} more, together {rest} (--top 0 shows all)")
    if comparison.total_delta_ns is not None and basis != "step":
        explained = signed_time_text(sum(row.delta_ns for row in rows))
        unexplained = signed_time_text(comparison.unexplained_ns or 0.0)
        total = signed_time_text(comparison.total_delta_ns)
        parts.append(f"  rows {explained}, unexplained by them {unexplained}, total {total}")
    if any(row.status == "unclear" for row in shown):
        few = min(comparison.trials) < MIN_TRIALS
        why = "one trial cannot prove that a row changed" if few else "not proven that the row's time changed"
        parts.append(f"  {UNKNOWN}: {why}")
    for row in shown:
        if row.status in ("faster", "slower"):
            sure = f"95 % interval {signed_change_interval_text(row.ci95)}"
            parts.append(f"  {row.status}: {short_name(row)}: {signed_change_text(row.ratio)} ({sure})")
        if row.only_ci95 is not None:
            time = time_text(row.a_ns or row.b_ns)
            sure = f"95 % interval {time_range_text(*row.only_ci95)}"
            parts.append(f"  {row.status}: {short_name(row)}: {time} {comparison.rate} ({sure})")
        if row.status == "replaced" and " -> " in row.label:  # the table has no room for the replacement
            parts.append(f"  replaced: {_replacement(row.label)}")
        if row.changes:
            parts.append(f"  {short_name(row)}: {'; '.join(row.changes)}")
    return parts


def short_name(row: Row, width: int = NAME_WIDTH) -> str:
    """What a row is about, in at most ``width`` characters."""
    return cut(row.label or row.name, width)


def _view_row(row: Row) -> tuple[str, ...]:
    return (
        status_word(row),
        short_name(row),
        *side_times(row),
        signed_time_text(row.delta_ns),
        signed_change_text(row.ratio),
        _calls(row.a_calls, row.b_calls),
    )


def status_word(row: Row) -> str:
    """What is known of a row in one word; "-" where nothing is proven."""
    return UNKNOWN if row.status == "unclear" else row.status


def side_times(row: Row) -> tuple[str, str]:
    """The times of a row on both sides; "-" for a side that does not have it."""
    return time_text(row.a_ns or None), time_text(row.b_ns or None)


def _calls(a: float, b: float) -> str:
    """Calls per step on both sides; one number where they are equal."""
    return rate_text(a) if a == b else f"{rate_text(a)} -> {rate_text(b)}"


def _replacement(label: str, width: int = 150) -> str:
    """'a + b -> c' in which both sides can be seen: each gets half of the width."""
    before, _, after = label.partition(" -> ")
    return f"{cut(before, width // 2)} -> {cut(after, width // 2)}"


def _vendors(comparison: Comparison) -> list[Part]:
    vendors = comparison.vendors
    if vendors is None:
        return []
    rows = [_vendor_row(pair) for pair in vendors.rates[:10]]
    parts: list[Part] = ["", "each GPU against its own peak (whole recording)"]
    parts.append(
        Table(("op", "shapes", *(f"{name} TFLOP/s" for name in heads(comparison))), rows, right=(2, 3))
    )
    for name, values in (
        ("a launch call takes", vendors.launch_us),
        ("from a launch call to the start of its work", vendors.latency_us),
    ):
        a, b = (time_text(None if value is None else value * 1e3) for value in values)
        parts.append(f"  {name}: {a} -> {b}")
    copies = " -> ".join(time_text(value) for value in vendors.copies_ns)
    parts.append(f"  copies and fills {comparison.rate}, AMD's copy kernels included: {copies}")
    return [*parts, *(f"  {text}" for text in vendors.fusions[:8])]


def _vendor_row(pair: RatePair) -> tuple[str, ...]:
    cells = []
    for rate in (pair.a, pair.b):
        if rate is None or rate.tflops is None:
            cells.append("-")
        else:
            share = "" if rate.share is None else f" ({100 * rate.share:.0f} %)"
            cells.append(rate_text(rate.tflops) + share)
    return (pair.op.removeprefix("aten::"), cut(pair.shapes.replace(",[]", ""), 34), *cells)


def gate_text(found: Gate, style: Style = PLAIN) -> str:
    """The rules of a gate, one line each."""
    return lay_out([f"{one.outcome}: {one.rule}: {one.message}" for one in found.results], style)


def largest_changes(comparison: Comparison, count: int = 3) -> list[str]:
    """The ``count`` rows that changed most, in words; only what is known to have changed."""
    changed = [row for row in comparison.kernels if row.status not in ("same", "unclear")][:count]
    return [
        f"{row.status}: {short_name(row, 80)} ({signed_time_text(row.delta_ns)} {comparison.rate})"
        for row in changed
    ]
