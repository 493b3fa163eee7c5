"""Words that have a tone are words that screens show."""

from __future__ import annotations

from typing import get_args

from profrun.contract.finding import Severity
from profrun.contract.states import TrialState
from profrun.reports.terminal_layout import CODES, Toned
from profrun.reports.tones import TONES, toned, tones_of
from profrun.store.improvement import ExperimentState
from profrun.store.run_claims import ClaimState
from profrun.store.state import RunPhase

VERDICTS = {"faster", "slower", "same", "inconclusive", "incomparable"}
"""As ``store.run_result`` describes them."""


KINDS = (Severity, TrialState, RunPhase, ClaimState, ExperimentState)


def test_every_word_is_a_severity_a_state_or_a_verdict() -> None:
    literal = {word for kind in KINDS for word in get_args(kind)}
    assert TONES.keys() <= literal | VERDICTS
    assert set(TONES.values()) <= CODES.keys()


def test_a_word_with_a_tone_is_still_that_word() -> None:
    assert toned("failed") == "failed"
    assert isinstance(toned("failed"), Toned)
    assert type(toned("running")) is str
    assert tones_of("running", "held") == ("held",)
