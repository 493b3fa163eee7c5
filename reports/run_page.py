"""The part of a report that shows a run: how its trials ended, what they measured, and what that means."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from profrun.analysis.trial_times import trial_times, typical_ns
from profrun.contract.units import counted
from profrun.reports.claims_section import claims_html
from profrun.reports.comparison_section import comparisons_html
from profrun.reports.content import RunContent
from profrun.reports.html import Html, chip, el, sections_html
from profrun.reports.html_table import Column, table
from profrun.reports.improve_section import improvement_html
from profrun.reports.machine_section import images_html, machines_html
from profrun.reports.overview_section import overview_html
from profrun.reports.step_charts import MOST_DOTS, THINNED_NOTE, strip_chart
from profrun.store.state import RunState, TrialRecord

STRIP_NOTE = (
    "Each dot is a step that counts, each row of dots a trial, each tick a trial's median. "
    "Clock: {clocks}, as the hook in the job measured; of several ranks the slowest counts."
)
RUNS_NOTE = (
    "Each dot is the run of a trial: no steps were found. It begins at the end of the import of the GPU "
    "framework, else at the start of the program, and ends with the program and its GPU work. Clock: "
    "{clocks}; of several ranks the slowest counts."
)


def run_html(run: RunContent, tabs: Mapping[str, str]) -> Html:
    """Every section of a run; the last line names the sections that it does not have.

    Args:
        run: what is shown.
        tabs: id of a trial -> id of its tab, for the trials that have one.
    """
    state = run.state
    troubles, improvement = _troubles(run), improvement_html(run.improvement)
    sections: list[tuple[str, str, Html | None]] = [
        ("overview", "Overview", overview_html(run.answers, run.comparisons, tabs)),
        *([("improvement", "What helps", improvement)] if improvement else []),
        *([("troubles", "What to know first", troubles)] if troubles else []),
        ("comparisons", "Comparisons", comparisons_html(run.comparisons)),
        ("steps", f"{_timed(state).capitalize()}s", _step_times(state)),
        ("trials", "Trials", _trials(state)),
        ("claims", "Claims", claims_html(run.expectations)),
        ("machine", "Machines", machines_html(run.machines, run.used_gpus)),
        ("images", "Images", images_html(run.machines)),
        ("job", "Job", _job(run)),
    ]
    return el(
        "div",
        el("p", chip(state.phase), " ", _headline(state, troubled=troubles is not None), class_="note"),
        sections_html(sections, "run", of="the run", absent="Not in this run: "),
    )


def _headline(state: RunState, *, troubled: bool) -> str:
    """What the run was; ``troubled``: a section says what went wrong."""
    return (
        f"job {state.job}, backend {state.backend}, submitted {_utc(state.created_ns)}; "
        f"{state.count('finished')} of {counted(len(state.trials), 'trial')} finished"
        f"{'' if troubled else ' without warnings'}; folder {state.run.path}"
    )


def _utc(ns: int) -> str:
    """unix ns as UTC to the second."""
    moment = datetime.datetime.fromtimestamp(ns // 10**9, tz=datetime.timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _troubles(run: RunContent) -> Html | None:
    """What went wrong or is missing; None where nothing is."""
    lines = [("missing", "warning", line) for line in run.missing]
    lines += [("trial", "warning", line) for line in run.troubles if line]
    lines += [
        ("claim", "failed", f"refuted: {row.claim} ({row.where})")
        for row in run.expectations
        if row.state == "refuted"
    ]
    if run.shown < run.total:
        shown = f"{run.shown} of {run.total} profiled traces have a tab: the first of each point"
        lines.append(("note", "note", f"{shown}; `profrun report RUN/NUMBER` shows any other"))
    if not lines:
        return None
    rows = (el("li", chip(kind, class_), " ", line) for kind, class_, line in lines)
    return el("ul", rows, class_="quality")


def _timed(state: RunState) -> str:
    """What the trials measured: 'step time', 'run time'."""
    found = {trial.steps.denominator.time for trial in state.trials if trial.steps.measured}
    return " or ".join(sorted(found, reverse=True)) or "step time"


def _step_times(state: RunState) -> Html | None:
    points: dict[str, list[Sequence[int]]] = {}
    for trial in state.trials:
        if trial.steps.measured and trial.state == "finished":
            name = f"{trial.variant}, {trial.collector}{', blocking' if trial.blocking else ''}"
            points.setdefault(name, []).append(trial_times(trial))
    if not points:
        return None
    clocks = ", ".join(sorted({trial.steps.clock for trial in state.trials if trial.steps.clock}))
    several = any(trial.steps.denominator.several for trial in state.trials if trial.steps.measured)
    told = "; the trial table holds the medians" if several else ""
    chart = strip_chart(list(points.items()), f"{_timed(state)}s by point{told}")
    note = (STRIP_NOTE if several else RUNS_NOTE).format(clocks=clocks or "not known")
    if any(len(times) > MOST_DOTS for trials in points.values() for times in trials):
        note += THINNED_NOTE
    return el("div", el("p", note, class_="note"), chart)


def _trials(state: RunState) -> Html:
    columns: list[Column[TrialRecord]] = [
        Column("#", lambda row: row.id.split("-")[0]),
        Column("variant", lambda row: row.variant),
        Column("collector", lambda row: row.collector),
        Column("blocking", lambda row: _on(row.blocking)),
        Column("repeat", lambda row: row.repeat, "count"),
        Column("state", lambda row: chip(row.state)),
        Column("exit", lambda row: row.exit_code, "count", "exit code of the command; '-': it has none"),
        *_times_of(state),
        Column("clock", lambda row: row.steps.clock, note=f"what measured the {_timed(state)}"),
        Column(
            "took", lambda row: row.took_ns, "ns", "start to end of the trial, profiler and export included"
        ),
        Column("trace", lambda row: "yes" if row.trace else (row.normalise_error or "-")),
        Column("reason", lambda row: row.reason),
    ]
    return table(
        "trials", columns, state.trials, caption="trials, in the order they ran", limit=400, whole=True
    )


def _times_of(state: RunState) -> list[Column[TrialRecord]]:
    """The columns of the times of trials: of their steps, or of their runs where no trial has steps."""
    found = [trial.steps.denominator for trial in state.trials if trial.steps.count]
    if found and not any(one.several for one in found):
        note = "from the end of the import of the GPU framework to the program's end"
        return [Column("run time", lambda row: row.steps.median_ns, "ns", note)]
    return [
        Column("steps", lambda row: row.steps.count if row.attempt else None, "count", "steps seen"),
        Column(
            "measured",
            lambda row: len(trial_times(row)),
            "count",
            "steps that count: recorded, or of the steady phase",
        ),
        Column("median step", typical_ns, "ns", "median of the measured steps"),
    ]


def _on(flag: bool) -> str:
    return "on" if flag else "off"


def _job(run: RunContent) -> Html | None:
    if run.job is None and run.resolved is None:
        return None
    repeat = el("details", el("summary", "the job that repeats this run"), el("pre", run.resolved))
    return el(
        "div", None if run.job is None else el("pre", run.job), None if run.resolved is None else repeat
    )
