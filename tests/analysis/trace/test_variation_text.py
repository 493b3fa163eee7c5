"""Sentences about shares: the largest cause with its interval, small ones left out, refusals told."""

from __future__ import annotations

from profrun.analysis.trace.variation import Variation
from profrun.analysis.trace.variation_text import cause_text, shares_text, variation_text
from profrun.analysis.variance_shares import Share, VarianceShares

CLOCK, HOST, DRIFT = (
    Share("clock", 0.71, 0.62, 0.8),
    Share("host", 0.09, 0.01, 0.2),
    Share("position", 0.02, 0, 0.1),
)
REST = Share("rest", 0.18, 0.1, 0.3)


def shares(*causes: Share, rest: Share = REST) -> VarianceShares:
    return VarianceShares(580, 0.041, causes, (), rest, {}, 1.0)


def test_the_largest_share_has_its_interval_and_small_ones_are_left_out() -> None:
    assert variation_text(Variation("steps after warm-up", 580, 1e6, 0.1, shares(CLOCK, HOST, DRIFT))) == (
        "4.1 % (standard deviation, of 580 steps after warm-up): 71 % [62, 80] of the variance goes with "
        "the SM clock, 9 % with other work on the host, 18 % is not explained"
    )


def test_nothing_that_was_read() -> None:
    assert shares_text(shares(DRIFT, rest=Share("rest", 0.98, 0.9, 1))) == (
        "98 % [90, 100] of the variance goes with nothing that was read"
    )


def test_a_refusal_says_what_is_needed() -> None:
    found = Variation(
        "steps after warm-up", 12, 1e6, 0.1, None, refused="at least 50 steps are needed, there are 12"
    )
    assert variation_text(found) == (
        "why steps after warm-up vary is not told: at least 50 steps are needed, there are 12"
    )


def test_a_cause_without_words_is_its_name() -> None:
    assert (cause_text("clock"), cause_text("moon")) == ("the SM clock", "moon")
