"""The amounts of work by which step times are divided."""

from __future__ import annotations

import pytest

from profrun.analysis.compare.work_normalisation import divisors
from profrun.errors import UsageError
from tests.analysis.compare.trials import trial

A, B = trial(values={"batch": 8, "seq": 128}), trial(values={"batch": 16, "seq": 128})


@pytest.mark.parametrize(
    ("per", "amounts"),
    [
        (None, (1.0, 1.0)),
        ("batch", (8.0, 16.0)),
        ("batch*seq", (1024.0, 2048.0)),
        ("sample", (8.0, 16.0)),
        ("2048, 65536", (2048.0, 65536.0)),
    ],
)
def test_amounts(per: str | None, amounts: tuple[float, float]) -> None:
    assert divisors(per, [A], [B]) == amounts


@pytest.mark.parametrize(
    ("per", "said"),
    [("tokens", "does not tell its tokens per step"), ("0,5", "both amounts must be above 0")],
)
def test_amounts_that_are_not_known(per: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        divisors(per, [A], [B])
