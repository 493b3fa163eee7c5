"""Guesses about time: the length of a step, waiting for the GPU, and what bounds the step."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from profrun.analysis.compare.expect.evidence import Evidence
from profrun.analysis.compare.expect.model import Answer, untold
from profrun.analysis.rules.catalogue import all_rules
from profrun.contract.units import time_text

_RULES = {rule.id: rule for rule in all_rules()}
_BOUNDS = {
    "overhead-bound": "overhead",
    "host-code": "overhead",
    "compute-bound": "compute",
    "memory-bound": "memory",
}
"""Rule of the diagnosis -> word of the guess; overhead is any host time for which the GPU waits."""


def no_sync_in_step(evidence: Evidence, wanted: bool) -> Answer:
    """Does no step wait for the GPU? Asked only where ``wanted`` is true."""
    if not any(row.kind == "api" for row in evidence.trial.host_ops):
        return untold("no runtime calls in this trace")
    waits = [row for row in evidence.trial.host_ops if row.waits and row.calls]
    if not waits:
        return Answer(True, "no call that waits")
    samples = evidence.samples
    return Answer(
        False,
        ", ".join(
            f"{row.name} {row.calls / samples:g} times {evidence.of.rate} ({time_text(row.cpu_ns / samples)})"
            for row in waits[:3]
        ),
    )


def step_ms(evidence: Evidence, limit: float) -> Answer:
    """Is the median step below the limit, in ms?"""
    times = evidence.trial.times
    if not times:
        return untold(f"no whole {evidence.of.of} in this trace")
    value = median(times) / 1e6
    what = f"median of {len(times)} steps" if evidence.of.several else evidence.of.time
    return Answer(value < limit, f"{what} {value:.4g} ms", value, unit="ms")


def bound(evidence: Evidence, wanted: str) -> Answer:
    """Does the diagnosis find that overhead, compute or memory bounds the step?"""
    found = evidence.findings()
    told = {word: found[rule] for rule, word in reversed(_BOUNDS.items()) if rule in found}
    if not told:
        return Answer(False, "nothing bounds it clearly: neither overhead, compute nor memory")
    shown = told.get(wanted) or next(iter(told.values()))
    return Answer(wanted in told, f"{' and '.join(told)}: {shown.what}")


def finds(evidence: Evidence, rules: Sequence[str]) -> Answer:
    """Does the diagnosis find something by each of these rules?"""
    strange = unknown_rules(rules)
    if strange:
        return untold(f"there is no rule {strange[0]}")
    found = evidence.findings()
    missing = [rule for rule in rules if rule not in found]
    if missing:
        others = [rule for rule, one in found.items() if one.severity != "info"] or list(found)
        instead = f"; the findings are {', '.join(others)}" if others else ", and no other finding"
        return Answer(False, f"nothing by {', '.join(missing)}{instead}")
    return Answer(True, "; ".join(f"{rule}: {found[rule].what}" for rule in rules))


def finds_not(evidence: Evidence, rules: Sequence[str]) -> Answer:
    """Does the diagnosis find nothing by any of these rules?"""
    strange = unknown_rules(rules)
    if strange:
        return untold(f"there is no rule {strange[0]}")
    found = evidence.findings()
    hits = [rule for rule in rules if rule in found]
    if hits:
        return Answer(False, "; ".join(f"{rule}: {found[rule].what}" for rule in hits))
    return Answer(True, f"nothing by {', '.join(rules)}")


def unknown_rules(rules: Sequence[str]) -> list[str]:
    """Those of these ids that no rule has."""
    return [rule for rule in rules if rule not in _RULES]


def relies_on(rule: str) -> tuple[str, ...]:
    """The numbers that a rule rests on: it does not run where one of them is withheld."""
    return _RULES[rule].relies_on if rule in _RULES else ()
