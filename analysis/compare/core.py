"""``compare``: comparability, then statistics, then what changed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Sequence

from profrun.analysis.compare.align import align
from profrun.analysis.compare.breakdown import (
    Sides,
    aligned_share,
    merged_atoms,
    parts,
    typical_step,
    unit_counts,
    view,
)
from profrun.analysis.compare.comparability import STOPS, reasons, stopped
from profrun.analysis.compare.model import VIEWS, By, Comparison, Metric, Reason, Row, SideInfo
from profrun.analysis.compare.rows import kernel_rows
from profrun.analysis.compare.stats import Estimate, Statistic, estimate
from profrun.analysis.compare.stats import verdict as verdict_of
from profrun.analysis.compare.trial import Facts, Trial
from profrun.analysis.compare.vendors import vendor_view
from profrun.analysis.compare.work_normalisation import divisors
from profrun.errors import UsageError

P99_STEPS = 100
"""Steps a trial from which a 99th percentile is told."""


def compare(
    a: Sequence[Trial],
    b: Sequence[Trial],
    *,
    by: By = "kernel",
    statistic: Statistic = "median",
    threshold: float = 0.01,
    per: str | None = None,
    allow: Collection[str] = (),
    seed: int = 0,
) -> Comparison:
    """Compare two sides; ``a`` is the base.

    Args:
        a, b: trials of each side, repeats of one thing.
        by: view of ``rows``.
        threshold: practical threshold as a fraction: smaller changes are 'same'.
        per: divide by an amount of work (``per.divisors``); different work is then no stop.
        allow: codes of ``comparable.STOPS`` to pass; the result marks them.

    Raises:
        UsageError: a side is empty, an unknown view or code, or ``per`` cannot be known.
    """
    _check(a, b, by, allow, threshold)
    found = reasons(a, b, allow=allow, per=per is not None)
    if stopped(found):
        return _incomparable(a, b, by, statistic, threshold, per, found)
    each = divisors(per, a, b)
    sides: Sides = (a, b)
    atoms = merged_atoms(a), merged_atoms(b)
    facts = _facts(a), _facts(b)
    units = unit_counts(sides)
    groups = align(*atoms, units=units, facts=facts, per=each)
    kernels = kernel_rows(groups, facts, sides, threshold=threshold, per=each)
    rows = kernels
    if by != "kernel" or not (atoms[0] or atoms[1]):
        rows = view(by, sides, atoms, threshold=threshold, per=each)
    categories = view("category", sides, atoms, threshold=threshold, per=each) if any(atoms) else ()
    result = estimate(*_times(sides, each), statistic=statistic, threshold=threshold, seed=seed)
    pieces = parts(sides, each)
    total = sum(piece.delta_ns for piece in pieces)
    explained = sum(row.delta_ns for row in rows) if by != "step" else total
    different = {*(d for t in a for d in t.conditions.devices)} != {
        *(d for t in b for d in t.conditions.devices)
    }
    shared = set(_outside(a)) & set(_outside(b)) - {"unknown"}
    infos = (
        _info(a, statistic, each[0], _share(rows, kernels, 0), shared),
        _info(b, statistic, each[1], _share(rows, kernels, 1), shared),
    )
    return Comparison(
        verdict=verdict_of(result, threshold), statistic=statistic, threshold=threshold, ratio=result.ratio,
        ci95=result.ci95, mde=result.mde, trials=result.trials, trials_needed=_needed(result),
        reasons=tuple(found), sides=infos, by=by, per=per,
        metrics=_metrics(sides, each, statistic, threshold, seed), total_delta_ns=total,
        unexplained_ns=total - explained, parts=pieces, rows=rows, kernels=kernels, categories=categories,
        vendors=vendor_view(sides, atoms, kernels, units, each) if different and atoms[0] else None,
    )  # fmt: skip


def _check(a: Sequence[Trial], b: Sequence[Trial], by: str, allow: Collection[str], threshold: float) -> None:
    if not a or not b:
        raise UsageError("a side has no trace", fix="give at least one trace on each side of `vs`")
    if by not in VIEWS:
        raise UsageError(f"no view {by!r}", fix=f"one of {', '.join(VIEWS)}")
    unknown = sorted(set(allow) - set(STOPS))
    if unknown:
        raise UsageError(f"nothing to allow is called {unknown[0]!r}", fix=f"one of {', '.join(STOPS)}")
    if not 0 < threshold < 1:
        raise UsageError(f"threshold {threshold:g} is no fraction between 0 and 1", fix="0.01 is 1 %")


def _facts(trials: Sequence[Trial]) -> dict[str, Facts]:
    found: dict[str, Facts] = {}
    for trial in trials:
        for name, fact in trial.facts.items():
            found.setdefault(name, fact)
    return found


def _times(sides: Sides, per: tuple[float, float]) -> tuple[list[list[float]], list[list[float]]]:
    a, b = (
        [[value / divisor for value in trial.times] for trial in side]
        for side, divisor in zip(sides, per, strict=True)
    )
    return a, b


def _needed(result: Estimate) -> int | None:
    """Trials a side that would settle it; None where the trials there are suffice for the threshold."""
    if result.trials_needed is None or min(result.trials) >= result.trials_needed:
        return None
    return result.trials_needed


def _share(rows: Sequence[Row], kernels: Sequence[Row], side: int) -> float | None:
    """Share of a side's GPU time in rows that have both sides, of the view that was asked for."""
    gpu = [row for row in rows if row.basis == "gpu"] or list(kernels)
    return aligned_share(gpu)[side]


