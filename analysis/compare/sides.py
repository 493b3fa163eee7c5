"""One side of a comparison: ``Side`` is given repeats of one thing as trials and returns what they sum up to.

All times are ns. What is derived from the trials is worked out at the first use and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from profrun.analysis.compare.compared_trial import (
    ComparedTrial,
    HostOp,
    KernelFacts,
    KernelGroup,
    StepSample,
)
from profrun.contract.denominator import Denominator


@dataclass(frozen=True)
class Side:
    """One side.

    Attributes:
        trials: repeats of one thing, at least one.
        per: the amount of work per step by which times are divided, 1 to divide by none.
    """

    trials: Sequence[ComparedTrial]
    per: float = 1.0

    @cached_property
    def typical(self) -> list[StepSample]:
        """Typical samples of all trials."""
        return [sample for trial in self.trials for sample in trial.typical]

    @property
    def samples(self) -> int:
        """Number of typical samples, at least 1: sums over typical samples are divided by it."""
        return max(1, len(self.typical))

    @cached_property
    def times(self) -> list[list[float]]:
        """Times of the whole steps of each trial, ns per amount of work."""
        return [[time / self.per for time in trial.times] for trial in self.trials]

    @property
    def began(self) -> list[int] | None:
        """When each trial began, unix time in ns; None where nothing tells it of one."""
        found = [trial.conditions.began_ns for trial in self.trials]
        return None if None in found else [one for one in found if one is not None]

    @property
    def denominator(self) -> Denominator:
        """What a sample of its first trial is; ``comparability`` refuses others beside it."""
        return self.trials[0].conditions.denominator

    @property
    def typical_step_ns(self) -> float:
        """Mean time of the typical samples, not divided by work; of several ranks the mean of their times."""
        return self.mean(lambda sample: sample.time_ns)

    def mean(self, of: Callable[[StepSample], int]) -> float:
        """Mean of a number over the typical samples, 0 without any."""
        return sum(of(sample) for sample in self.typical) / self.samples

    @cached_property
    def kernel_groups(self) -> list[KernelGroup]:
        """Kernel groups of all trials, those of the same name and call path added up."""
        found: dict[tuple[object, ...], KernelGroup] = {}
        for trial in self.trials:
            for group in trial.kernel_groups:
                key = (group.name, group.role, group.path, group.module, group.backward)
                old = found.get(key)
                found[key] = (
                    replace(group, calls=old.calls + group.calls, ns=old.ns + group.ns) if old else group
                )
        return list(found.values())

    @cached_property
    def host_ops(self) -> list[HostOp]:
        """Host operations of all trials, those of the same name and kind added up."""
        found: dict[tuple[str, str], HostOp] = {}
        for trial in self.trials:
            for row in trial.host_ops:
                old = found.get((row.name, row.kind))
                found[(row.name, row.kind)] = _added(old, row) if old else row
        return list(found.values())

    @cached_property
    def facts(self) -> dict[str, KernelFacts]:
        """What kernel names tell, by normalised name; of the first trial that has the kernel."""
        found: dict[str, KernelFacts] = {}
        for trial in self.trials:
            for name, fact in trial.facts.items():
                found.setdefault(name, fact)
        return found

    @cached_property
    def outside(self) -> dict[str, int]:
        """GPU ns by category of what no whole step launched."""
        found: dict[str, int] = {}
        for trial in self.trials:
            for category, time in trial.outside.items():
                found[category] = found.get(category, 0) + time
        return found


Sides = tuple[Side, Side]
"""Side a, which is the base, and side b."""


def order_of(sides: Sides) -> tuple[list[int], list[int]] | None:
    """When the trials of both sides began, unix time in ns; None where nothing tells it of one."""
    a, b = sides[0].began, sides[1].began
    return None if a is None or b is None else (a, b)


def _added(one: HostOp, two: HostOp) -> HostOp:
    return replace(
        two,
        calls=one.calls + two.calls,
        cpu_ns=one.cpu_ns + two.cpu_ns,
        self_cpu_ns=one.self_cpu_ns + two.self_cpu_ns,
        device_ns=one.device_ns + two.device_ns,
        self_device_ns=one.self_device_ns + two.self_device_ns,
        main_ns=one.main_ns + two.main_ns,
        launches=one.launches + two.launches,
    )
