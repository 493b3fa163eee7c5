"""Values of files that hold whatever was written."""

from __future__ import annotations

import pytest

from profrun.collectors.values import whole


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (0, 0),
        (7, 7),
        (2**31 - 1, 2**31 - 1),
        (2**31, None),
        (-1, None),
        (True, None),
        (7.0, None),
        ("7", None),
    ],
)
def test_a_whole_number_from_0_on(value: object, found: int | None) -> None:
    assert whole(value) == found


def test_the_limit_can_be_another() -> None:
    assert (whole(9, below=9), whole(2**40, below=2**50)) == (None, 2**40)
