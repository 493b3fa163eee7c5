"""What can be said or done where the step times of two sides prove nothing.

``next_steps`` is given the ratio of the step times, both sides and the other ratios, and returns findings:
what can be judged all the same, what makes the trials differ, and how many trials would be enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from profrun.analysis.compare.compared_trial import ComparedTrial, StepSample
from profrun.analysis.compare.model import Metric, MetricName, StepRatio
from profrun.analysis.compare.side_names import side_names
from profrun.analysis.compare.sides import Side, Sides
from profrun.analysis.compare.stats import MIN_TRIALS
from profrun.contract.finding import Finding
from profrun.contract.units import change_interval_text, change_text, factor_text, time_text

FIRST_TRIALS = 3
"""Trials per side to begin with: two are the least that has an interval, and theirs is very wide."""
EVEN = 1.05
"""Up to this ratio of the slowest trial of a side to its fastest one the trials are even."""
OUTLYING = 3.0
"""A trial is outlying when its distance to the others is so many times the distance between these."""
GPU_EVEN = 4.0
"""The host varies when host time differs so many times more between trials than GPU time does."""
CLOCKS_EVEN = 1.05
"""Up to this ratio of the highest SM clock of a side to its lowest one the clocks are even."""
_OF_GPU: tuple[MetricName, ...] = ("GPU busy", "GPU work", "kernel time")
"""What can be judged of a step without its host, that which tells most first."""
QUIETER = (
    "let each trial make more steps in its steady phase, keep the machine free of other work, or lock the "
    "clocks; `profrun summary` shows the phases of a run"
)
ADVICE = "find out what else ran on the machine, and record more trials"


def next_steps(
    ratio: StepRatio, sides: Sides, metrics: Sequence[Metric] = (), *, per: str | None = None
) -> tuple[Finding, ...]:
    """What can be said or done, most useful first; nothing where the step times themselves prove something.

    Args:
        metrics: ratios of other quantities, by the same estimator.
        per: the work by which all times of the sides are divided, None for none.
    """
    if ratio.verdict != "inconclusive":
        return ()
    if min(ratio.trials) < MIN_TRIALS:
        text = f"record at least {FIRST_TRIALS} trials per side (`repeats: {FIRST_TRIALS}` in the job)"
        return (Finding("one_trial", "info", f"{text} to see how much trials of one program differ"),)
    names = side_names(sides[0].trials, sides[1].trials)
    found = (
        *_judged(metrics, names, sides[0].denominator.per_work(per)),
        _enough(ratio),
        _cause(sides, names, per),
    )
    return tuple(one for one in found if one is not None)


def _judged(metrics: Sequence[Metric], names: tuple[str, str], per: str) -> list[Finding]:
    """The GPU's share of the step, where that is proven to be slower, faster or the same."""
    known = {metric.name: metric for metric in metrics if metric.verdict != "inconclusive"}
    metric = next((known[name] for name in _OF_GPU if name in known), None)
    if metric is None:
        return []
    subject = "the GPU's work alone can be judged"
    if metric.name == "kernel time":
        subject = "the kernels alone, without copies, can be judged"
    a, b = names
    times = f"{a} {time_text(metric.a)} -> {b} {time_text(metric.b)} {per}"
    text = f"{subject}: {times}: {change_text(metric.ratio)} [{change_interval_text(metric.ci95)}]"
    return [Finding("gpu_can_be_judged", "info", text)]


def _enough(ratio: StepRatio) -> Finding | None:
    """How many trials would prove a change as large as the one that was seen, or that none will."""
    needed = ratio.trials_for_this
    if ratio.ratio is None or ratio.mde is None:
        return None
    if needed is None:
        if ratio.ratio == 1 or ratio.mde <= math.expm1(abs(math.log(ratio.ratio))):
            return None
        text = (
            f"more trials alone will not prove a change as small as the one seen ({change_text(ratio.ratio)})"
        )
        return Finding("more_trials_no_help", "info", text, fix=QUIETER)
    text = f"about {needed} trials per side would be enough to prove a change as large as the one seen"
    return Finding("more_trials", "info", f"{text} ({change_text(ratio.ratio)})")


def _cause(sides: Sides, names: tuple[str, str], work: str | None) -> Finding | None:
    """What makes the trials of the more uneven side differ; None where they are even."""
    uneven = max(zip(names, sides, strict=True), key=lambda pair: _spread(_medians(pair[1].times)))
    name, side = uneven
    times = _medians(side.times)
    if _spread(times) <= EVEN:
        return None
    return (
        _outlying(name, side, times, work)
        or _clocks(name, side)
        or _host(name, side, work)
        or Finding(
            "trials_vary",
            "info",
            f"the {side.denominator.time} of {name} differs {_range(times, work)}",
            fix=ADVICE,
        )
    )


def _outlying(name: str, side: Side, times: Sequence[float], work: str | None) -> Finding | None:
    """One trial that is far from all others, which are near each other."""
    if len(times) < 3:
        return None
    order = np.argsort(times)
    for odd, rest in ((order[-1], order[:-1]), (order[0], order[1:])):
        others = [times[place] for place in rest]
        distance = min(abs(float(np.log(times[odd] / other))) for other in others)
        if distance > OUTLYING * float(np.log(_spread(others))) and distance > float(np.log(EVEN)):
            label = side.trials[int(odd)].conditions.label
            several = side.denominator.several or work
            per = f" {side.denominator.per_work(work)}" if several else ""
            rest_text = f"the others {time_text(min(others))} to {time_text(max(others))}"
            text = f"trial {label} of {name} takes {time_text(times[odd])}{per}, {rest_text}"
            return Finding("outlying_trial", "info", text, fix=ADVICE)
    return None


def _clocks(name: str, side: Side) -> Finding | None:
    clocks = [one.conditions.sm_mhz for one in side.trials if one.conditions.sm_mhz]
    if len(clocks) < len(side.trials) or _spread(clocks) <= CLOCKS_EVEN:
        return None
    text = f"SM clocks after the trials of {name} range from {min(clocks):.0f} to {max(clocks):.0f} MHz"
    return Finding(
        "clocks_vary", "info", text, fix="let the GPU cool down between trials, or lock its clocks"
    )


def _host(name: str, side: Side, work: str | None) -> Finding | None:
    """Host time that differs much more between trials than GPU time does."""
    host = [_median(trial, lambda sample: sample.host_ns) / side.per for trial in side.trials]
    busy = [_median(trial, lambda sample: sample.busy_ns) / side.per for trial in side.trials]
    if min(host) <= 0 or min(busy) <= 0 or _spread(host) <= EVEN:
        return None
    if float(np.log(_spread(host))) < GPU_EVEN * float(np.log(_spread(busy))):
        return None
    text = (
        f"the host time of {name} differs {_range(host, work)}, its GPU busy time only {_range(busy, work)}"
    )
    return Finding("host_varies", "info", text, fix=ADVICE)


def _range(times: Sequence[float], work: str | None) -> str:
    """'1.80 times between trials (338 us to 602 us)'; times that are divided by work say 'per token'."""
    ends = f"{time_text(min(times))} to {time_text(max(times))}{f' per {work}' if work else ''}"
    return f"{factor_text(_spread(times))} times between trials ({ends})"


def _spread(values: Sequence[float]) -> float:
    return max(values) / min(values)


def _medians(trials: Sequence[Sequence[float]]) -> list[float]:
    return [float(np.median(steps)) for steps in trials]


def _median(trial: ComparedTrial, of: Callable[[StepSample], int]) -> float:
    return float(np.median([of(sample) for sample in trial.samples if not sample.edge] or [0]))
