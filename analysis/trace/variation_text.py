"""How much times vary and with what that goes, as sentences for findings, screens and reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profrun.analysis.trace.sampled_factors import Cause
    from profrun.analysis.trace.variation import Variation
    from profrun.analysis.variance_shares import Share, VarianceShares

LEAST_TOLD = 0.03
"""Smaller shares of causes are not named in a sentence."""

WORDS: Mapping[Cause, str] = {
    "clock": "the SM clock",
    "CPU clock": "the clock of the CPU",
    "host": "other work on the host",
    "GPU processes": "other processes on the GPU",
    "allocation": "memory that is allocated or freed",
    "position": "drift and phases that nothing read explains",
    "place in the step": "the place in the step",
    "overlap": "kernels on other streams",
    "temperature": "the temperature of the GPU",
}
"""Causes as they stand after 'goes with'."""


def cause_text(name: str) -> str:
    """A cause in words."""
    return next((words for cause, words in WORDS.items() if cause == name), name)


def share_text(share: Share) -> str:
    """A share with its 95 % interval, in per cent: '71 % [62, 80]'."""
    return f"{100 * share.share:.0f} % [{100 * share.low:.0f}, {100 * share.high:.0f}]"


def shares_text(shares: VarianceShares) -> str:
    """'71 % [62, 80] of the variance goes with the SM clock, 9 % with other work on the host, 20 % is not
    explained'; causes with less than ``LEAST_TOLD`` are left out."""
    told = [one for one in shares.causes if one.share >= LEAST_TOLD]
    rest = f"{100 * shares.rest.share:.0f} % is not explained"
    if not told:
        return f"{share_text(shares.rest)} of the variance goes with nothing that was read"
    first = f"{share_text(told[0])} of the variance goes with {cause_text(told[0].name)}"
    others = [f"{100 * one.share:.0f} % with {cause_text(one.name)}" for one in told[1:]]
    return ", ".join([first, *others, rest])


def variation_text(found: Variation) -> str:
    """'4.1 % (standard deviation, of 580 steps after warm-up): 71 % [62, 80] of the variance ...'."""
    if found.shares is None:
        return f"why {found.of} vary is not told: {found.refused}"
    spread = f"{100 * found.shares.spread:.1f} % (standard deviation, of {found.shares.count} {found.of})"
    return f"{spread}: {shares_text(found.shares)}"
