"""Trials that ran in another state of the machine than most: ``alike`` is given both sides of a comparison.

Where the GPU is at its power cap in some trials only, the trials fall into two groups. The mean of all
describes neither group, and the difference between the groups is not the usual spread between trials. So only
trials in the most frequent state are compared, and the others are named.

Which trials are left out is decided by the causes that samples show (``ComparedTrial.state``), and only where
the trials of that state together take other times. The time of a single trial decides nothing: to leave
trials out because they are far from the others would make every interval too narrow.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.model import Reason
from profrun.analysis.compare.side_names import side_names
from profrun.analysis.compare.stats import MIN_TRIALS
from profrun.analysis.trace.phase_causes import STATES
from profrun.contract.units import change_text, counted

State = tuple[str, ...]
Trials = Sequence[ComparedTrial]
_FIX = "let the machine come to rest before each trial, lock the clocks, or compare `--phase all`"


@dataclass(frozen=True)
class Alike:
    """The trials of both sides that are compared, and what is said of the others."""

    a: Trials
    b: Trials
    reasons: tuple[Reason, ...] = ()


def alike(a: Trials, b: Trials, threshold: float) -> Alike:
    """The trials in the state of most, where at least two of each side are; else all of them.

    Args:
        threshold: practical threshold as a fraction: states whose times differ by less are not told apart.
    """
    trials = [one for one in (*a, *b) if not one.conditions.profiled and one.times]
    states = Counter(one.state for one in trials)
    if len(states) < 2 or len(trials) < len(a) + len(b):
        return Alike(a, b)
    most, count = states.most_common(1)[0]
    if any(other == count for state, other in states.items() if state != most):
        return Alike(a, b, _apart(a, b, threshold))
    shifts = {state: shift for state in states if (shift := _shift(state, most, (a, b))) is not None}
    others = {state for state, shift in shifts.items() if abs(shift) > math.log1p(threshold)}
    if not others:
        return Alike(a, b, _apart(a, b, threshold))
    kept = [[one for one in side if one.state not in others] for side in (a, b)]
    left_out = [one.conditions.label for one in (*a, *b) if one.state in others]
    told = ", ".join(f"{_words(state)}: {change_text(math.exp(shifts[state]))}" for state in sorted(others))
    what = f"{counted(len(left_out), 'trial')} ran in another state than most ({told})"
    if min(map(len, kept)) < MIN_TRIALS:
        text = f"{what}: {', '.join(left_out)}; too few are left without, so all are compared"
        return Alike(a, b, (Reason("other_state", "warning", text, "", _FIX),))
    text = f"{what} and {'is' if len(left_out) == 1 else 'are'} not counted: {', '.join(left_out)}"
    return Alike(kept[0], kept[1], (Reason("other_state", "warning", text, "", _FIX),))


def _apart(a: Trials, b: Trials, threshold: float) -> tuple[Reason, ...]:
    """Where all trials of a side are in one state and all of the other side in another one."""
    left, right = {one.state for one in a}, {one.state for one in b}
    if len(left) > 1 or len(right) > 1 or left == right:
        return ()
    if abs(_level(b) - _level(a)) <= math.log1p(threshold):
        return ()
    names = side_names(a, b)
    text = f"{names[0]} ran {_words(a[0].state)}, {names[1]} {_words(b[0].state)}"
    why = "the difference holds that of the states; it may be what the program did to the GPU, or not"
    return (Reason("states_differ", "warning", text, why),)


def _shift(state: State, most: State, sides: tuple[Trials, Trials]) -> float | None:
    """Mean log ratio of the trials in a state to those of their side in the state of most; None without."""
    if state == most:
        return None
    shifts: list[float] = []
    for side in sides:
        base = [one for one in side if one.state == most]
        if base:
            shifts += [_level([one]) - _level(base) for one in side if one.state == state]
    return float(np.mean(shifts)) if shifts else None


def _level(trials: Trials) -> float:
    return float(np.mean([math.log(float(np.median(one.times))) for one in trials]))


def _words(state: State) -> str:
    return f"with {' and '.join(STATES[one] for one in state)}" if state else "undisturbed"
