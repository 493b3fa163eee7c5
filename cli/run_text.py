"""A run as text for a person: its trials, its comparisons, its claims, what is wrong."""

from __future__ import annotations

from profrun.backends.base import WRAPPED
from profrun.cli.output import columns, say, shown_path, tell
from profrun.contract.ends import asked_text
from profrun.contract.units import counted, elapsed_text, time_text
from profrun.reports.answer_text import answer_parts, tones_of_changes
from profrun.reports.claims_text import claim_parts
from profrun.reports.terminal_layout import Prose
from profrun.reports.tones import toned, tones_of
from profrun.runner.problems import problems_of
from profrun.store.run_result import PairKind, PairResult, RunResult, run_result
from profrun.store.state import RunState

TITLES: dict[PairKind, str] = {
    "variant": "Variants ({time}):",
    "change": "What changed inside of {one} (profiled trials):",
    "blocking": "Launch blocking ({time}, blocking against not):",
    "overhead": "Overhead of collectors ({time}, profiled against not):",
}
"""Kind of comparison -> its title, with places for the words of what is timed."""


def trial_table(state: RunState) -> str:
    """The trials as columns that fit 80 characters for names of usual length."""
    from profrun.analysis.trial_times import typical_ns

    timed = {record.steps.denominator.of for record in state.trials if record.steps.count}
    step = " or ".join(sorted(timed, reverse=True)) or "step"
    header = ("#", "variant", "collector", "blocking", "rep", "state", "steps", step, "trace")
    rows = [
        (
            record.index,
            record.variant,
            record.collector,
            "on" if record.blocking else "off",
            record.repeat,
            toned(record.state),
            record.steps.count if record.attempt and record.steps.denominator.several else None,
            time_text(typical_ns(record)),
            "yes" if record.trace else ("failed" if record.normalise_error else "-"),
        )
        for record in state.trials
    ]
    return columns(header, rows, right=(0, 4, 6, 7))


def show_run(state: RunState, *, verbose: bool = False) -> RunResult:
    """Print the result of a run and return it: the answers first.

    Args:
        state: the run.
        verbose: print every trial and every comparison, too. Trials are always printed while there are no
            answers, and when one of them did not finish.
    """
    result = run_result(state)
    tell(_headline(state, result))
    parts = answer_parts(result.answers, result.comparisons)
    if parts:
        say()
        tell(*parts)
    if verbose or not parts or any(record.state not in ("finished", "skipped") for record in state.trials):
        say()
        say(trial_table(state))
    if verbose or not parts:
        for kind, title in TITLES.items():
            _show_pairs(title, [pair for pair in result.comparisons if pair.kind == kind])
    if result.expectations:
        say()
        tell(*claim_parts(result.expectations))
    problems = problems_of(state)
    if problems:
        say()
    for problem in problems:
        tell(str(problem))
    _go_on(state, result)
    return result


def _headline(state: RunState, result: RunResult) -> Prose:
    """The run's name, how far it is, how long it took and on which GPUs."""
    skipped, done = state.count("skipped"), state.count("finished")
    total = len(state.trials) - skipped
    trials = counted(total, "trial") if done == total else f"{done} of {total} trials finished"
    if skipped:
        trials += f" ({skipped} more were not needed)"
    begins = [record.started_ns for record in state.trials if record.started_ns is not None]
    ends = [record.ended_ns for record in state.trials if record.ended_ns is not None]
    took = (
        f" after {elapsed_text((max(ends) - min(begins)) / 1e9)}" if begins and ends and done == total else ""
    )
    gpus = list(dict.fromkeys(name for answer in result.answers for name in answer.gpus))
    text = ", ".join([f"{state.phase}{took}", trials, *gpus])
    return Prose(text, label=state.run.name, toned=tones_of(state.phase))


def _go_on(state: RunState, result: RunResult) -> None:
    """The commands that go on, and where the files are."""
    name = state.run.name
    lines = []
    if state.backend == WRAPPED:
        if state.count("lost"):
            lines.append("when more ranks have ended, run `profrun normalize` again")
    elif state.phase == "interrupted":
        lines.append(f"no process drives this run; continue it with `profrun resume {name}`")
    elif state.phase == "cancelled":
        lines.append(cancelled_text(state))
        lines.append(f"continue it with `profrun resume {name}`")
    elif state.count("failed", "timeout"):
        lines.append(f"repeat what failed with `profrun resume {name} --failed`")
    where = ("report", result.report) if result.report else ("folder", state.run.path)
    lines.append(f"{where[0]}: {shown_path(where[1])}")
    told = next((answer.trial for answer in result.answers if answer.trial is not None), None)
    if told is not None:
        lines.append(f"next:   profrun diagnose {name}/{told.split('-')[0]}")
    say()
    for line in lines:
        say(line)


def cancelled_text(state: RunState) -> str:
    """Who cancelled a run, and that its data was kept, as sentences."""
    kept = all(record.code == "cancelled" for record in state.trials if record.state == "cancelled")
    return f"{asked_text(str(state.cancelled_by))}." + (" Recorded data was kept." if kept else "")


def _show_pairs(title: str, pairs: list[PairResult]) -> None:
    if pairs:
        of = pairs[0].denominator
        say()
        tell(Prose(label=title.format(time=of.time, one=of.one)))
    for pair in pairs:
        tell(Prose(f"  {pair.text}", toned=tones_of_changes([pair])))
        for why, text in pair.commands:
            tell(f"    {why}:")
            say(f"      {text}")  # whole, so that it can be copied
        for line in (*pair.changed, *([pair.kernels] if pair.kernels else ())):
            tell(f"    {line}")
