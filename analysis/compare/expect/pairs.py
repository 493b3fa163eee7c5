"""Claims between variants: the same kernels, ratios with an interval, bytes through the GPU's memory.

Each is given what the traces of the variant and of the other one tell, and uses the estimators that
``profrun compare`` uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from profrun.analysis.compare.comparability import reasons, stopped
from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.expect.evidence import matches
from profrun.analysis.compare.expect.model import Answer, Told, untold, within
from profrun.analysis.compare.expect.words import limits_text
from profrun.analysis.compare.kernel_agreement import same_kernels
from profrun.analysis.compare.metrics import per_step
from profrun.analysis.compare.next_steps import FIRST_TRIALS
from profrun.analysis.compare.ratio import BLOCKING_DIFFERENCES, step_ratio
from profrun.analysis.compare.sides import Side, Sides
from profrun.analysis.compare.stats import MIN_TRIALS, estimate
from profrun.analysis.compare.work_normalisation import divisors
from profrun.analysis.kernel_names import CATEGORIES
from profrun.contract.units import bytes_text, interval_text, ratio_text
from profrun.errors import UsageError
from profrun.jobs.expectation import GPU_QUANTITIES, DramBytes, Limits, Ratio, SameKernels

UNPROFILED = "none"
Group = Sequence[Told]
Asked = tuple[Answer, tuple[str, ...]]
"""An answer, and the labels of the trials that were asked."""


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
    """Does the 95 % interval of the ratio lie inside the limits, or outside of them?"""
    if wanted.of in GPU_QUANTITIES and all(told.vendor == "none" for told in (*mine, *other)):
        return untold("no GPU"), ()
    timed = wanted.of == "step_time" and phase is None
    sides = _sides(mine, other, phase, lambda told: timed or told.tool != UNPROFILED)
    if sides is None:
        return _no_sides(mine, other, phase, "steps"), ()
    b, a = sides
    labels = tuple(trial.conditions.label for trial in (*b, *a))
    against = reasons(a, b, allow=BLOCKING_DIFFERENCES, per=wanted.per is not None)
    if stopped(against):
        why = next(str(one) for one in against if one.stops)
        return untold(f"the variants cannot be compared: {why}"), labels
    try:
        amounts = divisors(wanted.per, a, b)
    except UsageError as error:
        return untold(str(error)), labels
    pair = Side(a, amounts[0]), Side(b, amounts[1])
    measured = _measured(pair, wanted)
    if measured is None:
        return untold(f"not every trial tells the {wanted.of}"), labels
    return _by_interval(*measured, wanted.limits, min(len(a), len(b))), labels


def _measured(pair: Sides, wanted: Ratio) -> tuple[float, tuple[float, float] | None] | None:
    """(ratio, its 95 % interval), None where some trial does not tell the quantity."""
    if wanted.of == "step_time":
        found = step_ratio(pair, ())
        return None if found.ratio is None else (found.ratio, found.ci95)
    times = per_step(pair, wanted.of)
    if times is None:
        return None
    result = estimate(*times)
    return result.ratio, result.ci95


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
    inside = [within(end, limits) for end in ci95]
    low, high = limits
    outside = (high is not None and ci95[0] > high) or (low is not None and ci95[1] < low)
    if all(inside) or outside:
        found += f" (95 % interval {interval_text(ci95)})"
        return Answer(not outside, found, ratio, ci95, "ratio")
    why = f"the 95 % interval {interval_text(ci95)} reaches over the limits ({limits_text(limits)})"
    return Answer(None, found, ratio, ci95, "ratio", why, "run the job with more repeats")


def bytes_of(mine: Group, other: Group, phase: str | None, wanted: DramBytes) -> Asked:
    """Do the bytes through the GPU's memory, or their ratio to the other variant's, lie inside the limits?"""
    if all(told.vendor == "none" for told in (*mine, *other)):
        return untold("no GPU"), ()
    if phase is not None:
        return untold("hardware counters know no ranges, so that they cannot be of a phase"), ()
    groups = (mine,) if wanted.to is None else (mine, other)
    values, labels = [], []
    for group in groups:
        known = [told for told in group if told.dram.value is not None]
        if not known:
            asked = [told.dram for told in group if told.tool not in (UNPROFILED, "torch")] or [
                told.dram for told in group
            ]
            return (asked[-1] if asked else untold("no trial with hardware counters")), ()
        values.append(sum(told.dram.value or 0.0 for told in known) / len(known))
        labels += [told.label for told in known]
    if wanted.to is None:
        text = f"{bytes_text(values[0])} per step"
        return Answer(within(values[0], wanted.limits), text, values[0], unit="byte"), tuple(labels)
    if not values[1]:
        return untold(f"{wanted.to} moves no bytes"), tuple(labels)
    ratio = values[0] / values[1]
    text = f"{ratio_text(ratio)} times, {bytes_text(values[0])} against {bytes_text(values[1])} per step"
    return Answer(within(ratio, wanted.limits), text, ratio, unit="ratio"), tuple(labels)


def _sides(
    mine: Group, other: Group, phase: str | None, fits: Callable[[Told], bool]
) -> tuple[list[ComparedTrial], list[ComparedTrial]] | None:
    """Trials of both variants by one collector: the first that both have.

    Trials without a profiler come first, and kernels that were replayed last; then without launch blocking.
    Both sides block launches or neither does, unless the other one has no such trials at all.
    """
    usable, base = (
        [told for told in group if phase in told.trials and fits(told)] for group in (mine, other)
    )
    points = {(told.collector, told.blocking): told for told in reversed(usable)}
    order = sorted(
        points.items(),
        key=lambda item: (item[1].trials[phase].conditions.replayed, item[1].tool != UNPROFILED, item[0][1]),
    )
    twins = {told.blocking for told in other}
    for (collector, blocking), _ in order:
        wanted = blocking if blocking in twins else not blocking
        a = [told.trials[phase] for told in base if (told.collector, told.blocking) == (collector, wanted)]
        b = [
            told.trials[phase] for told in usable if (told.collector, told.blocking) == (collector, blocking)
        ]
        if a:
            return b, a
    return None


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
