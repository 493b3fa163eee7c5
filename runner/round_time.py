"""Which variants of a sequential job the time of its budget is enough for: ``kept_in_time``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from profrun.contract.profilers import UNPROFILED
from profrun.jobs.change_kinds import Sequential
from profrun.store.state import TrialRecord

MORE = 1
"""Rounds after the first decision that time is kept for: of 36 changes that helped, 24 were proven in the
third round, 10 in the fourth, 1 in the fifth and 1 in the sixth (``tests/data/improve``)."""


def kept_in_time(
    settings: Sequential, number: int, variants: Sequence[str], records: Sequence[TrialRecord], left_s: float
) -> Sequence[str]:
    """The variants that are kept: as many of the first ones as are likely to be decided in the time.

    In each round, a variant takes as long as its trials took so far, and so does the base.

    Args:
        settings: of the job.
        number: the round that begins.
        variants: that are not decided, without the base; the first of them are kept.
        records: the trials of the run.
        left_s: seconds of the budget that are left.

    Returns:
        At least the first one, where there is one.
    """
    rounds = max(1, settings.first + MORE - number + 1)
    base_s = _trial_s(records, settings.base) or 0.0
    left_s -= rounds * base_s
    for place, variant in enumerate(variants):
        one_s = _trial_s(records, variant)
        left_s -= rounds * (base_s if one_s is None else one_s)
        if place and left_s < 0:
            return variants[:place]
    return variants


def _trial_s(records: Iterable[TrialRecord], variant: str) -> float | None:
    """Median seconds of the trials of a variant without a profiler; None where none has ended."""
    took = [
        one.took_ns
        for one in records
        if one.variant == variant and one.collector == UNPROFILED and one.took_ns is not None
    ]
    return median(took) / 1e9 if took else None
