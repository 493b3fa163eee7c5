"""Claims about what is counted and not timed: launches per step, and bytes through the GPU's memory.

Clocks and neighbours on the machine do not move a count, so that one trial of each variant is enough, and no
interval is needed. Where the trials of a variant differ, the smallest and the largest value that they allow
decide: a claim holds where both lie inside of its limits, and is refuted where both lie outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from profrun.analysis.compare.expect.model import UNPROFILED, Answer, Asked, Told, decided, untold
from profrun.analysis.compare.expect.words import limits_text
from profrun.analysis.compare.metrics import per_step
from profrun.analysis.compare.sides import Side, Sides
from profrun.contract.units import bytes_text, ratio_text
from profrun.jobs.expectation import DramBytes, Limits, Ratio

_Number = Callable[[float], str]


@dataclass(frozen=True)
class _Amounts:
    """What the trials of a variant counted, or the ratio of that to another variant.

    Attributes:
        value: the mean over trials, or the ratio of the means. low, high: the smallest and the largest value
            of a trial, or of the ratio of two trials.
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, trials: Sequence[float]) -> _Amounts:
        """What the trials of one variant counted; at least one."""
        return cls(mean(trials), min(trials), max(trials))

    def over(self, base: _Amounts, factor: float = 1.0) -> _Amounts:
        """The ratio to what another variant counted, all of it above 0, times a factor."""
        return _Amounts(
            factor * self.value / base.value, factor * self.low / base.high, factor * self.high / base.low
        )

    def text(self, number: _Number, unit: str = "") -> str:
        """'120 launches', or '121 launches (120 to 122 by trial)', where ``unit`` is ' launches'."""
        low, high = number(self.low), number(self.high)
        return f"{number(self.value)}{unit}" + (f" ({low} to {high} by trial)" if low != high else "")

    def judged(self, limits: Limits, found: str, unit: str, number: _Number) -> Answer:
        """Does a claim with these limits hold?

        Args:
            found: this in words. unit: of the value.
        """
        passed = decided((self.low, self.high), limits)
        if passed is not None:
            return Answer(passed, found, self.value, unit=unit)
        by_trial = f"{number(self.low)} to {number(self.high)}"
        return Answer(
            None,
            found,
            self.value,
            unit=unit,
            why=f"the trials differ: {by_trial} reaches over the limits ({limits_text(limits, number)})",
            fix="find out why the trials of one variant differ",
        )


def ratio_of_counts(pair: Sides, wanted: Ratio) -> Answer:
    """Does the ratio of a count lie inside the limits? The count of a trial is that of its median step.

    Args:
        pair: the base and the variant that the claim is about, each with the amount of work that its count
            is divided by.
    """
    base, mine = pair
    counts = per_step((Side(base.trials), Side(mine.trials)), wanted.of)
    if counts is None:
        return untold(f"not every trial tells the {wanted.of}")
    under, over = (_Amounts.of([median(steps) for steps in trials]) for trials in counts)
    ratio = over.over(under, base.per / mine.per)
    found = f"{ratio.text(ratio_text, ' times')}, {over.text(_count)} against {under.text(_count)}"
    found += f" {wanted.of} {mine.denominator.rate}"
    if any(min(steps) != max(steps) for trials in counts for steps in trials):
        found += " (the median, because the steps differ)"
    found += f", each divided by its {wanted.per}" if wanted.per else ""
    return ratio.judged(wanted.limits, found, "ratio", ratio_text)


def _count(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def bytes_of(mine: Sequence[Told], other: Sequence[Told], phase: str | None, wanted: DramBytes) -> Asked:
    """Do the bytes through the GPU's memory, or their ratio to the other variant's, lie inside the limits?"""
    if all(told.vendor == "none" for told in (*mine, *other)):
        return untold("no GPU"), ()
    if phase is not None:
        return untold("hardware counters know no ranges, so that they cannot be of a phase"), ()
    groups = (mine,) if wanted.to is None else (mine, other)
    known = [[told for told in group if told.dram.value is not None] for group in groups]
    for group, telling in zip(groups, known, strict=True):
        if not telling:
            return _uncounted(group), ()
    asked = [told for telling in known for told in telling]
    labels = tuple(told.label for told in asked)
    rates = list(dict.fromkeys(told.dram_of.rate for told in asked))
    if len(rates) > 1:
        return untold(f"the bytes of some trials are {rates[0]}, those of others {rates[1]}"), labels
    amounts = [_Amounts.of([told.dram.value or 0.0 for told in telling]) for telling in known]
    if wanted.to is None:
        found = f"{amounts[0].text(bytes_text)} {rates[0]}"
        return amounts[0].judged(wanted.limits, found, "byte", bytes_text), labels
    if not amounts[1].low:
        return untold(f"{wanted.to} moves no bytes"), labels
    ratio = amounts[0].over(amounts[1])
    found = f"{ratio.text(ratio_text, ' times')}, "
    found += f"{amounts[0].text(bytes_text)} against {amounts[1].text(bytes_text)} {rates[0]}"
    return ratio.judged(wanted.limits, found, "ratio", ratio_text), labels


def _uncounted(group: Sequence[Told]) -> Answer:
    """Why no trial of a variant tells its bytes; those of a profiler that can count them say it best."""
    asked = [told.dram for told in group if told.tool not in (UNPROFILED, "torch")]
    asked = asked or [told.dram for told in group]
    return asked[-1] if asked else untold("no trial with hardware counters")
