"""Answers to the checks of claims: ``Answer`` of one check, ``Check`` on one trace or between variants.

``Told`` is what one trace tells: its answers to the checks that need no other trace, and the trace reduced to
trials for those that compare variants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.contract.denominator import STEP, Denominator

UNPROFILED = "none"
"""``Told.tool`` of a trial without a profiler."""


class Answer(NamedTuple):
    """Does a check hold?

    Attributes:
        passed: None where nothing can tell; then ``why`` says why.
        found: what was measured, in words; empty where nothing was.
        value: the number that was measured, in ``unit``, where it is one number. ci95: its 95 % interval.
        fix: what to do so that it can be checked.
        measured: a counter gave it that other traces only estimate: their answers do not count beside it.
    """

    passed: bool | None
    found: str = ""
    value: float | None = None
    ci95: tuple[float, float] | None = None
    unit: str = ""
    why: str = ""
    fix: str = ""
    measured: bool = False


Asked = tuple[Answer, tuple[str, ...]]
"""An answer, and the labels of the trials that were asked."""


def untold(why: str, fix: str = "") -> Answer:
    """The answer where nothing can tell."""
    return Answer(None, why=why, fix=fix)


def within(value: float, limits: tuple[float | None, float | None]) -> bool:
    """Is a number inside of limits? Both are included; None is an open end."""
    low, high = limits
    return (low is None or value >= low) and (high is None or value <= high)


def decided(values: tuple[float, float], limits: tuple[float | None, float | None]) -> bool | None:
    """Does a claim hold whose number may be anything between two values?

    Args:
        values: the smallest and the largest.

    Returns:
        True where all of them are inside of the limits, False where all are outside, None otherwise.
    """
    if all(within(value, limits) for value in values):
        return True
    low, high = limits
    outside = (high is not None and values[0] > high) or (low is not None and values[1] < low)
    return False if outside else None


@dataclass(frozen=True)
class Check:
    """One check on one trace, or between the traces of two variants.

    Attributes:
        number: place of the expectation in the list of the job, from 0. key: which check of it.
        variant: of the trace, the first of two. trials: labels of the traces that were asked.
    """

    number: int
    key: str
    variant: str | None
    answer: Answer
    trials: tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """What one trace tells.

    Attributes:
        label: of the trial. variant: None for a trace that is no trial's.
        collector: as the job of the trial names it. tool: the profiler that recorded, or ``none``.
        blocking: the job asked for launches that wait for their kernel.
        checks: of the checks that need this trace alone.
        trials: phase of a claim (None: whole steps) -> the trace as comparisons take it. A phase that the
            trace does not have is not in it.
        dram: bytes through the GPU's memory as ``Answer.value``, or why they are not known.
        dram_of: what these bytes are of: a mean over steps, the run or the recording.
    """

    label: str
    variant: str | None
    vendor: str
    collector: str
    tool: str
    blocking: bool
    checks: tuple[Check, ...]
    trials: Mapping[str | None, ComparedTrial]
    dram: Answer
    dram_of: Denominator = STEP