def _outside(trials: Sequence[Trial]) -> dict[str, int]:
    found: dict[str, int] = {}
    for trial in trials:
        for category, time in trial.outside.items():
            found[category] = found.get(category, 0) + time
    return found


def _info(
    trials: Sequence[Trial],
    statistic: Statistic,
    per: float = 1.0,
    share: float | None = None,
    shared: Collection[str] = (),
) -> SideInfo:
    conditions = [trial.conditions for trial in trials]
    units = [unit for trial in trials for unit in trial.typical]
    whole = sum(one.total_gpu_ns for one in conditions)
    times = [trial.times for trial in trials if trial.times]
    peaks = [trial.memory_peak for trial in trials if trial.memory_peak is not None]
    out = sum(one.outside_ns for one in conditions)
    attributed = None
    if share is not None and whole:
        known = sum(time for category, time in _outside(trials).items() if category in shared)
        attributed = (share * (whole - out) + known) / whole
    several = any(one.ranks > 1 for one in conditions)

    def named(flag: str) -> tuple[str, ...]:
        return tuple(
            f"{trial.conditions.label}: step {unit.step}" + (f" of rank {unit.rank}" if several else "")
            for trial in trials
            for unit in trial.units
            if getattr(unit, flag) and unit.time_ns > 0
        )

    return SideInfo(
        labels=tuple(one.label for one in conditions), vendor=conditions[0].vendor,
        devices=conditions[0].devices, collector=conditions[0].collector, trials=len(trials),
        steps=sum(len(trial.times) for trial in trials),
        step_ns=side_value(times, statistic) / per if times else 0.0, typical_ns=typical_step(trials) / per,
        gpu_ns=sum(unit.gpu_ns for unit in units) / max(1, len(units)) / per,
        outside_share=out / whole if whole else 0.0,
        aligned_share=share, attributed_share=attributed, outliers=named("outlier"), edges=named("edge"),
        per=per, memory_peak=max(peaks, default=None), work=trials[0].work,
    )  # fmt: skip


def _metrics(
    sides: Sides, per: tuple[float, float], statistic: Statistic, threshold: float, seed: int
) -> tuple[Metric, ...]:
    """Step time by other statistics, and GPU and host time a step."""
    found = []
    times = _times(sides, per)
    wanted: list[tuple[str, Statistic]] = [("step, median", "median"), ("step, mean", "mean")]
    if min(len(trial) for side in times for trial in side) >= P99_STEPS:
        wanted.append(("step, p99", "p99"))
    for name, each in wanted:
        if each != statistic:
            found.append(_metric(name, times, each, threshold, seed))
    for name, column in (("GPU work", "gpu_ns"), ("host", "host_ns")):
        values = [
            [[getattr(unit, column) / divisor for unit in trial.units if not unit.edge] for trial in side]
            for side, divisor in zip(sides, per, strict=True)
        ]
        if all(trial and min(trial) > 0 for side in values for trial in side):
            found.append(_metric(name, (values[0], values[1]), statistic, threshold, seed))
    return tuple(found)


def _metric(
    name: str,
    values: tuple[list[list[float]], list[list[float]]],
    statistic: Statistic,
    threshold: float,
    seed: int,
) -> Metric:
    result = estimate(*values, statistic=statistic, threshold=threshold, seed=seed, resamples=2000)
    a, b = (side_value(side, statistic) for side in values)
    return Metric(name, "ns", a, b, result.ratio, result.ci95, result.mde, verdict_of(result, threshold))


def side_value(trials: Sequence[Sequence[float]], statistic: Statistic) -> float:
    """Geometric mean over trials of each trial's statistic: the ratio of two sides' is ``Estimate.ratio``."""
    return math.exp(statistics.fmean(math.log(_middle(trial, statistic)) for trial in trials))


def _middle(trial: Sequence[float], statistic: Statistic) -> float:
    if statistic == "mean":
        return statistics.fmean(trial)
    if statistic == "median":
        return statistics.median(trial)
    return sorted(trial)[max(0, -(-99 * len(trial) // 100) - 1)]


def _incomparable(
    a: Sequence[Trial],
    b: Sequence[Trial],
    by: str,
    statistic: Statistic,
    threshold: float,
    per: str | None,
    found: Sequence[Reason],
) -> Comparison:
    """No number: only what stands on each side, and why they may not be compared."""
    return Comparison(
        verdict="incomparable", statistic=statistic, threshold=threshold, ratio=None, ci95=None, mde=None,
        trials=(len(a), len(b)), trials_needed=None, reasons=tuple(found),
        sides=(_info(a, statistic), _info(b, statistic)), by=by, per=per,
    )  # fmt: skip
