"""The end of a run, as one document and as text: trials, overheads, launch-blocking, expectations, report."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from profrun.cli.output import columns, say, tell
from profrun.contract.units import time_text
from profrun.errors import InputError
from profrun.plans.model import Plan
from profrun.runner.default_comparisons import implied_comparisons
from profrun.runner.expectations import guess_line, guess_rows
from profrun.runner.points import Point, Ratio, overheads, points, twins
from profrun.runner.twins import Twins, compare_twins, twins_line
from profrun.store.files import read_json, write_json
from profrun.store.state import RunState, TrialRecord


def trial_document(record: TrialRecord) -> dict[str, Any]:
    """One trial as `submit --json` lists it; times in ns, null where nothing was measured."""
    return {
        "trial": record.id,
        "variant": record.variant,
        "collector": record.collector,
        "blocking": record.blocking,
        "repeat": record.repeat,
        "state": record.state,
        "attempt": record.attempt,
        "exit_code": record.exit_code,
        "reason": record.reason,
        "steps": record.steps.count if record.attempt else None,
        "steps_found_by": record.steps.how,
        "steps_measured": len(record.steps.measured),
        "median_step_ns": record.steps.median_ns,
        "clock": record.steps.clock,
        "started_ns": record.started_ns,
        "ended_ns": record.ended_ns,
        "trace": str(record.trace) if record.trace else None,
        "trace_error": record.normalise_error,
        "warnings": list(record.warnings),
    }


def run_head(state: RunState) -> dict[str, Any]:
    """What names a run in every document about one."""
    return {
        "run": state.run.name,
        "path": str(state.run.path),
        "job": state.job,
        "backend": state.backend,
        "state": state.phase,
        "created_ns": state.created_ns,
    }


def run_document(state: RunState) -> dict[str, Any]:
    """The whole run, from its folder."""
    found = points(state.trials)
    return {
        **run_head(state),
        "trials": [trial_document(record) for record in state.trials],
        "overhead": [_ratio_document(item) for item in overheads(found)],
        "blocking": [_ratio_document(item) for item in twins(found)],
        "blocking_kernels": _compared(state, "blocking_kernels"),
        "expectations": _compared(state, "expectations"),
        "comparisons": _compared(state, "comparisons"),
        "report": str(state.run.report) if state.run.report.exists() else None,
        "notes": [*state.notes, *_kept_comparison(state)[1]],
    }


def write_comparison(state: RunState, plan: Plan) -> None:
    """Ask the traces what their twins share and which guesses hold; keep it all in ``comparison.json``.

    Done once, at the end of a run: it opens every trace once.
    """
    from profrun.runner.finish import ask_traces

    found = points(state.trials)
    told = ask_traces(state.trials, plan.job.expect)
    write_json(
        state.run.comparison,
        {
            "format": 1,
            "overhead": [_ratio_document(item) for item in overheads(found)],
            "blocking": [_ratio_document(item) for item in twins(found)],
            "blocking_kernels": [
                dataclasses.asdict(item) for item in compare_twins(state.trials, told.kernels)
            ],
            "expectations": guess_rows(told.checks),
            "comparisons": implied_comparisons(state.trials, told.trials),
        },
    )


def _compared(state: RunState, what: str) -> list[dict[str, Any]]:
    """One list of ``comparison.json``; empty before the end of the run, and where the file is damaged."""
    return list(_kept_comparison(state)[0].get(what) or [])


def _kept_comparison(state: RunState) -> tuple[dict[str, Any], list[str]]:
    """``comparison.json``, and what is wrong with it: the trials are to be seen all the same."""
    again = f"`profrun resume {state.run.name}` makes it again"
    try:
        kept = read_json(state.run.comparison) or {}
    except InputError as error:
        return {}, [f"{error}; {again}"]
    lists = [kept.get(what) or [] for what in ("comparisons", "expectations", "blocking_kernels")]
    if all(isinstance(rows, list) and all(isinstance(row, dict) for row in rows) for rows in lists):
        return kept, []
    return {}, [f"{state.run.comparison} is damaged; {again}"]


def _ratio_document(ratio: Ratio) -> dict[str, Any]:
    return {
        "variant": ratio.of.variant,
        "collector": ratio.of.collector,
        "blocking": ratio.of.blocking,
        "median_step_ns": ratio.of.median_step_ns,
        "base_median_step_ns": ratio.base.median_step_ns,
        "base": {"collector": ratio.base.collector, "blocking": ratio.base.blocking},
        "ratio": ratio.value,
        "ratio_of": "median over trials of the median step time, over the same of base",
        "trials": [ratio.of.trials, ratio.base.trials],
    }


def trial_table(state: RunState) -> str:
    """The trials as columns that fit 80 characters for names of usual length."""
    header = ("#", "variant", "collector", "blocking", "rep", "state", "steps", "step", "trace")
    rows = [
        (
            record.index,
            record.variant,
            record.collector,
            "on" if record.blocking else "off",
            record.repeat,
            record.state,
            record.steps.count if record.attempt else None,
            time_text(record.steps.median_ns),
            "yes" if record.trace else ("failed" if record.normalise_error else "-"),
        )
        for record in state.trials
    ]
    return columns(header, rows, right=(0, 4, 6, 7))


def show_run(state: RunState) -> None:
    """The run's result for a person."""
    say(trial_table(state))
    found = points(state.trials)
    for title, ratios, describe in (
        ("Launch blocking (median step, blocking over not):", twins(found), _twin_line),
        ("Collector overhead (median step, profiled over unprofiled):", overheads(found), _overhead_line),
    ):
        over = state.phase in ("finished", "failed")  # before that a missing number only means "not yet"
        told = [ratio for ratio in ratios if over or ratio.value is not None]
        if told:
            say()
            say(title)
        for ratio in told:
            tell("  " + describe(ratio))
    comparisons = _compared(state, "comparisons")
    if comparisons:
        say()
        say("Comparisons (`profrun compare` and `profrun blocking` say what changed):")
    for item in comparisons:
        tell(f"  {item['b']} against {item['a']}: {item['text']}")
        for line in item.get("changed") or ():
            tell(f"    {line}")
    guesses = _compared(state, "expectations")
    if guesses:
        say()
        say(f"Expectations: {_tally(guesses)}")
    for row in guesses:
        if row["state"] != "held":
            tell("  " + guess_line(row))
    same = _compared(state, "blocking_kernels")
    if same:
        say()
        say("Kernels of launch-blocking twins (by name, launched inside the steps):")
    for pair in same:
        tell("  " + twins_line(Twins(**pair)))
    for trouble in troubles(state):
        tell(trouble)


