"""Values of JSON and SQLite, which hold whatever was written."""

from __future__ import annotations


def whole(value: object, below: int = 2**31) -> int | None:
    """A whole number from 0 on; None for anything else.

    Args:
        value: what the file holds.
        below: numbers from here on are no value either.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below:
        return value
    return None
