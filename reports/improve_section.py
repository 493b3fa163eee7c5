"""What ``profrun improve`` tried, in the report of the run that was improved: ``improvement_html``."""

from __future__ import annotations

from profrun.reports.html import Html, chip, el
from profrun.reports.html_table import Column, table
from profrun.reports.improve_text import answer, cells, next_command, permanent, ranked, told
from profrun.store.improvement import ExperimentResult, Improvement

_CLASSES = {"proven": "held", "slower": "failed", "failed": "failed", "not the same": "failed"}


def improvement_html(found: Improvement | None) -> Html | None:
    """The answer, a row for each experiment, and how to keep what helped; None where nothing was tried."""
    if found is None or not found.experiments:
        return None
    columns: list[Column[ExperimentResult]] = [
        Column("verdict", lambda row: chip(row.state, _CLASSES.get(row.state, "unknown"))),
        Column("experiment", _name),
        Column(
            "promised",
            lambda row: cells(row)[0] or "",
            note="the largest gain that the findings allow together, of the step time",
        ),
        Column(
            "measured", lambda row: cells(row)[1] or "", note="change of the step time without a profiler"
        ),
        Column(
            "interval",
            lambda row: cells(row)[2] or "",
            note="95 %, valid although it was looked at after each round",
        ),
        Column("rounds", lambda row: row.rounds or ""),
        Column("computes the same", lambda row: row.same.text),
    ]
    rows = ranked(found.settled)
    if any(one.explained for one in rows):
        columns.append(Column("what changed inside of a step", _inside, note="of profiled trials"))
    kept, go_on = permanent(found), next_command(found)
    runs = [name for name in (found.experiments_run, found.together_run) if name]
    return el(
        "div",
        (el("p", line) for line in answer(found)),
        table("experiments", columns, rows, caption="Experiments", limit=400, whole=True),
        el("h4", "To keep what helped") if kept else None,
        el("ul", (el("li", f"{text}: ", el("code", line)) for text, line in kept)) if kept else None,
        el("p", "To go on: ", el("code", go_on)) if go_on else None,
        el("p", "Trials and reports: ", (_link(name) for name in runs), class_="note") if runs else None,
    )


def _link(name: str) -> Html:
    """The report of the run of a stage, which lies beside this run."""
    return el("span", el("a", name, href=f"../{name}/report.html"), " ")


def _name(row: ExperimentResult) -> Html:
    """Its name, and below what else is to be said of it: the rules that ask for it, what the hook did."""
    more = [*told(row), *(one.rule for one in row.promises), *row.said]
    return el("span", row.name, (el("span", el("br"), el("small", text)) for text in more))


def _inside(row: ExperimentResult) -> Html | str:
    return el("span", (el("span", text, el("br")) for text in row.explained)) if row.explained else ""
