"""The page about the history of jobs over runs: what changed, and step times run by run."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from itertools import pairwise

from profrun.contract.units import (
    counted,
    signed_change_interval_text,
    signed_change_text,
    time_text,
)
from profrun.reports.content import HistoryContent, HistoryRun, HistorySeries
from profrun.reports.html import Child, Html, chip, el
from profrun.reports.html_table import Column, table
from profrun.reports.page import document
from profrun.reports.step_charts import HistoryDot, history_chart

NOTE = (
    "Dot: step time of a run (of a program without steps its run time), a link to its report. Line: range "
    "over its trials; with one trial, the middle half of its steps. Large dot: a change against the run "
    "before, proven among all runs of the chart (the estimator of `profrun compare`). Dashed line: other "
    "hardware, so the runs are not compared."
)
PROVEN = ("faster", "slower")
CHANGES = 10
"""Most changes in the list at the top."""


def history_html(content: HistoryContent, *, made_by: str) -> str:
    """One self-contained HTML document.

    Args:
        content: what it shows.
        made_by: the program and when, for the foot of the page.
    """
    jobs: dict[str, list[HistorySeries]] = {}
    for one in content.series:
        jobs.setdefault(one.job, []).append(one)
    body = (
        el(
            "p",
            f"{counted(content.runs, 'run')} of {counted(len(jobs), 'job')} in {content.root}",
            class_="note",
        ),
        _changes(content.series),
        el("p", NOTE, class_="note") if jobs else el("p", "No run has measured times."),
        (_job(job, series, number) for number, (job, series) in enumerate(jobs.items())),
        _left_out(content.left_out),
    )
    title = f"History of {counted(len(jobs), 'job')}" if len(jobs) != 1 else f"History of {next(iter(jobs))}"
    return document(title, el("main", body), foot=f"Made by {made_by}. Times are those of `comparison.json`.")


def _changes(series: Sequence[HistorySeries]) -> Html | None:
    """The newest proven changes, as sentences."""
    if not series:
        return None
    found = [
        (run, before, one)
        for one in series
        for before, run in pairwise(one.runs)
        if run.change is not None and run.change.verdict in PROVEN
    ]
    if not found:
        times = " or ".join(
            sorted({run.denominator.time for one in series for run in one.runs}, reverse=True)
        )
        return el("p", f"No {times} changed from one run to the next, as far as these trials can prove.")
    found.sort(key=lambda item: -item[0].created_ns)
    rows = (
        el(
            "li",
            _chip(run),
            f" {one.job}, {one.variant}: {time_text(before.step_ns)} -> {time_text(run.step_ns)}, ",
            f"{_text(run)} in ",
            _link(run),
        )
        for run, before, one in found[:CHANGES]
    )
    more = len(found) - CHANGES
    return el(
        "div",
        el("ul", rows, class_="quality"),
        el("p", f"{more} earlier changes are in the charts.", class_="note") if more > 0 else None,
    )


def _job(job: str, series: Sequence[HistorySeries], number: int) -> Html:
    parts = ((_chart(one), _table(one, f"{number}-{place}")) for place, one in enumerate(series))
    return el("section", el("h2", job), parts, id=f"job{number}")


def _chart(series: HistorySeries) -> Html:
    dots = [_dot(run) for run in series.runs]
    under = "" if series.collector == "none" else f", timed under {series.collector}"
    newest = series.runs[-1]
    text = (
        f"{series.variant}: {time_text(newest.step_ns)} in the newest of {counted(len(dots), 'run')}{under}"
    )
    ends = (_date(series.runs[0].created_ns), _date(newest.created_ns))
    return el("figure", el("figcaption", text), history_chart(dots, f"{series.job}, {text}", ends))


def _dot(run: HistoryRun) -> HistoryDot:
    change = run.change
    verdict = change.verdict if change is not None and change.verdict in PROVEN else ""
    title = f"{run.run}: {time_text(run.step_ns)}"
    if change is not None:
        title = "; ".join([title, _text(run), *change.machine, *change.versions])
    broken = change is not None and bool(change.machine)
    return HistoryDot(run.step_ns, (run.low_ns, run.high_ns), title, run.link, verdict, broken)


def _time(series: HistorySeries) -> str:
    """What its runs measured: 'step', 'run'."""
    return " or ".join(sorted({run.denominator.of for run in series.runs}, reverse=True))


def _table(series: HistorySeries, name: str) -> Html:
    columns: list[Column[HistoryRun]] = [
        Column("run", _link),
        Column("made", lambda run: _date(run.created_ns), note="UTC"),
        Column(_time(series), lambda run: run.step_ns, "ns", "as comparisons take it"),
        Column("from", lambda run: run.low_ns, "ns", "least median of a trial; of one trial, quartile"),
        Column("to", lambda run: run.high_ns, "ns", "largest median of a trial; of one trial, quartile"),
        Column("trials", lambda run: run.trials, "count"),
        Column("steps", lambda run: run.steps if run.denominator.several else None, "count"),
        Column("against the run before", lambda run: (_chip(run), " ", _text(run)), note="95 % interval"),
        Column("what else changed", _notes),
    ]
    rows = list(reversed(series.runs))
    caption = f"{series.variant}, newest run first"
    found = table(f"runs-{name}", columns, rows, caption=caption, limit=len(rows))
    return el("details", el("summary", f"the table of {counted(len(rows), 'run')}"), found)


def _notes(run: HistoryRun) -> str | None:
    change = run.change
    return "; ".join((*change.machine, *change.versions)) or None if change is not None else None


def _text(run: HistoryRun) -> str:
    """The change against the run before in words."""
    change = run.change
    if change is None:
        return "first run"
    if change.ratio is None:
        return "not compared"
    if change.ci95 is None:
        return f"{signed_change_text(change.ratio)}, one trial proves nothing"
    return f"{signed_change_text(change.ratio)} ({signed_change_interval_text(change.ci95)})"


def _chip(run: HistoryRun) -> Html | None:
    return None if run.change is None else chip(run.change.verdict)


def _link(run: HistoryRun) -> Child:
    return run.run if run.link is None else el("a", run.run, href=run.link)


def _date(ns: int) -> str:
    moment = datetime.datetime.fromtimestamp(ns // 10**9, tz=datetime.timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M")


def _left_out(lines: Sequence[str]) -> Html | None:
    if not lines:
        return None
    title = f"{counted(len(lines), 'run')} not shown"
    return el("details", el("summary", title), el("ul", (el("li", line) for line in lines)))
