"""What asynchronous launches are worth: one point without and with launch blocking.

``blocking_twins`` is given the trials of both and returns a ``Blocking``.

With launch blocking (``contract.launch_blocking`` has the variables) each launch returns when its kernel has
ended. Then nothing overlaps, the host time of an op holds its kernels (its true latency), waits move from
synchronising calls into the launches, and what is left of the difference is what asynchronous launches hide.
Kernels are matched by name, never by correlation id. Work inside one CUDA or HIP graph launch is not
serialised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profrun.analysis.compare.blocking_details import with_details
from profrun.analysis.compare.blocking_model import Blocking
from profrun.analysis.compare.blocking_sentence import sentence
from profrun.analysis.compare.comparability import reasons, stopped
from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.model import Reason
from profrun.analysis.compare.next_steps import next_steps
from profrun.analysis.compare.ratio import BLOCKING_DIFFERENCES, THRESHOLD, step_ratio
from profrun.analysis.compare.sides import Side, Sides
from profrun.contract.launch_blocking import BLOCKING_ENV
from profrun.errors import UsageError

EXPECTED = (*BLOCKING_DIFFERENCES, "variant")
"""Codes of reasons that are not shown: launch blocking is what twins differ in."""


def blocking_twins(
    asynchronous: Sequence[ComparedTrial],
    blocking: Sequence[ComparedTrial],
    *,
    threshold: float = THRESHOLD,
    variant: str | None = None,
) -> Blocking:
    """Compare the trials of one point without and with launch blocking.

    Args:
        asynchronous, blocking: trials of one variant, of one or more collectors. Step time comes from the
            unprofiled trials where both sides have some; everything else from profiled ones.
        threshold: practical threshold as a fraction.
        variant: name of the variant, which the result repeats.

    Raises:
        UsageError: a side is empty, or no collector has trials on both sides.
    """
    points = _by_collector(asynchronous, blocking)
    unprofiled = points.get("none")
    detailed_by = next((name for name in points if name != "none"), None)
    profiled = points[detailed_by] if detailed_by else None
    timed_by, timed = ("none", unprofiled) if unprofiled else next(iter(points.items()))
    found = _reasons([sides for sides in (profiled, unprofiled) if sides])
    ratio = step_ratio(timed, found, threshold=threshold)
    vendor = timed[1].trials[0].conditions.vendor
    result = Blocking(
        **vars(ratio),
        timed_by=None if ratio.ratio is None else timed_by,
        detailed_by=detailed_by,
        variables=tuple(f"{name}={value}" for name, value in BLOCKING_ENV.get(vendor, {}).items()),
        variant=variant,
        denominator=timed[0].denominator,
        next_steps=next_steps(ratio, timed),
    )
    if profiled and not stopped(found):
        result = with_details(result, *profiled, threshold)
    return replace(result, sentence=sentence(result, vendor))


def _by_collector(a: Sequence[ComparedTrial], b: Sequence[ComparedTrial]) -> dict[str, Sides]:
    """Sides by collector, as the job names it, where both have trials; those with most detail first.

    Raises:
        UsageError: a side is empty, or no collector has trials on both sides.
    """
    if not a or not b:
        raise UsageError(
            "launch-blocking twins need trials without and with blocking",
            fix="submit the job with `launch_blocking: both`",
        )
    found: dict[str, tuple[list[ComparedTrial], list[ComparedTrial]]] = {}
    for number, side in enumerate((a, b)):
        for trial in side:
            found.setdefault(trial.conditions.collector, ([], []))[number].append(trial)
    both = {name: (Side(one), Side(two)) for name, (one, two) in found.items() if one and two}
    if not both:
        raise UsageError(
            "no collector has trials both without and with launch blocking",
            why=f"the sides hold {', '.join(sorted(found))}",
            fix="give both sides trials of the same collector",
        )
    return dict(sorted(both.items(), key=lambda item: (_missing_detail(item[1]), item[0])))


def _missing_detail(sides: Sides) -> tuple[bool, bool, bool]:
    """What the traces of these trials lack; compares less for traces with more detail."""
    trials = [trial for side in sides for trial in side.trials]
    return (
        any(trial.conditions.replayed for trial in trials),
        not any(row.kind == "op" for trial in trials for row in trial.host_ops),
        not any(trial.kernel_groups for trial in trials),
    )


def _reasons(points: Sequence[Sides]) -> list[Reason]:
    """What speaks against the comparison of these trials, but for launch blocking itself."""
    found: list[Reason] = []
    for a, b in points:
        for one in reasons(a.trials, b.trials, allow=BLOCKING_DIFFERENCES):
            if one.code not in EXPECTED and one not in found:
                found.append(one)
    return found
