"""The diagnosis: every rule asked, findings in order of weight, each with its evidence and what to doubt
about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profrun.analysis.json import to_json
from profrun.analysis.rules import SEVERITIES, Context, Hit, Rule, all_rules
from profrun.analysis.trace.data_quality import Doubt, withheld

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        rule, title: which rule.
        severity: 'critical', 'warning' or 'info'.
        message: one sentence with its numbers.
        meaning, advice, threshold: the rule's words.
        evidence: numbers by name (units in the names), ``names`` of kernels, ops or calls, ``slices`` to
            open.
        doubts: codes of doubts that touch the numbers it rests on.
    """

    rule: str
    title: str
    severity: str
    message: str
    meaning: str
    threshold: str
    advice: str
    evidence: dict[str, Any]
    doubts: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        found: dict[str, Any] = to_json(self)
        return found


def diagnose(trace: Trace, *, provenance: Mapping[str, Any] | None = None) -> list[Finding]:
    """Ask every rule of a trace; gravest first.

    A rule whose numbers a doubt calls wrong (see ``integrity``) is not asked: no finding rests on them. One
    whose numbers a doubt calls doubtful keeps its finding, with the doubt's code beside it.

    Args:
        trace: any trace.
        provenance: the trial's provenance.json (clocks, throttle reasons), where there is one.
    """
    context = Context(trace, provenance)
    hidden = withheld(context.doubts)
    found: list[tuple[int, int, Finding]] = []
    for place, rule in enumerate(all_rules()):
        if any(name in hidden or name.split(".")[0] in hidden for name in rule.relies_on):
            continue
        marks = _marks(rule, context.doubts)
        for hit in rule.find(context):
            finding = _finding(rule, hit, marks)
            found.append((SEVERITIES.index(finding.severity), place, finding))
    found.sort(key=lambda row: row[:2])
    return [finding for _, _, finding in found]


def _marks(rule: Rule, doubts: list[Doubt]) -> tuple[str, ...]:
    return tuple(
        doubt.code
        for doubt in doubts
        if doubt.severity == "care" and any(name in rule.relies_on for name in doubt.affects)
    )


def _finding(rule: Rule, hit: Hit, marks: tuple[str, ...]) -> Finding:
    evidence = {**to_json(hit.numbers), "names": list(hit.names), "slices": [int(one) for one in hit.slices]}
    return Finding(
        rule.id, rule.title, hit.severity or rule.severity, hit.message, rule.meaning, rule.threshold,
        rule.advice, evidence, marks,
    )  # fmt: skip
