"""The section on the comparisons that a job implies as HTML: a table per kind of comparison."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.analysis.compare.model import is_too_wide
from profrun.contract.units import percent_text, signed_change_text
from profrun.reports.compare_text import interval_cell
from profrun.reports.html import Html, chip, el
from profrun.reports.html_table import table_box
from profrun.reports.step_charts import bars_span, interval_bar
from profrun.store.run_result import PairKind, PairResult

KINDS: dict[PairKind, str] = {
    "variant": "variants, by {time}",
    "blocking": "launch blocking against not",
    "overhead": "collector against no profiler",
    "change": "variants, inside of {one} (profiled trials)",
}
"""``PairResult.kind`` -> caption of its table, with places for the words of what is timed."""
NOTE = (
    "Change of the {} from a, the base, to b, with its 95 % interval: -30 % is 30 % less time. The "
    "smallest change that these trials would find is beside it."
)
TEXTS = ("a (base)", "b", "verdict")
NUMBERS = ("change", "95 % interval", "", "would find", "trials")
"""Titles of the columns of text and of numbers; the one without a title holds the bars."""


def comparisons_html(rows: Sequence[PairResult]) -> Html | None:
    """The comparisons by kind; None without any."""
    if not rows:
        return None
    tables = (_table(kind, [row for row in rows if row.kind == kind]) for kind in KINDS)
    times = " or ".join(sorted({row.denominator.time for row in rows}, reverse=True))
    return el("div", el("p", NOTE.format(times), class_="note"), tables)


def _table(kind: PairKind, rows: Sequence[PairResult]) -> Html | None:
    if not rows:
        return None
    span = bars_span(end for row in rows if row.ratio and (bar := _bar_of(row)) for end in (row.ratio, *bar))
    heads = [el("th", title, scope="col") for title in TEXTS]
    for title in NUMBERS:
        text = title or el("span", "interval", class_="unit")
        heads.append(el("th", text, scope="col", class_="n" if title else None))
    body = [line for row in rows for line in (_numbers(row, span), _words(row, len(heads)))]
    head = el("tr", heads)
    of = rows[0].denominator
    caption = KINDS[kind].format(time=of.time, one=of.one)
    return table_box(f"comparisons-{kind}", caption, head, body, class_="comparisons")


def _interval(row: PairResult) -> tuple[float, float] | None:
    return (row.ci95[0], row.ci95[1]) if row.ci95 else None


def _bar_of(row: PairResult) -> tuple[float, float] | None:
    """The interval that is drawn; None without one, and for one that says nothing."""
    interval = _interval(row)
    return None if is_too_wide(interval) else interval


def _numbers(row: PairResult, span: float) -> Html:
    shown = _bar_of(row)
    bar = interval_bar(row.ratio, *shown, span=span) if row.ratio and shown else None
    return el(
        "tr",
        el("td", row.a),
        el("td", row.b),
        el("td", chip(row.verdict)),
        el("td", signed_change_text(row.ratio or None), class_="n", data_v=row.ratio or ""),
        el("td", interval_cell(_interval(row)), class_="n"),
        el("td", bar),
        el("td", _smallest(row.mde), class_="n"),
        el("td", " and ".join(map(str, row.trials)), class_="n"),
    )


def _smallest(mde: float | None) -> str:
    """The smallest change that would be found; past a doubling the exact number means nothing more."""
    return "over 100 %" if mde is not None and mde > 1 else percent_text(mde)


def _words(row: PairResult, columns: int) -> Html:
    """The row below the numbers: the answer in words, what changed, and what differs between the sides."""
    commands = [f"{why}: {text}" for why, text in row.commands]
    lines = el(
        "ul",
        (el("li", line) for line in (row.text, *commands, *row.changed, row.kernels) if line),
        class_="plain note",
    )
    reasons = [
        f"{'allowed' if reason.allowed else reason.severity}: {reason.what}"
        for reason in row.reasons
        if row.verdict != "incomparable" or reason.severity != "critical"
    ]
    if not reasons:
        return el("tr", el("td", lines, colspan=columns))
    title = f"{len(reasons)} note{'s' * (len(reasons) != 1)} on how alike the two sides are"
    listed = el("ul", (el("li", line) for line in reasons), class_="plain")
    return el(
        "tr", el("td", lines, el("details", el("summary", title), listed, class_="note"), colspan=columns)
    )
