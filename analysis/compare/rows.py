"""What every table of what changed needs: new rows, their intervals and their status.

``new_row`` makes a row from the times and calls of both sides. ``judged`` is given all rows of a table and
returns them with their intervals and with the status that the intervals prove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.model import Row, RowStatus
from profrun.analysis.compare.sides import Sides
from profrun.analysis.compare.stats import MIN_TRIALS, Estimate, estimate, proven_below

MATTERS = 0.001
"""Share of the GPU time per step of side a; a row that changes by less is the same, whatever its ratio."""
MOST_ESTIMATES = 60
"""Rows whose interval is worked out, those with most time."""
UNDECIDED: RowStatus = "unclear"
"""The status of a row that both sides have, as often, until ``judged`` gives it another."""
EstimateOf = Callable[[Row], Estimate | None]
"""The ratio of a row with its interval; None where it cannot be known."""


@dataclass(frozen=True)
class Limits:
    """What counts as a change of a row.

    Attributes:
        threshold: practical threshold as a fraction. matters_ns: ns per step up to which no change counts.
    """

    threshold: float
    matters_ns: float = 0.0


def new_row(name: str, ns: tuple[float, float], calls: tuple[float, float]) -> Row:
    """A row from the times and calls per step of side a and b, with what follows from them."""
    (a_ns, b_ns), (a_calls, b_calls) = ns, calls
    status: RowStatus = UNDECIDED if a_ns and b_ns else "removed" if a_ns else "added"
    ratio = b_ns / a_ns if a_ns and b_ns else None
    return Row(name, None, status, a_ns, b_ns, b_ns - a_ns, a_calls, b_calls, ratio)


def largest_first(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Rows by the size of their change, largest first."""
    return tuple(sorted(rows, key=lambda row: (-abs(row.delta_ns), -row.b_ns, row.name)))


def judged(rows: Sequence[Row], estimate_of: EstimateOf, limits: Limits) -> list[Row]:
    """The rows of one table with their intervals; undecided ones with the status that is proven, if any.

    A row is faster or slower when its estimate proves it among all rows of the table
    (``stats.proven_below``) and the change is above the threshold. It is the same when its whole interval
    lies within the threshold, or when the change does not matter for the step. Else its time is unclear.
    """
    longest = sorted(range(len(rows)), key=lambda place: -max(rows[place].a_ns, rows[place].b_ns))
    found = {place: estimate_of(rows[place]) for place in longest[:MOST_ESTIMATES]}
    undecided = [one for place, one in found.items() if rows[place].status == UNDECIDED]
    limit = proven_below([one.p_value for one in undecided if one is not None and one.p_value is not None])
    return [_judged(row, found.get(place), limit, limits) for place, row in enumerate(rows)]


def _judged(row: Row, found: Estimate | None, limit: float, limits: Limits) -> Row:
    if found is None:
        return row
    status = _status(row, found, limit, limits) if row.status == UNDECIDED else row.status
    return replace(row, ci95=found.ci95, status=status)


def _status(row: Row, found: Estimate, limit: float, limits: Limits) -> RowStatus:
    if row.ratio is None or found.ci95 is None or found.p_value is None:
        return UNDECIDED
    if abs(row.delta_ns) <= limits.matters_ns:
        return "same"
    low, high = 1 / (1 + limits.threshold), 1 + limits.threshold
    if found.p_value <= limit and not low < row.ratio < high and (row.ratio > 1) == (found.ratio > 1):
        return "slower" if row.ratio > 1 else "faster"
    return "same" if found.ci95[0] > low and found.ci95[1] < high else UNDECIDED


def estimate_of(row: Row, sides: Sides) -> Estimate | None:
    """The ratio of the row's time per step, from the steps of each trial.

    None without repeats, or where the row holds only some calls of a kernel: the times per step are of all
    its calls.
    """
    if not row.a_ns or not row.b_ns or min(len(side.trials) for side in sides) < MIN_TRIALS:
        return None
    found = []
    for side, names, total in zip(sides, (row.a_names, row.b_names), (row.a_ns, row.b_ns), strict=True):
        trials = [_step_times(trial, names) for trial in side.trials]
        if any(not steps or min(steps) <= 0 for steps in trials):
            return None
        whole = sum(map(sum, trials)) / sum(map(len, trials)) / side.per
        if abs(whole / total - 1) > 0.01:
            return None
        found.append([[value / side.per for value in steps] for steps in trials])
    return estimate(*found, statistic="mean")


def estimate_of_means(a: Sequence[float], b: Sequence[float]) -> Estimate | None:
    """The ratio of two sides of which one number per trial is known; None without repeats or with a 0."""
    if min(len(a), len(b)) < MIN_TRIALS or min(*a, *b) <= 0:
        return None
    return estimate([[value] for value in a], [[value] for value in b], statistic="mean")


def _step_times(trial: ComparedTrial, names: Sequence[str]) -> list[float]:
    """GPU ns of these kernels in each typical sample; empty where the time of one was not kept."""
    series = [trial.series[name] for name in names if name in trial.series]
    if len(series) < len(names):
        return []
    return [float(sum(values)) for values in zip(*series, strict=True)]
