"""Claims between variants: the same kernels, and ratios, of which those of times need an interval.

Each is given what the traces of the variant and of the other one tell, and uses the estimators that
``profrun compare`` uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from profrun.analysis.compare.comparability import reasons, stopped
from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.expect.amounts import ratio_of_counts
from profrun.analysis.compare.expect.evidence import matches
from profrun.analysis.compare.expect.model import UNPROFILED, Answer, Asked, Told, decided, untold
from profrun.analysis.compare.expect.words import limits_text
from profrun.analysis.compare.kernel_agreement import same_kernels
from profrun.analysis.compare.metrics import energy_note, per_step
from profrun.analysis.compare.model import StepRatio
from profrun.analysis.compare.next_steps import FIRST_TRIALS
from profrun.analysis.compare.ratio import BLOCKING_DIFFERENCES, TIMING_DIFFERENCES, step_ratio
from profrun.analysis.compare.sides import Side, Sides
from profrun.analysis.compare.stats import MIN_TRIALS, Estimate, estimate
from profrun.analysis.compare.work_normalisation import divisors
from profrun.analysis.kernel_names import CATEGORIES
from profrun.contract.units import interval_text, ratio_text
from profrun.errors import UsageError
from profrun.jobs.expectation import COUNT_QUANTITIES, GPU_QUANTITIES, Limits, Ratio, SameKernels

Group = Sequence[Told]
WHOLE_STEPS = ("step_time", "energy")
"""Quantities that trials without a profiler tell."""


def same_kernels_as(mine: Group, other: Group, phase: str | None, wanted: SameKernels) -> Asked:
    """Are the kernels those of the other variant, by name and by launches per step?"""
    sides = _sides(mine, other, phase, lambda told: _has_kernels(told, phase))
    if sides is None:
        return _no_sides(mine, other, phase, "kernels"), ()
    b, a = ([_only(trial, wanted.only) for trial in side] for side in sides)
    found = same_kernels(a, b)
    rate = b[0].conditions.denominator.rate
    labels = tuple(trial.conditions.label for trial in (*b, *a))
    if found.equal is None:
        return untold(f"neither variant launches {' or '.join(wanted.only or ['a kernel'])}"), labels
    if found.equal:
        count = found.kernels_per_step[1]
        text = f"the same {count:g} kernel{'s' * (count != 1)} {rate}"
        return Answer(True, text, found.kernels_per_step[1], unit="calls"), labels
    first = found.differences[0]
    more = f" and {len(found.differences) - 1} more" if len(found.differences) > 1 else ""
    text = (
        f"{_short(first.name, (*b, *a))} {first.blocking_calls:g} times {rate}, "
        f"{first.async_calls:g} times in {wanted.as_}{more}"
    )
    return Answer(False, text), labels


def ratio_to(mine: Group, other: Group, phase: str | None, wanted: Ratio) -> Asked:
    """Does the ratio lie inside the limits, or outside of them? That of times by its 95 % interval."""
    if wanted.of in GPU_QUANTITIES and all(told.vendor == "none" for told in (*mine, *other)):
        return untold("no GPU"), ()
    timed = wanted.of in WHOLE_STEPS and phase is None
    if wanted.of == "energy" and phase is not None:
        return untold("the energy of a part of a step is not known"), ()
    sides = _sides(mine, other, phase, lambda told: timed or told.tool != UNPROFILED)
    if sides is None:
        return _no_sides(mine, other, phase, "steps"), ()
    b, a = sides
    labels = tuple(trial.conditions.label for trial in (*b, *a))
    is_count = wanted.of in COUNT_QUANTITIES
    allowed = (*BLOCKING_DIFFERENCES, *(TIMING_DIFFERENCES if is_count else ()))
    against = reasons(a, b, allow=allowed, per=wanted.per is not None)
    if stopped(against):
        why = next(str(one) for one in against if one.stops)
        return untold(f"the variants cannot be compared: {why}"), labels
    try:
        amounts = divisors(wanted.per, a, b)
    except UsageError as error:
        return untold(str(error)), labels
    pair = Side(a, amounts[0]), Side(b, amounts[1])
    return (ratio_of_counts(pair, wanted) if is_count else _ratio_of_times(pair, wanted)), labels


def _ratio_of_times(pair: Sides, wanted: Ratio) -> Answer:
    """Does the 95 % interval of the ratio lie inside the limits, or outside of them?"""
    measured: StepRatio | Estimate | None
    if wanted.of == "step_time":
        measured = step_ratio(pair, ())
    else:
        times = per_step(pair, wanted.of)
        measured = estimate(*times) if times is not None else None
    if measured is None and wanted.of == "energy":
        return untold(energy_note(pair) or "no GPU was sampled")
    if measured is None or measured.ratio is None:
        return untold(f"not every trial tells the {wanted.of}")
    trials = min(len(side.trials) for side in pair)
    return _by_interval(measured.ratio, measured.ci95, wanted.limits, trials)


def _by_interval(ratio: float, ci95: tuple[float, float] | None, limits: Limits, trials: int) -> Answer:
    """Held or refuted only where the whole interval lies inside or outside of the limits."""
    found = f"{ratio_text(ratio)} times"
    if ci95 is None:
        return Answer(
            None,
            found,
            ratio,
            unit="ratio",
            why=f"{trials} trial per variant has no 95 % interval (at least {MIN_TRIALS} have)",
            fix=f"run the job with `--repeats {FIRST_TRIALS}`",
        )
    passed = decided(ci95, limits)
    if passed is not None:
        found += f" (95 % interval {interval_text(ci95)})"
        return Answer(passed, found, ratio, ci95, "ratio")
    why = f"the 95 % interval {interval_text(ci95)} reaches over the limits ({limits_text(limits)})"
    return Answer(None, found, ratio, ci95, "ratio", why, "run the job with more repeats")


def _sides(
    mine: Group, other: Group, phase: str | None, fits: Callable[[Told], bool]
) -> tuple[list[ComparedTrial], list[ComparedTrial]] | None:
    """Trials of both variants by one collector.

    Trials without a profiler come first, and kernels that were replayed last; then without launch blocking;
    then those of the collector that has the most trials on the side with fewer of them, because repeats make
    intervals. Both sides block launches or neither does, unless the other one has no such trials at all.
    """
    usable, base = (
        [told for told in group if phase in told.trials and fits(told)] for group in (mine, other)
    )
    points = {(told.collector, told.blocking): told for told in reversed(usable)}
    twins = {told.blocking for told in other}
    found = []
    for (collector, blocking), told in points.items():
        wanted = blocking if blocking in twins else not blocking
        b, a = (
            [one.trials[phase] for one in group if (one.collector, one.blocking) == point]
            for group, point in ((usable, (collector, blocking)), (base, (collector, wanted)))
        )
        rank = told.trials[phase].conditions.replayed, told.tool != UNPROFILED, blocking, -min(len(a), len(b))
        if a:
            found.append((rank, b, a))
    best = min(found, key=lambda item: item[0], default=None)
    return best and best[1:]


def _no_sides(mine: Group, other: Group, phase: str | None, what: str) -> Answer:
    """Why there is nothing to compare."""
    if what != "steps" and all(told.vendor == "none" for told in (*mine, *other)):
        return untold("no GPU")
    for group in (mine, other):
        if phase is not None and not any(phase in told.trials for told in group):
            return untold(f"no range {phase} in the recorded steps of {group[0].variant}")
    return untold(f"no collector recorded {what} of both variants")


def _has_kernels(told: Told, phase: str | None) -> bool:
    trial = told.trials.get(phase)
    return trial is not None and any(group.is_kernel_work for group in trial.kernel_groups)


def _only(trial: ComparedTrial, names: Sequence[str] | None) -> ComparedTrial:
    """The trial with only the kernels of these categories, or whose names match these globs."""
    if names is None:
        return trial
    kept = [
        group
        for group in trial.kernel_groups
        if any(group.category == name if name in CATEGORIES else matches(group.name, name) for name in names)
    ]
    return replace(trial, kernel_groups=tuple(kept))


def _short(name: str, trials: Sequence[ComparedTrial]) -> str:
    return next((trial.facts[name].short for trial in trials if name in trial.facts), name)
