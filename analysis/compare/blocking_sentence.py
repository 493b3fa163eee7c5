"""What the numbers of launch-blocking twins mean, in a sentence: ``sentence`` is given the result."""

from __future__ import annotations

from profrun.analysis.compare.blocking_model import Blocking
from profrun.contract.profilers import under_text
from profrun.contract.units import change_text, time_text

OVERLAP_EXPLAINS = 1.25
"""Up to so many times the overlap, the time that blocking costs is the overlap that is lost."""
MOSTLY_GRAPHS = 0.5


def sentence(found: Blocking, vendor: str) -> str:
    """What the numbers mean for this job, in plain words; how much longer a step takes is said elsewhere.

    Args:
        vendor: of the GPUs, ``none`` without one.

    Returns:
        Empty where the recordings tell nothing beside the step time.
    """
    if found.ratio is None:
        why = next((str(one) for one in found.reasons if one.stops), "nothing was measured")
        return f"The twins cannot be compared: {why}."
    if vendor == "none":
        return "There is no GPU here, so launch blocking changes nothing: two equal runs differ as much."
    if found.took_effect is False:
        return (
            "Launches did not block: kernels ran on after their launch calls had returned. The variable did "
            "not reach the program, or this runtime ignores it. The difference is no effect of blocking."
        )
    if found.kernel_multiset_equal is False:
        why = "the difference is not the effect of blocking alone"
        return f"The two runs did not launch the same kernels, so {why}."
    return _overlap(found)


def _overlap(found: Blocking) -> str:
    """How much work overlapped, and what blocking costs beside that overlap; empty without kernels.

    The overlap is that of the profiled trials. What blocking costs is the difference of the step times, of
    the trials that gave these: without a profiler where there are such. It is left out where it is not proven
    that blocking costs anything.
    """
    if found.kernel_ns is None or found.step_ns is None:
        return ""
    overlap, kernel, per = found.overlap_ns or 0.0, found.kernel_ns[0], found.denominator.per
    cost = found.step_ns[1] - found.step_ns[0]
    proven = found.ci95 is None or found.ci95[0] > 1
    apart = found.timed_by != found.detailed_by
    under = f" under {found.detailed_by}" if apart else ""
    of = f" {under_text(found.timed_by)}" if apart else ""
    told = [f"{time_text(overlap)} of {time_text(kernel)} GPU work {per} ran while the host went on{under}"]
    if cost > 0 and kernel and proven and cost <= OVERLAP_EXPLAINS * overlap:
        told.append(f"asynchronous launches save {time_text(cost)} {per}{of} by this overlap")
    elif cost > 0 and kernel and proven:
        told.append(
            f"blocking costs {time_text(cost)} {per}{of}, more than that overlap: the rest is the cost of "
            "waiting after each launch"
        )
    if found.kernels_same_speed is False:
        told.append(f"the kernels themselves were {change_text(found.kernel_ratio)} (look at the clocks)")
    if found.graph_share > MOSTLY_GRAPHS:
        told.append("most GPU work is inside graphs, which blocking does not serialise")
    return f"{'; '.join(told)}."
