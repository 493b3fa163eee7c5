"""The comparisons that a job implies: variants against the first, launch blocking against not, each collector
against no profiler.

Step times of the unprofiled trials (``none``) decide where there are such; else those of the first collector.
What changed inside a step is told by the first profiled trials; more of it with ``profrun compare`` and
``profrun blocking``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from profrun.cli.traces import point_name
from profrun.store.state import TrialRecord

Side = list[tuple[str, Path]]
ALLOWED = {"blocking": ("blocking",), "overhead": ("profiled", "clock", "work")}
"""What differs on purpose, by kind: the question is about this very difference."""


def implied_pairs(records: Iterable[TrialRecord]) -> list[tuple[str, str, Side, str, Side]]:
    """(kind, name of a, traces of a, name of b, traces of b) of each comparison; a is the base.

    Kinds: ``variant`` (b is a later variant than the first), ``blocking`` (b blocks), ``overhead`` (b is
    profiled, a is not) and ``change`` (as ``variant``, of profiled trials, for what changed in a step).
    """
    points: dict[tuple[str, str, bool], tuple[str, Side]] = {}
    for record in records:
        if record.trace is not None and record.state == "finished":
            key = (record.collector, record.variant, record.blocking)
            points.setdefault(key, (point_name(record), []))[1].append((record.id, record.trace))
    collectors = list(dict.fromkeys(collector for collector, _, _ in points))
    timed = "none" if "none" in collectors else next(iter(collectors), None)
    profiled = next((name for name in collectors if name not in ("none", "ncu")), None)
    found = _against_first("variant", points, timed)
    for collector, variant, blocking in points:
        if collector == timed and not blocking and (timed, variant, True) in points:
            found.append(("blocking", *points[timed, variant, False], *points[timed, variant, True]))
    for (collector, variant, blocking), point in points.items():
        if collector not in ("none", "ncu") and ("none", variant, blocking) in points:
            found.append(("overhead", *points["none", variant, blocking], *point))
    if timed == "none" and profiled is not None:
        found += _against_first("change", points, profiled)
    return found


def _against_first(
    kind: str, points: dict[tuple[str, str, bool], tuple[str, Side]], collector: str | None
) -> list[tuple[str, str, Side, str, Side]]:
    """Each later variant of a collector against its first, not blocking."""
    plain = [key for key in points if key[0] == collector and not key[2]]
    return [(kind, *points[plain[0]], *points[key]) for key in plain[1:]]


def implied_comparisons(
    records: Iterable[TrialRecord], known: Mapping[Path, Any] | None = None
) -> list[dict[str, Any]]:
    """Each comparison: kind, a, b, verdict, ratio, ci95, mde, trials, reasons, ``text`` in a line, and
    ``changed``: what changed most inside a step, in words.

    Args:
        known: ``analysis.compare.ComparedTrial`` by trace, where it was read already.
    """
    from profrun.analysis.compare import compare
    from profrun.cli.compare_args import read_trials
    from profrun.reports.compare_text import largest_changes, verdict_line

    read: dict[Path, Any] = dict(known or {})

    def trials(side: Side) -> list[Any]:
        for label, path in side:
            if path not in read:
                (read[path],) = read_trials([(label, path)])
        return [read[path] for _, path in side]

    found = []
    for kind, a, a_side, b, b_side in implied_pairs(records):
        result = compare(trials(a_side), trials(b_side), allow=ALLOWED.get(kind, ()))
        document = result.to_json()
        kept = {key: document[key] for key in ("verdict", "ratio", "ci95", "mde", "trials", "reasons")}
        changed = [] if kind == "overhead" else largest_changes(result)
        found.append({"kind": kind, "a": a, "b": b, **kept, "text": verdict_line(result), "changed": changed})
    return found
