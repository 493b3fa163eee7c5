"""What the numbers of launch-blocking twins mean, in a sentence: ``sentence`` is given the result."""

from __future__ import annotations

from profrun.analysis.compare.blocking_model import Blocking
from profrun.contract.units import change_interval_text, change_text, time_text

OVERLAP_EXPLAINS = 1.25
"""Up to so many times the overlap, the time that blocking costs is the overlap that is lost."""
MOSTLY_GRAPHS = 0.5


def sentence(found: Blocking, vendor: str) -> str:
    """What the numbers mean for this job, in plain words.

    Args:
        vendor: of the GPUs, ``none`` without one.
    """
    if found.ratio is None:
        why = next((str(one) for one in found.reasons if one.stops), "nothing was measured")
        return f"The twins cannot be compared: {why}."
    change = change_text(found.ratio)
    sure = (
        f"95 % interval {change_interval_text(found.ci95)}"
        if found.ci95
        else "too few trials for an interval"
    )
    if vendor == "none":
        return (
            f"There is no GPU here, so launch blocking changes nothing: {change} ({sure}) "
            "is how much such runs differ anyway."
        )
    text = f"A step takes {change} when launches block ({sure})"
    if found.too_wide:
        text = "Nothing can be said about the step time, because the trials of one side differ too much"
    if found.took_effect is False:
        return (
            f"{text}, but launches did not block: kernels ran on after their launch calls had returned, so "
            "the variable did not reach the program or this runtime ignores it: it is no effect of blocking."
        )
    if found.kernel_multiset_equal is False:
        why = "but the two runs did not launch the same kernels: it is not the effect of blocking alone"
        return f"{text}, {why}."
    return f"{text}{_overlap(found)}."


def _overlap(found: Blocking) -> str:
    """How much work overlapped, and what blocking costs beside that overlap; empty without kernels."""
    if found.kernel_ns is None:
        return ""
    overlap, hidden, kernel = found.overlap_ns or 0.0, found.hidden_ns or 0.0, found.kernel_ns[0]
    text = f"; {time_text(overlap)} of {time_text(kernel)} GPU work per step ran while the host went on"
    if hidden > 0 and kernel:
        if hidden <= OVERLAP_EXPLAINS * overlap:
            text += f", and asynchronous launches save {time_text(hidden)} per step by this overlap"
        else:
            text += (
                f"; blocking costs {time_text(hidden)} per step, more than that overlap: the rest is the "
                "cost of waiting after each launch"
            )
    if found.kernels_same_speed is False:
        text += f"; kernels themselves took {change_text(found.kernel_ratio)} (look at the clocks)"
    if found.graph_share > MOSTLY_GRAPHS:
        text += "; most GPU work is inside graphs, which blocking does not serialise"
    return text
