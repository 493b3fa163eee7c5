"""A run as text for a person: its trials, its comparisons, its expectations, what is wrong."""

from __future__ import annotations

from profrun.cli.output import columns, say, tell
from profrun.contract.units import time_text
from profrun.runner.problems import problems_of
from profrun.store.run_result import ExpectationResult, PairKind, PairResult, RunResult, run_result
from profrun.store.state import RunState

TITLES: dict[PairKind, str] = {
    "variant": "Variants (step time):",
    "change": "What changed inside a step (profiled trials):",
    "blocking": "Launch blocking (step time, blocking against not):",
    "overhead": "Overhead of collectors (step time, profiled against not):",
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


def show_run(state: RunState) -> RunResult:
    """Print the result of a run and return it."""
    result = run_result(state)
    say(trial_table(state))
    for kind, title in TITLES.items():
        _show_pairs(title, [pair for pair in result.comparisons if pair.kind == kind])
    if result.expectations:
        say()
        say(f"Expectations: {_tally(result.expectations)}")
    for row in result.expectations:
        if row.state != "held":
            tell("  " + expectation_line(row))
    problems = problems_of(state)
    if problems:
        say()
    for problem in problems:
        tell(str(problem))
    return result


def _show_pairs(title: str, pairs: list[PairResult]) -> None:
    if pairs:
        say()
        say(title)
    for pair in pairs:
        tell(f"  {pair.a} vs {pair.b}: {pair.text}")
        for line in (*pair.changed, *([pair.kernels] if pair.kernels else ())):
            tell(f"    {line}")


def expectation_line(row: ExpectationResult) -> str:
    """One expectation in one line: what was expected, whether it held, and what was found."""
    where = f"{row.variant}: " if row.variant else ""
    failed = row.failed_on
    trials = f" ({failed[0]}{f' and {len(failed) - 1} more' if len(failed) > 1 else ''})" if failed else ""
    return f"{where}{row.expected}: {row.state}: {row.found}{trials}"


def _tally(rows: tuple[ExpectationResult, ...]) -> str:
    """'3 held, 1 failed'; what did not occur is left out."""
    counts = {word: sum(row.state == word for row in rows) for word in ("held", "failed", "unknown")}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)
