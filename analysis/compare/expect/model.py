"""Results of checking guesses: ``Check`` for one trace, ``ExpectationResult`` over all traces of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profrun.analysis.json import to_json

Answer = tuple[bool | None, str]
"""Does a guess hold (None: the trace cannot tell), and what was found."""


@dataclass(frozen=True)
class Check:
    """One guess on one trace.

    Attributes:
        number: place of the expectation in the list of the job, from 0. key: which guess of it.
        expected: the guess in words. found: what the trace shows.
        passed: None where the trace cannot tell.
        trial: label of the trace.
        variant: the variant that the expectation selects, None for all.
    """

    number: int
    key: str
    expected: str
    passed: bool | None
    found: str
    trial: str
    variant: str | None = None


@dataclass(frozen=True)
class ExpectationResult:
    """One guess over all traces that it is about.

    Attributes:
        passed: False when it failed on any trace, None when no trace could tell.
        found: what the first trace shows on which it failed, else the first that could tell.
        trials: labels of the traces that could tell, or of all when none could.
        failed_on: labels of the traces on which it failed.
    """

    number: int
    key: str
    variant: str | None
    expected: str
    passed: bool | None
    found: str
    trials: tuple[str, ...]
    failed_on: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        found: dict[str, object] = to_json(self)
        return found


def summarise(checks: Sequence[Check]) -> list[ExpectationResult]:
    """One result per guess, over all traces, in the order of the job."""
    guesses: dict[tuple[int, str], list[Check]] = {}
    for check in checks:
        guesses.setdefault((check.number, check.key), []).append(check)
    return [_result(group) for _, group in sorted(guesses.items(), key=lambda item: item[0][0])]


def _result(group: Sequence[Check]) -> ExpectationResult:
    failed = [one for one in group if one.passed is False]
    told = [one for one in group if one.passed is not None]
    shown = (failed or told or group)[0]
    return ExpectationResult(
        number=shown.number,
        key=shown.key,
        variant=shown.variant,
        expected=shown.expected,
        passed=not failed if told else None,
        found=shown.found,
        trials=tuple(one.trial for one in told or group),
        failed_on=tuple(one.trial for one in failed),
    )
