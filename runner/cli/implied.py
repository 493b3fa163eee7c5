"""The comparisons that a job implies: variants against the first, launch blocking against not.

Step times of the unprofiled trials (``none``) decide where there are such; else those of the first collector.
What changed inside a step is asked with ``profrun compare`` and ``profrun blocking``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from profrun.runner.cli.traces import point_name
from profrun.runner.store.state import TrialRecord

Side = list[tuple[str, Path]]


def implied_pairs(records: Iterable[TrialRecord]) -> list[tuple[str, str, Side, str, Side]]:
    """(kind, name of a, traces of a, name of b, traces of b) of each comparison; a is the base.

    Kinds: ``variant`` (b is a later variant than the first) and ``blocking`` (b blocks).
    """
    finished = [record for record in records if record.trace is not None and record.state == "finished"]
    collectors = list(dict.fromkeys(record.collector for record in finished))
    timed = "none" if "none" in collectors else next(iter(collectors), None)
    points: dict[tuple[str, bool], tuple[str, Side]] = {}
    for record in finished:
        if record.collector == timed and record.trace is not None:
            key = (record.variant, record.blocking)
            points.setdefault(key, (point_name(record), []))[1].append((record.id, record.trace))
    found = []
    plain = [key for key in points if not key[1]]
    for key in plain[1:]:
        found.append(("variant", *points[plain[0]], *points[key]))
    for variant, _ in plain:
        if (variant, True) in points:
            found.append(("blocking", *points[variant, False], *points[variant, True]))
    return found


def implied_comparisons(records: Iterable[TrialRecord]) -> list[dict[str, Any]]:
    """Each comparison: kind, a, b, verdict, ratio, ci95, mde, trials, reasons, and ``text`` in a line."""
    from profrun.analysis.compare import compare
    from profrun.reports.compare_text import verdict_line
    from profrun.runner.cli.sides import read_trials

    read: dict[Path, Any] = {}

    def trials(side: Side) -> list[Any]:
        for label, path in side:
            if path not in read:
                (read[path],) = read_trials([(label, path)])
        return [read[path] for _, path in side]

    found = []
    for kind, a, a_side, b, b_side in implied_pairs(records):
        allowed = ("blocking",) if kind == "blocking" else ()
        result = compare(trials(a_side), trials(b_side), allow=allowed)
        document = result.to_json()
        kept = {key: document[key] for key in ("verdict", "ratio", "ci95", "mde", "trials", "reasons")}
        found.append({"kind": kind, "a": a, "b": b, **kept, "text": verdict_line(result)})
    return found
