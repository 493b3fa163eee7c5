"""What changed between one run and the next, in a series of runs of the same job: ``changes``.

Each run is compared with the one before it by the estimator of every comparison (``stats.estimate``). A
series has many comparisons, and more comparisons need stronger evidence for each (``stats.proven_below``).
Runs on different GPUs or CPUs, or with different clocks, are not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from profrun.analysis.compare.ratio import THRESHOLD
from profrun.analysis.compare.stats import Estimate, RatioVerdict, estimate, proven_below, proven_verdict


@dataclass(frozen=True)
class MeasuredRun:
    """The step times of one variant in one run.

    Attributes:
        times: for each trial the durations of its measured steps in ns, all above 0.
        machine: name -> value of what makes step times comparable: GPU, CPU, clock.
        versions: name -> value of the software, and the host.
    """

    times: Sequence[Sequence[int]]
    machine: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """A run against the run before it.

    Attributes:
        verdict: faster, slower, same or inconclusive; incomparable where the machine differs.
        ratio: step time over that of the run before. ci95: its 95 % interval; None with one trial per side.
        machine, versions: what differs, as "GPU: H100 -> H200".
    """

    verdict: RatioVerdict | str
    ratio: float | None = None
    ci95: tuple[float, float] | None = None
    machine: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()


def changes(runs: Sequence[MeasuredRun]) -> list[Change | None]:
    """The change at each run, in order; None for the first."""
    found: list[tuple[Estimate | None, tuple[str, ...], tuple[str, ...]]] = []
    for before, after in pairwise(runs):
        machine = _differences(before.machine, after.machine)
        result = None if machine else estimate(before.times, after.times)
        found.append((result, machine, _differences(before.versions, after.versions)))
    limit = proven_below([one.p_value for one, _, _ in found if one is not None and one.p_value is not None])
    return [None, *(_change(result, limit, *notes) for result, *notes in found)] if runs else []


def _change(
    result: Estimate | None, limit: float, machine: tuple[str, ...], versions: tuple[str, ...]
) -> Change:
    if result is None:
        return Change("incomparable", machine=machine, versions=versions)
    verdict = proven_verdict(result, limit, THRESHOLD)
    return Change(verdict, result.ratio, result.ci95, machine, versions)


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """What both sides state differently."""
    both = (name for name in before if name in after and before[name] != after[name])
    return tuple(f"{name}: {before[name]} -> {after[name]}" for name in both)
