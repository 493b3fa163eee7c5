"""The job's ``expect`` block checked on the traces of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profrun.analysis.compare.expect import Check

STATES = {True: "held", False: "failed", None: "unknown"}


def guess_rows(checks: Sequence[Check]) -> list[dict[str, Any]]:
    """One row a guess over all traces that it is about: ``analysis.compare.expect.ExpectationResult``, and in one word its
    ``state``: held, failed, or unknown where no trace can tell."""
    if not checks:
        return []
    from profrun.analysis.compare.expect import summarise

    return [{**verdict.to_json(), "state": STATES[verdict.passed]} for verdict in summarise(checks)]


def guess_line(row: dict[str, Any]) -> str:
    """One line for a person."""
    where = f"{row['variant']}: " if row["variant"] else ""
    failed = row["failed_on"]
    trials = f" ({failed[0]}{f' and {len(failed) - 1} more' if len(failed) > 1 else ''})" if failed else ""
    return f"{where}{row['expected']}: {row['state']}: {row['found']}{trials}"
