"""Did two runs of one point launch the same kernels? ``same_kernels`` is given their trials and answers it.

A ratio of two runs that did different work says nothing about launch blocking, so it must be asked first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.sides import Side


@dataclass(frozen=True)
class KernelDifference:
    """A kernel that one run launches more often per step than the other."""

    name: str
    async_calls: float
    blocking_calls: float


@dataclass(frozen=True)
class KernelAgreement:
    """The kernels of the run without launch blocking beside those of the run with it.

    Attributes:
        equal: the same kernels, as often per step; None when no trace has a kernel.
        steps: typical steps that were compared, [async, blocking].
        kernels_per_step: kernel launches per typical step, [async, blocking].
        differences: kernels that are not launched as often, by name.
    """

    equal: bool | None
    steps: tuple[int, int]
    kernels_per_step: tuple[float, float]
    differences: tuple[KernelDifference, ...]


def same_kernels(asynchronous: Sequence[ComparedTrial], blocking: Sequence[ComparedTrial]) -> KernelAgreement:
    """Compare the kernels per typical step of trials without and with launch blocking.

    Kernels are compared by normalised name and by launches per typical step. A count over whole recordings
    would be the simpler rule, but it calls runs different that are not: when one window cuts off a step or
    records one step more, and when ids in a name (of a compiled graph, for one) change from run to run.
    Copies and fills are left out: whether a runtime copies with a kernel or with a copy engine is no choice
    of the program.

    Args:
        asynchronous, blocking: repeats of one variant and collector, at least one each.
    """
    counts, steps = (
        (_launches(asynchronous), _launches(blocking)),
        (Side(asynchronous).samples, Side(blocking).samples),
    )
    differences = tuple(
        KernelDifference(name, counts[0][name] / steps[0], counts[1][name] / steps[1])
        for name in sorted({*counts[0], *counts[1]})
        if counts[0][name] * steps[1] != counts[1][name] * steps[0]  # whole numbers: nothing is rounded
    )
    return KernelAgreement(
        equal=not differences if any(counts) else None,
        steps=steps,
        kernels_per_step=(counts[0].total() / steps[0], counts[1].total() / steps[1]),
        differences=differences,
    )


def _launches(trials: Sequence[ComparedTrial]) -> Counter[str]:
    """Kernel launches by normalised name over all typical samples."""
    found: Counter[str] = Counter()
    for trial in trials:
        for group in trial.kernel_groups:
            if group.is_kernel_work:
                found[group.name] += group.calls
    return found