def _tally(rows: list[dict[str, Any]]) -> str:
    """'3 held, 1 failed'; what did not occur is left out."""
    counts = {word: sum(row["state"] == word for row in rows) for word in ("held", "failed", "unknown")}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _point_name(point: Point) -> str:
    return f"{point.variant}, {point.collector}"


def _twin_line(ratio: Ratio) -> str:
    on, off = time_text(ratio.of.median_step_ns), time_text(ratio.base.median_step_ns)
    return f"{_point_name(ratio.of)}: {on} blocking, {off} not, ratio {_ratio(ratio)}"


def _overhead_line(ratio: Ratio) -> str:
    blocking = ", blocking" if ratio.of.blocking else ""
    with_it, without = time_text(ratio.of.median_step_ns), time_text(ratio.base.median_step_ns)
    return f"{_point_name(ratio.of)}{blocking}: {with_it} over {without}, ratio {_ratio(ratio)}"


def _ratio(ratio: Ratio) -> str:
    """Three digits, with the number of trials each side rests on."""
    if ratio.value is None:
        return "not known (a side measured no step)"
    return f"{ratio.value:.3f} ({ratio.of.trials} and {ratio.base.trials} trials)"


def troubles(state: RunState) -> list[str]:
    """What is wrong, a line each: trials that wait or did not finish, traces that were not made, warnings."""
    told: dict[str, list[str]] = {}
    for record in state.trials:
        if not record.ended and record.reason:  # why a scheduler does not start it, for one
            told.setdefault(f"{record.state}: {record.reason}", []).append(record.id)
        if record.ended and record.state != "finished":
            told.setdefault(f"{record.state}: {why(record)}", []).append(record.id)
        if record.normalise_error:
            told.setdefault(f"no trace: {record.normalise_error}", []).append(record.id)
        if record.state == "finished":
            for text in record.warnings or _no_steps(record):
                told.setdefault(text, []).append(record.id)
    lines = [f"{_some(trials)}: {text}" for text, trials in told.items()]
    lines += [*state.notes, *_kept_comparison(state)[1]]
    return ["", *lines] if lines else []


def _some(trials: list[str]) -> str:
    """Whom a message is about: the first trial, and how many more say the same."""
    return trials[0] if len(trials) == 1 else f"{trials[0]} and {len(trials) - 1} more"


def why(record: TrialRecord) -> str:
    """Why a trial did not finish, with the last line that its program complained with."""
    reason = record.reason or f"exit code {record.exit_code}"
    last = last_line(record.path / "stderr.log") if record.state != "cancelled" else None
    return f"{reason}; it ended with: {last}" if last and last not in reason else reason


def last_line(path: Path, most: int = 300) -> str | None:
    """The last line of a log that is not blank, cut to ``most`` characters; None where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 8192))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return None
    return lines[-1].strip()[:most] if lines else None


def _no_steps(record: TrialRecord) -> list[str]:
    """What to say of a trial that measured nothing, where the wrapper said nothing."""
    if record.steps.median_ns is not None:
        return []
    if record.steps.count == 0:
        return ["no step was seen: call profrun.step() once an iteration, or use an optimizer or nn.Module"]
    count = record.steps.count
    return [f"it made {count} steps, none in the schedule's window: make it longer or the schedule shorter"]
