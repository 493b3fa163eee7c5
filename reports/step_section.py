"""The section on the steps of a trace as HTML: a bar per step by what was active, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from profrun.analysis.trace.variation_text import cause_text, share_text
from profrun.contract.units import UNKNOWN, counted, percent_text, time_text
from profrun.reports.charts import histogram, legend, stacked_bar
from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, table
from profrun.reports.phase_table import phases_html
from profrun.reports.quality_marks import MarkedColumns, Marks
from profrun.traces.labels import rank_cell

if TYPE_CHECKING:
    from profrun.analysis.trace.step_spread import StepSpread
    from profrun.analysis.trace.steps import Step
    from profrun.analysis.trace.summary import Summary
    from profrun.analysis.trace.variation import StepVariations, Variation
    from profrun.contract.denominator import Denominator

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
"""Parts of ``Step.wall_ns`` in words."""
STEPS_SHOWN = 60
"""Most rows of the table."""
BARS = 20
"""With more steps than this, a histogram and the steps that stand out take the place of a bar for each."""
NAMED = 0.01
"""A cause is left out of the table of shares where its 95 % interval ends below this share."""
VARIES = "standard deviation {}; see docs/why-times-vary.md"
NOTE = (
    "Each instant of {} counts once, for the first of these that was active; the span is the "
    "host range with the GPU work it launched."
)


def steps_html(summary: Summary, spread: StepSpread | None, marks: Marks) -> Html | None:
    """The phases of the run, the bars, the table, and why steps vary; None for a trace without steps.

    Args:
        summary: of the trace.
        spread: of its steps; None where their times are withheld.
        marks: of its numbers.
    """
    if not summary.steps:
        return None
    recorded = _recorded(summary, spread, marks)
    phases, why = phases_html(summary), _variation(summary.variation)
    return recorded if phases is None and why is None else el("div", phases, recorded, why)


def _recorded(summary: Summary, spread: StepSpread | None, marks: Marks) -> Html:
    """The recorded steps."""
    several = len({step.rank for step in summary.steps}) > 1
    of = summary.denominator
    if not of.several:
        bars = _bars(summary, summary.steps, f"time of {of.the} by what was active", several=several)
        note = NOTE.format("the span of the run")
        numbers = _table(summary, marks, several=several) if several or summary.devices else None
        return el("div", el("p", note, class_="note"), bars, numbers)
    if spread is None or len(summary.steps) <= BARS:
        bars = _bars(summary, summary.steps, "wall time of each step by what was active", several=several)
        return el(
            "div",
            el("p", NOTE.format("a step's span"), class_="note"),
            bars,
            _table(summary, marks, several=several),
        )
    shown = [spread.typical, *spread.outliers]
    caption = "wall time of a typical step" + (" and of those that stand out" if spread.outliers else "")
    folded = el(
        "details",
        el("summary", f"the table of {counted(len(summary.steps), 'step')}"),
        _table(summary, marks, several=several),
    )
    return el(
        "div",
        _histogram(spread),
        el("p", NOTE.format("a step's span"), class_="note"),
        _bars(summary, shown, caption, several=several),
        folded,
    )


def _variation(found: StepVariations | None) -> Html | None:
    """With what the times of all steps go, and those of the steady ones; None without samples."""
    if found is None or found.run.shares is None:
        return None
    asked = [one for one in (found.run, found.steady) if one is not None and one.shares is not None]
    names = [one.name for one in found.run.shares.causes if one.high >= NAMED]
    rows = [(cause_text(name), name) for name in names] + [("not explained", "rest")]

    def cell(of: Variation, name: str) -> str:
        share = of.shares and (of.shares.rest if name == "rest" else of.shares.of(name))
        return share_text(share) if share else ""

    body = [
        el("tr", el("th", words, scope="row"), [el("td", cell(one, name), class_="n") for one in asked])
        for words, name in rows
    ]
    head = el(
        "tr",
        el("th", "goes with", scope="col"),
        [
            el(
                "th",
                f"{one.shares.count} {one.of}",
                scope="col",
                class_="n",
                title=VARIES.format(_spread(one)),
            )
            for one in asked
            if one.shares is not None
        ],
    )
    caption = (
        f"share of the variance of step times, with 95 % intervals; the steps vary by {_spread(found.run)}"
    )
    return el("table", el("caption", caption), el("thead", head), el("tbody", body))


def _spread(found: Variation) -> str:
    return percent_text(found.shares.spread) if found.shares else UNKNOWN


def _histogram(spread: StepSpread) -> Html:
    """How many steps took how long, and which stand out, in words."""
    low, middle, high = spread.quartile_ns
    count = int(spread.counts.sum()) + spread.outlier_count
    half = f"half of them {time_text(low)} to {time_text(high)}"
    text = f"{counted(count, 'step')}: median {time_text(middle)}, {half}"
    if spread.outliers:
        named = ", ".join(f"step {step.step}: {time_text(step.span_ns)}" for step in spread.outliers)
        more = spread.outlier_count - len(spread.outliers)
        text += f". {counted(spread.outlier_count, 'step')} far outside of that and not in the chart: {named}"
        text += f", and {more} more" if more else ""
    return el("figure", el("figcaption", f"{text}."), histogram(spread.edges, spread.counts, middle, text))


def _bars(summary: Summary, shown: Sequence[Step], caption: str, *, several: bool) -> Html:
    """A bar for each of these steps, with its legend; ``several``: steps of several ranks."""
    guessed = summary.guessed_ranks
    most = max(step.span_ns or 0 for step in shown)
    present = [role for role in ROLES if any(step.wall_ns and step.wall_ns.get(role) for step in shown)]
    head = el(
        "tr",
        el("th", summary.denominator.of, scope="col"),
        el("th", "parts of the span", scope="col"),
        el("th", "span", scope="col", class_="n"),
    )
    bars = [
        el(
            "tr",
            el(
                "th",
                ", ".join(part for part in (_name(step, summary.denominator), rank) if part),
                scope="row",
            ),
            el("td", _bar(step.wall_ns, most, _name(step, summary.denominator, "step "))),
            el("td", time_text(step.span_ns), class_="n"),
        )
        for step in shown
        for rank in [f"rank {rank_cell(step.rank, guessed)}" if several else ""]
    ]
    table_ = el("table", el("caption", caption), el("thead", head), el("tbody", bars), class_="bars")
    return el("div", legend((role, ROLES[role]) for role in present), table_)


def _name(step: Step, of: Denominator, word: str = "") -> str:
    """The number of a step after ``word``, or the run."""
    return f"{word}{step.step}" if of.several else of.the


def _bar(wall: Mapping[str, int] | None, most: int, name: str) -> Html | str:
    """A step as a bar; ``most`` ns are as wide as the bar can be."""
    if wall is None:
        return "withheld"
    parts = {role: wall.get(role, 0) for role in ROLES}
    told = ", ".join(f"{ROLES[role]} {time_text(value)}" for role, value in parts.items() if value)
    return el("div", stacked_bar(parts, most, f"{name}: {told}"), title=told)


def _table(summary: Summary, marks: Marks, *, several: bool) -> Html:
    column, of = MarkedColumns("steps", marks), summary.denominator
    gpu = [
        column("kernels", "kernels", "count", f"kernels that calls of {of.the} launched"),
        column(
            "kernel_ns",
            "kernel time",
            "ns",
            "sum over those kernels, wherever they ran, without communication",
        ),
        column("memcpy_ns", "copies", "ns", f"sum over copies that {of.the} launched"),
        column("comm_ns", "communication", "ns", f"sum over communication kernels that {of.the} launched"),
        column("gpu_busy_ns", "GPU busy", "ns", f"union of all GPU work that {of.the} launched"),
        column(
            "idle_ns", "no GPU work", "ns", "part of the host time in which no GPU work of the process ran"
        ),
        column(
            "launches", "launches", "count", "calls that enqueued its GPU work; a graph launch counts once"
        ),
    ]
    columns: list[Column[Step]] = [
        *([column("step", "step", "count", "number from the range's name")] if of.several else ()),
        *([column.rank(summary.guessed_ranks)] if several else []),
        column("dur_ns", "host time", "ns", f"the host range of {of.the}"),
        *(gpu if summary.devices else ()),
    ]
    return table("steps", columns, summary.steps, caption=of.every.removeprefix("the "), limit=STEPS_SHOWN)
