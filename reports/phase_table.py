"""The phases of a run in a trace's page: where the window lies, and a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.units import time_text
from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, table

if TYPE_CHECKING:
    from profrun.analysis.trace.steadiness import RunPhase
    from profrun.analysis.trace.summary import Summary


def phases_html(summary: Summary) -> Html | None:
    """A sentence on the window and a row per phase; None for a run of one phase."""
    phases = summary.phases
    if len(phases) < 2:
        return None
    window = summary.window
    rows = list(enumerate(phases, 1))
    columns: list[Column[tuple[int, RunPhase]]] = [
        Column("phase", lambda row: row[0], "count", "in the order of time"),
        Column(
            "steps", lambda row: f"{row[1].first_step} to {row[1].last_step}", note="numbers of its steps"
        ),
        Column(
            "step time", lambda row: row[1].median_ns, "ns", "median of its steps that no profiler disturbs"
        ),
    ]
    if window:
        columns.append(
            Column(
                "of the steady phase",
                lambda row: row[1].median_ns / window.steady_ns,
                "share",
                "step time by that of the steady phase, in which most steps lie",
            )
        )
    columns.append(Column("what", lambda row: _what(row[1], row[0], summary)))
    sentence = f"{window.text[:1].upper()}{window.text[1:]}." if window else None
    note = "The step times of the whole run, recorded or not, have several levels."
    return el("div", el("p", sentence or note), table("phases", columns, rows, caption="phases of the run"))


def phase_bands(summary: Summary) -> list[tuple[int, int, str]]:
    """Begin and end (ns on the axis of the trace) and name of each phase; empty for a run of one phase."""
    if len(summary.phases) < 2:
        return []
    window = summary.window.phase if summary.window else None
    return [
        (
            phase.start_ns,
            phase.end_ns,
            f"phase {number}: {time_text(phase.median_ns)}" + (", recorded" if number == window else ""),
        )
        for number, phase in enumerate(summary.phases, 1)
    ]


def _what(phase: RunPhase, number: int, summary: Summary) -> str:
    window = summary.window
    words = ["warm-up"] if phase.warm_up else []
    if window is not None:
        words += ["the window"] if number == window.phase else []
        words += ["the steady phase"] if number == window.steady else []
    words += [cause.text for cause in phase.why if cause.code != "warm-up"]
    return "; ".join(words)
