"""What every table of what changed needs: new rows, their intervals and their status.

``new_row`` makes a row from the times and calls of both sides; ``with_interval`` adds the interval of its
ratio from repeats and the status that follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.model import Interval, Row, RowStatus
from profrun.analysis.compare.sides import Sides
from profrun.analysis.compare.stats import MIN_TRIALS, estimate

ROW_FLOOR = 0.03
"""With fewer than two trials per side, the relative change of a row up to which it counts as the same. It is
a stated floor, not a measured one."""
MATTERS = 0.001
"""Share of the GPU time per step of side a; a row that changes by less is the same, whatever its ratio."""
MOST_ESTIMATES = 60
"""Rows whose interval is worked out, those with most time."""


@dataclass(frozen=True)
class Limits:
    """What counts as a change of a row.

    Attributes:
        threshold: practical threshold as a fraction. matters_ns: ns per step up to which no change counts.
    """

    threshold: float
    matters_ns: float = 0.0


def new_row(name: str, ns: tuple[float, float], calls: tuple[float, float], status: RowStatus) -> Row:
    """A row from the times and calls per step of side a and b, with what follows from them."""
    (a_ns, b_ns), (a_calls, b_calls) = ns, calls
    ratio = b_ns / a_ns if a_ns and b_ns else None
    return Row(name, None, status, a_ns, b_ns, b_ns - a_ns, a_calls, b_calls, ratio)


def largest_first(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Rows by the size of their change, largest first."""
    return tuple(sorted(rows, key=lambda row: (-abs(row.delta_ns), -row.b_ns, row.name)))


def status_of(a_ns: float, b_ns: float, limits: Limits, ci95: Interval | None = None) -> RowStatus:
    """faster or slower when the change is above what counts as the same.

    With an interval, the interval must exclude 1 and the change must be above the threshold. Without one, the
    change must be above the floor.
    """
    if abs(b_ns - a_ns) <= limits.matters_ns:
        return "same"
    ratio = b_ns / a_ns if a_ns else 1.0
    limit = limits.threshold if ci95 is not None else max(limits.threshold, ROW_FLOOR)
    if 1 / (1 + limit) < ratio < 1 + limit or (ci95 is not None and ci95[0] <= 1 <= ci95[1]):
        return "same"
    return "slower" if ratio > 1 else "faster"


def with_interval(row: Row, sides: Sides, limits: Limits) -> Row:
    """A row with its interval, and its status by that, where the kernels are in this row alone."""
    ci95 = interval_of(row, sides) if row.a_ns and row.b_ns else None
    return (
        row if ci95 is None else replace(row, ci95=ci95, status=status_of(row.a_ns, row.b_ns, limits, ci95))
    )


def interval_of(row: Row, sides: Sides) -> Interval | None:
    """Interval of the ratio of the row's time per step, from the steps of each trial.

    None without repeats, or where the row holds only some calls of a kernel: the times per step are of all
    its calls.
    """
    if min(len(side.trials) for side in sides) < MIN_TRIALS:
        return None
    found = []
    for side, names, total in zip(sides, (row.a_names, row.b_names), (row.a_ns, row.b_ns), strict=True):
        trials = [_step_times(trial, names) for trial in side.trials]
        if any(not steps or min(steps) <= 0 for steps in trials):
            return None
        whole = sum(map(sum, trials)) / sum(map(len, trials)) / side.per
        if not total or abs(whole / total - 1) > 0.01:
            return None
        found.append([[value / side.per for value in steps] for steps in trials])
    return estimate(*found, statistic="mean", resamples=1000).ci95


def _step_times(trial: ComparedTrial, names: Sequence[str]) -> list[float]:
    """GPU ns of these kernels in each typical sample; empty where the time of one was not kept."""
    series = [trial.series[name] for name in names if name in trial.series]
    if len(series) < len(names):
        return []
    return [float(sum(values)) for values in zip(*series, strict=True)]
