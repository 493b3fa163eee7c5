"""Ratios beside that of the step time.

``metrics`` is given two sides and returns other statistics of step time, GPU and host time per step, and the
energy per step, of which each trial has one value.

'GPU work' is the sum of the GPU work of a step, 'GPU busy' the time in which some of it ran: they differ
where streams overlap. 'kernel time' is the sum of kernels alone, of steps that are no outliers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from profrun.analysis.compare.compared_trial import ComparedTrial, StepSample
from profrun.analysis.compare.model import Metric, MetricName, MetricVerdict
from profrun.analysis.compare.sides import Sides, order_of
from profrun.analysis.compare.stats import RatioVerdict, estimate, proven_below, proven_verdict
from profrun.analysis.step_time import Statistic, side_value

OF_ENERGY: Mapping[str, MetricVerdict] = {"slower": "more", "faster": "less"}
"""Verdict on a ratio of times -> the same on a ratio of energies."""
P99_STEPS = 100
"""Steps per trial from which a 99th percentile is worked out."""
Times = list[list[float]]
_STATISTICS: tuple[tuple[MetricName, Statistic], ...] = (
    ("step, median", "median"),
    ("step, mean", "mean"),
    ("step, p99", "p99"),
)
_OF_SAMPLE: Mapping[str, Callable[[StepSample], int]] = {
    "gpu_work": lambda sample: sample.gpu_ns,
    "gpu_busy": lambda sample: sample.busy_ns,
    "cpu_time": lambda sample: sample.host_ns,
    "launches": lambda sample: sample.launches,
}
_PER_STEP: tuple[tuple[MetricName, str], ...] = (
    ("GPU work", "gpu_work"),
    ("GPU busy", "gpu_busy"),
    ("host", "cpu_time"),
    ("kernel time", "kernel_time"),
    ("energy", "energy"),
)


def metrics(sides: Sides, statistic: Statistic, threshold: float) -> tuple[Metric, ...]:
    """All metrics but the step time by ``statistic``, which is the ratio of the comparison itself.

    Their verdicts are proven among all of them, as those of rows are (``stats.proven_below``).
    """
    order = order_of(sides)
    found = [
        (name, a, b, estimate(a, b, statistic=each, threshold=threshold, order=order), each)
        for name, a, b, each in _quantities(sides, statistic)
    ]
    limit = proven_below([result.p_value for *_, result, _ in found if result.p_value is not None])
    return tuple(
        Metric(
            name=name,
            unit="J" if name == "energy" else "ns",
            a=side_value(a, each),
            b=side_value(b, each),
            ratio=result.ratio,
            ci95=result.ci95,
            mde=result.mde,
            verdict=_verdict(name, proven_verdict(result, limit, threshold)),
        )
        for name, a, b, result, each in found
    )


def _verdict(name: MetricName, verdict: RatioVerdict) -> MetricVerdict:
    return OF_ENERGY.get(verdict, verdict) if name == "energy" else verdict


def energy_note(sides: Sides) -> str | None:
    """Why the energy of the sides is not compared; None where it is, and where no trial was sampled."""
    trials = [trial for side in sides for trial in side.trials]
    without = [trial for trial in trials if trial.energy_j is None]
    told = next((trial for trial in without if trial.energy_note is not None), None)
    if told is not None:
        return f"{told.conditions.label}: {told.energy_note}"
    if not without or len(without) == len(trials):
        return None
    return f"no GPU of {without[0].conditions.label} was sampled"


def _quantities(sides: Sides, statistic: Statistic) -> Iterator[tuple[MetricName, Times, Times, Statistic]]:
    """Name, times of both sides, and the statistic of the times of a trial."""
    a, b = sides
    fewest = min(len(steps) for side in sides for steps in side.times)
    for name, each in _STATISTICS if a.denominator.several else ():
        if each != statistic and (each != "p99" or fewest >= P99_STEPS):
            yield name, a.times, b.times, each
    for name, quantity in _PER_STEP:
        values = per_step(sides, quantity)
        if values is not None:
            yield name, *values, statistic


def per_step(sides: Sides, quantity: str) -> tuple[Times, Times] | None:
    """A quantity of each whole step of each trial of both sides; None where some step has none of it.

    Args:
        quantity: ``gpu_work`` (sum of GPU work), ``gpu_busy`` (time in which some ran), ``cpu_time`` (host
            range), ``launches`` (host calls that launched GPU work), or ``kernel_time`` (sum of kernels, of
            steps that are no outliers). Times are ns. ``energy`` (J) has one value per trial.
    """
    if quantity == "energy":
        left, right = ([_energy(trial, side.per) for trial in side.trials] for side in sides)
    elif quantity == "kernel_time":
        left, right = ([_kernel_times(trial, side.per) for trial in side.trials] for side in sides)
    else:
        of = _OF_SAMPLE[quantity]
        left, right = (
            [[of(one) / side.per for one in trial.samples if not one.edge] for trial in side.trials]
            for side in sides
        )
    return (left, right) if _measured(left, right) else None


def _measured(a: Times, b: Times) -> bool:
    return all(steps and min(steps) > 0 for steps in (*a, *b))


def _energy(trial: ComparedTrial, per: float) -> list[float]:
    """The energy per step, as the only value of the trial; empty where it was not measured."""
    return [] if trial.energy_j is None else [trial.energy_j / per]


def _kernel_times(trial: ComparedTrial, per: float) -> list[float]:
    """Time of the kernels of each typical step, without copies; empty where not every kernel's was kept."""
    names = {group.name for group in trial.kernel_groups if group.is_kernel_work}
    if not names <= trial.series.keys():
        return []
    return [sum(values) / per for values in zip(*(trial.series[name] for name in names), strict=True)]
