"""The diagnosis: all rules run on a trace, and their findings with evidence, the gravest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from profrun.analysis.json import to_json
from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.context import Context
from profrun.analysis.rules.rule import Hit, Rule
from profrun.analysis.trace.data_quality import withheld
from profrun.analysis.trace.quality import QualityFinding
from profrun.contract.finding import Finding, gravest_first

if TYPE_CHECKING:
    from profrun.contract.provenance import Provenance
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class RuleFinding(Finding):
    """One finding of a rule: ``code`` is the rule's id, ``why`` its meaning, ``fix`` its advice.

    Attributes:
        title, threshold: the rule's words.
        evidence: numbers by name (units in the names), ``names`` of kernels, ops or calls, ``slices`` to
            open.
        quality: codes of warnings about the recording that affect the numbers it rests on.
    """

    title: str = ""
    threshold: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    quality: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; keys as in the attributes."""
        found: dict[str, Any] = to_json(self)
        return found


def diagnose(trace: Trace, *, provenance: Provenance | None = None) -> list[RuleFinding]:
    """Run every rule on a trace.

    A rule does not run when it rests on numbers that are withheld for the quality of the recording. When it
    rests on numbers that are only marked, its finding carries the code of the quality finding.

    Args:
        trace: any trace.
        provenance: the trial's provenance.json (clocks, throttle reasons), where there is one.

    Returns:
        The findings, the gravest first.
    """
    context = Context(trace, provenance)
    hidden = withheld(context.quality)
    found: list[RuleFinding] = []
    for rule in all_rules():
        if any(name in hidden or name.split(".")[0] in hidden for name in rule.relies_on):
            continue
        marks = _marks(rule, context.quality)
        found += [_finding(rule, hit, marks) for hit in rule.find(context)]
    return gravest_first(found)


def _marks(rule: Rule, quality: Sequence[QualityFinding]) -> tuple[str, ...]:
    """Codes of the warnings that affect what the rule rests on."""
    warnings = [one for one in quality if one.severity == "warning"]
    return tuple(one.code for one in warnings if set(one.affects) & set(rule.relies_on))


def _finding(rule: Rule, hit: Hit, marks: tuple[str, ...]) -> RuleFinding:
    evidence = {**to_json(hit.numbers), "names": list(hit.names), "slices": [int(one) for one in hit.slices]}
    return RuleFinding(
        code=rule.id,
        severity=hit.severity or rule.severity,
        what=hit.what,
        why=rule.meaning,
        fix=rule.advice,
        title=rule.title,
        threshold=rule.threshold,
        evidence=evidence,
        quality=marks,
    )
