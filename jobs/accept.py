"""``--accept``: the difference of results that the user accepts: ``loss within 1%``, ``within 1e-3``."""

from __future__ import annotations

import re

from profrun.errors import UsageError

_FORM = re.compile(r"(?:loss\s+)?within\s+(?P<number>\d+(?:\.\d+)?(?:e-?\d{1,3})?)\s*(?P<percent>%?)", re.I)
MOST = 1.0
"""The largest difference that can be accepted: relative differences of numbers of one sign are less."""


def parse_accept(text: str) -> float:
    """The tolerance that a text says: 0.01 of ``loss within 1%``, 0.001 of ``within 1e-3``.

    Raises:
        UsageError: it says none, or one above 1.
    """
    found = _FORM.fullmatch(text.strip())
    fix = "write 'loss within 1%' or 'within 1e-3'"
    if found is None:
        raise UsageError(f"'{text}' says no difference that is accepted", fix=fix)
    tolerance = float(found["number"]) / (100 if found["percent"] else 1)
    if tolerance > MOST:
        raise UsageError(f"'{text}' accepts every result", why="it is more than 100 %", fix=fix)
    return tolerance
