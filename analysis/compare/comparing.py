"""``compare``: are two sides comparable, how sure is their difference, and what changed.

It is given trials of each side, as ``reading.read_trial`` makes them, and returns a ``Comparison``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import get_args

from profrun.analysis.compare.alike import alike
from profrun.analysis.compare.breakdown import breakdown
from profrun.analysis.compare.comparability import ALLOWABLE, reasons, stopped, told_too
from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.kernel_rows import kernel_rows
from profrun.analysis.compare.metrics import energy_note, metrics
from profrun.analysis.compare.model import BREAKDOWNS, By, Comparison, Reason, Row
from profrun.analysis.compare.module_changes import module_changes
from profrun.analysis.compare.next_steps import next_steps
from profrun.analysis.compare.place_rows import have_places, place_rows
from profrun.analysis.compare.ratio import THRESHOLD, step_ratio
from profrun.analysis.compare.side_info import side_infos
from profrun.analysis.compare.sides import Side, Sides
from profrun.analysis.compare.step_parts import step_parts
from profrun.analysis.compare.vendors import vendor_view
from profrun.analysis.compare.work_normalisation import divisors
from profrun.analysis.step_time import Statistic
from profrun.errors import UsageError


def compare(
    a: Sequence[ComparedTrial],
    b: Sequence[ComparedTrial],
    *,
    by: By = "kernel",
    statistic: Statistic = "median",
    threshold: float = THRESHOLD,
    per: str | None = None,
    allow: Collection[str] = (),
    other_work: Reason | None = None,
) -> Comparison:
    """Compare two sides; ``a`` is the base.

    Args:
        a, b: trials of each side, repeats of one thing.
        by: what ``rows`` are about.
        statistic: of the step times of each trial.
        threshold: practical threshold as a fraction: smaller changes are 'same'.
        per: divide times by an amount of work (``work_normalisation.divisors``); different work does then not
            stop the comparison.
        allow: codes of ``comparability.ALLOWABLE`` that shall not stop it; the result marks them.
        other_work: see ``comparability.reasons``.

    Raises:
        UsageError: a side is empty, ``by``, ``statistic`` or a code is unknown, or ``per`` cannot be known.
    """
    _check(a, b, by, statistic, allow, threshold)
    same = alike(a, b, threshold)
    found = reasons(same.a, same.b, allow=allow, per=per is not None, other_work=other_work)
    found = told_too(found, same.reasons)
    a, b = same.a, same.b
    amounts = (1.0, 1.0) if stopped(found) else divisors(per, a, b)
    sides = Side(a, amounts[0]), Side(b, amounts[1])
    ratio = step_ratio(sides, found, statistic=statistic, threshold=threshold)
    infos = side_infos(sides, statistic)
    result = Comparison(**vars(ratio), statistic=statistic, threshold=threshold, sides=infos, by=by, per=per)
    return result if ratio.ratio is None else _with_changes(result, sides)


def _with_changes(result: Comparison, sides: Sides) -> Comparison:
    """The comparison with what changed inside the step."""
    a, b = sides
    by, threshold = result.by, result.threshold
    on_gpu = bool(a.kernel_groups or b.kernel_groups)
    kernels = kernel_rows(sides, threshold)
    rows = kernels if by == "kernel" and on_gpu else _rows(by, sides, threshold, on_gpu=on_gpu)
    parts = step_parts(sides)
    total = sum(part.delta_ns for part in parts)
    explained = sum(row.delta_ns for row in rows) if by != "step" else total
    others = metrics(sides, result.statistic, threshold)
    return replace(
        result,
        sides=side_infos(sides, result.statistic, rows, kernels),
        metrics=others,
        energy_note=energy_note(sides),
        next_steps=next_steps(result, sides, others, per=result.per),
        total_delta_ns=total,
        unexplained_ns=total - explained,
        parts=parts,
        rows=rows,
        kernels=kernels,
        categories=breakdown("category", sides, threshold) if on_gpu else (),
        modules=module_changes(sides),
        vendors=vendor_view(sides, kernels) if a.kernel_groups and _devices(a) != _devices(b) else None,
    )


def _rows(by: By, sides: Sides, threshold: float, *, on_gpu: bool) -> tuple[Row, ...]:
    if by == "line" or (by == "module" and on_gpu and have_places(sides)):
        return place_rows(sides, by, threshold)
    return breakdown(by, sides, threshold)


def _devices(side: Side) -> set[str]:
    return {device for trial in side.trials for device in trial.conditions.devices}


def _check(
    a: Sequence[ComparedTrial],
    b: Sequence[ComparedTrial],
    by: By,
    statistic: Statistic,
    allow: Collection[str],
    threshold: float,
) -> None:
    if not a or not b:
        raise UsageError("a side has no trace", fix="give at least one trace on each side of `vs`")
    if by not in BREAKDOWNS:
        raise UsageError(f"no breakdown by {by!r}", fix=f"use one of {', '.join(BREAKDOWNS)}")
    if statistic not in get_args(Statistic):
        raise UsageError(f"no statistic {statistic!r}", fix=f"use one of {', '.join(get_args(Statistic))}")
    unknown = sorted(set(allow) - set(ALLOWABLE))
    if unknown:
        fix = f"use one of {', '.join(ALLOWABLE)}"
        raise UsageError(f"nothing to allow is called {unknown[0]!r}", fix=fix)
    if not 0 < threshold < 1:
        raise UsageError(f"threshold {threshold:g} is no fraction between 0 and 1", fix="0.01 is 1 %")
