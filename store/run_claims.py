"""What a run says of the claims of its job: one ``ClaimResult`` per entry of ``expect``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

ClaimState = Literal["held", "refuted", "not checked"]


@dataclass(frozen=True)
class CheckResult:
    """One check of a claim over all traces that it is about.

    Attributes:
        key: as the job writes it. expected: the check in words.
        found: what was measured, in words: on the first trace that refutes it, else on the first that tells.
        value, ci95, unit: the same as a number with its 95 % interval, where it is one.
        why: why it was not checked. fix: what to do about that.
        trials: names of the trials that could tell. refuted_on: of those that refute it.
    """

    key: str
    expected: str
    state: ClaimState
    found: str = ""
    value: float | None = None
    ci95: tuple[float, ...] | None = None
    unit: str = ""
    why: str = ""
    fix: str = ""
    trials: tuple[str, ...] = ()
    refuted_on: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """What was found, or why nothing was checked, or both."""
        return "; ".join(text for text in (self.found, self.why) if text)


@dataclass(frozen=True)
class ClaimResult:
    """One entry of ``expect`` over all traces that it is about.

    Attributes:
        number: its place in the list of the job, from 0.
        claim: its words; those of its checks where the job gives none.
        state: refuted where one check is; else not checked where one check could not be; else held.
        checks: its checks, in the order of the job spec's keys.
        source: where it was claimed. variants: the variants of the run that it is about.
        vendor, collector, phase: as the job selects, None for all.
    """

    number: int
    claim: str
    state: ClaimState
    checks: tuple[CheckResult, ...]
    source: str | None = None
    variants: tuple[str, ...] = ()
    vendor: str | None = None
    collector: str | None = None
    phase: str | None = None

    @property
    def telling(self) -> tuple[CheckResult, ...]:
        """The checks that give the claim its state."""
        return tuple(one for one in self.checks if one.state == self.state)

    @property
    def where(self) -> str:
        """What the claim is about: variants and phase."""
        names = ", ".join(self.variants)
        return f"{names} ({self.phase})" if self.phase else names


def tally(claims: Sequence[ClaimResult]) -> dict[ClaimState, int]:
    """How many claims have each state."""
    states: tuple[ClaimState, ...] = ("held", "refuted", "not checked")
    return {state: sum(one.state == state for one in claims) for state in states}
