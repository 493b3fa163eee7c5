"""The job's ``expect`` block checked on the traces of a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from profrun.runner.model import Plan
from profrun.runner.store.state import TrialRecord

STATES = {True: "held", False: "failed", None: "unknown"}


def check_guesses(plan: Plan, records: Iterable[TrialRecord]) -> list[dict[str, Any]]:
    """One row a guess over all traces that it is about: ``analysis.expect.Verdict``, and in one word its
    ``state``: held, failed, or unknown where no trace can tell."""
    if not plan.job.expect:
        return []
    import profrun
    from profrun.analysis.expect import check_trace, summarise

    checks = []
    for record in records:
        if record.trace is None or record.state != "finished":
            continue
        made = str(record.document.get("collector") or record.collector)
        with profrun.open(record.trace) as trace:
            checks += check_trace(trace, plan.job.expect, variant=record.variant, collector=made)
    return [{**verdict.to_json(), "state": STATES[verdict.passed]} for verdict in summarise(checks)]


def guess_line(row: dict[str, Any]) -> str:
    """One line for a person."""
    where = f"{row['variant']}: " if row["variant"] else ""
    failed = row["failed_on"]
    trials = f" ({failed[0]}{f' and {len(failed) - 1} more' if len(failed) > 1 else ''})" if failed else ""
    return f"{where}{row['expected']}: {row['state']}: {row['found']}{trials}"
