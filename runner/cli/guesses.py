"""The job's ``expect`` block checked on the traces of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from profrun.jobs.model import Expectation
from profrun.runner.model import Plan
from profrun.runner.store.state import TrialRecord


def check_guesses(plan: Plan, records: Iterable[TrialRecord]) -> list[dict[str, Any]]:
    """One row a guess and point: check, expected, state, found; whose trials; how many of them.

    A guess that names no collector is asked of every collector's traces and counts where one can tell. A
    point's row is the first trial's that failed, else that held, else that could not tell.
    """
    if not plan.job.expect:
        return []
    rows: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        if record.trace is None or record.state != "finished":
            continue
        for number, row in _asked(plan, record, record.trace):
            key = (number, row["check"], record.variant, record.collector, record.blocking)
            rows.setdefault(key, []).append(row)
    found = [_worst(group) for group in rows.values()]
    answered = {_guess_of(row) for row in found if row["state"] != "unknown"}
    return [row for row in found if row["state"] != "unknown" or _guess_of(row) not in answered]


def _guess_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Which guess a row is about, whoever answered it."""
    return row["guess"], row["check"], row["variant"]


def _asked(plan: Plan, record: TrialRecord, trace: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every check of every guess that is about this trial."""
    import profrun
    from profrun.analysis.expect import expect

    about = [
        (number, guess)
        for number, guess in enumerate(plan.job.expect)
        if guess.variant in (None, record.variant) and _collected(guess, record)
    ]
    if not about:
        return
    with profrun.open(trace) as opened:
        for number, guess in about:
            if guess.vendor not in (None, opened.meta["vendor"]):
                continue
            for outcome in expect(opened, guess.checks):
                yield (
                    number,
                    {
                        "guess": number,
                        **outcome.to_json(),
                        "variant": record.variant,
                        "collector": record.collector,
                        "blocking": record.blocking,
                        "trial": record.id,
                    },
                )


def _collected(guess: Expectation, record: TrialRecord) -> bool:
    """Is the guess about this trial's collector? ``timeline`` and ``counters`` stand for what they became."""
    neutral = {"timeline": ("nsys", "rocprof"), "counters": ("ncu", "rocprof")}
    wanted = guess.collector
    made = str(record.document.get("collector") or record.collector)
    return wanted in (None, record.collector, made) or made in neutral.get(str(wanted), ())


def _worst(rows: list[dict[str, Any]]) -> dict[str, Any]:
    order = ("failed", "held", "unknown")
    first = min(rows, key=lambda row: order.index(row["state"]))
    return {**first, "trials": len(rows)}


def guess_line(row: dict[str, Any]) -> str:
    """One line for a person."""
    blocking = ", blocking" if row["blocking"] else ""
    where = f"{row['variant']}, {row['collector']}{blocking}"
    return f"{where}: {row['check']} {_short(row['expected'])}: {row['state']}: {row['found']}"


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(str(item) for item in value) + "]"
    return str(value)
