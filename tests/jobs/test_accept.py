"""The difference of results that a user accepts."""

from __future__ import annotations

import pytest

from profrun.errors import UsageError
from profrun.jobs.accept import parse_accept


@pytest.mark.parametrize(
    ("text", "tolerance"),
    [
        ("loss within 1%", 0.01),
        ("loss  within 0.5 %", 0.005),
        ("within 1e-3", 1e-3),
        (" Within 2.5E-4 ", 2.5e-4),
        ("within 0", 0.0),
        ("within 100%", 1.0),
    ],
)
def test_a_tolerance_is_read(text: str, tolerance: float) -> None:
    assert parse_accept(text) == pytest.approx(tolerance)


@pytest.mark.parametrize(
    "text",
    ["", "loss", "loss 1%", "loss within", "within -1%", "within 1%%", "within nan", "loss within 1% or so"],
)
def test_another_text_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_accept(text)
    assert error.value.fix == "write 'loss within 1%' or 'within 1e-3'"


@pytest.mark.parametrize("text", ["within 101%", "within 1.5", "within 1e300"])
def test_a_tolerance_that_accepts_everything_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="accepts every result"):
        parse_accept(text)
