"""The diagnosis: all rules run on a trace, and their findings by cause, with evidence and what could be
gained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profrun.analysis.json import to_json
from profrun.analysis.rules.applicable import applicable
from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.causes import Explained, explain
from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow, RuleFinding
from profrun.analysis.rules.python_lines import mapped_lines, python_lines
from profrun.analysis.rules.rule import Hit, Rule
from profrun.analysis.rules.step_cost import StepCost, UnprofiledStep, severity_of
from profrun.analysis.rules.step_parts import StepPart, step_parts
from profrun.analysis.rules.step_use import StepUse, step_use
from profrun.analysis.trace.data_quality import withheld
from profrun.analysis.trace.line_table import PlaceTable, place_table
from profrun.analysis.trace.quality import QualityFinding
from profrun.analysis.trace.steadiness import window_phase
from profrun.contract.finding import SEVERITIES, Severity
from profrun.contract.window_phase import WindowPhase

if TYPE_CHECKING:
    from profrun.analysis.trace.addresses import Addresses
    from profrun.contract.provenance import Provenance
    from profrun.traces.trace import Trace

__all__ = ["Diagnosis", "FindingRow", "RuleFinding", "UnprofiledStep", "diagnose", "diagnosis"]


@dataclass(frozen=True)
class Diagnosis:
    """What a trace shows: what a step costs, what its time is made of, and what could be better.

    Attributes:
        cost: times per step of one rank.
        parts: what the work is made of, most time first.
        findings: as ``diagnose`` returns them.
        gpus: names of the GPUs that worked, such as 'NVIDIA H200', each once.
        window: in which of several phases of the run the recorded steps lie; None where there is one, or it
            is not known.
        use: FLOPs, MFU and HFU of a step; None without steps or without matrix ops of recorded shapes.
        lines: GPU work by line of the program, most time first; None where no mapping tells the lines.
    """

    cost: StepCost
    parts: tuple[StepPart, ...]
    findings: tuple[RuleFinding, ...]
    gpus: tuple[str, ...]
    window: WindowPhase | None = None
    use: StepUse | None = None
    lines: PlaceTable | None = None


def diagnose(
    trace: Trace,
    *,
    provenance: Provenance | None = None,
    unprofiled: UnprofiledStep | None = None,
    mapped: Addresses | None = None,
) -> list[RuleFinding]:
    """Run every rule on a trace.

    A rule does not run when it rests on numbers that are withheld for the quality of the recording. When it
    rests on numbers that are only marked, its finding carries the code of the quality finding.

    Args:
        trace: any trace.
        provenance: the trial's provenance.json (clocks, throttle reasons), where there is one.
        unprofiled: the step time of the same variant without a profiler, where it was measured.
        mapped: the addresses of its GPU work, where a mapping tells them: findings name the lines then.

    Returns:
        The findings, at most one of each rule. Those that no other explains are sorted by severity, and by
        what could be gained; each is followed by the findings that it explains.
    """
    return _findings(Context(trace, provenance, unprofiled, mapped))


def diagnosis(
    trace: Trace,
    *,
    provenance: Provenance | None = None,
    unprofiled: UnprofiledStep | None = None,
    mapped: Addresses | None = None,
) -> Diagnosis:
    """What a step of a trace costs, what its time is made of, and what could be better.

    Args:
        trace, provenance, unprofiled, mapped: as for ``diagnose``.
    """
    context = Context(trace, provenance, unprofiled, mapped)
    return Diagnosis(
        cost=context.cost,
        parts=tuple(step_parts(context)),
        findings=tuple(_findings(context)),
        gpus=tuple(dict.fromkeys(one.name for one in context.devices)),
        window=window_phase(trace),
        use=step_use(context),
        lines=place_table(context.frame, mapped, "line") if mapped is not None else None,
    )


def _findings(context: Context) -> list[RuleFinding]:
    hidden = withheld(context.quality)
    rules: dict[str, Rule] = {}
    hits: dict[str, Hit] = {}
    for rule in all_rules():
        if any(name in hidden or name.split(".")[0] in hidden for name in rule.relies_on):
            continue
        for hit in rule.find(context):
            assert rule.id not in hits, f"{rule.id} found several things: they are rows of one finding"
            rules[rule.id], hits[rule.id] = rule, hit
    why = explain(context, hits, {code: _severity(rules[code], hit) for code, hit in hits.items()})
    found = {code: _finding(context, rules[code], hit, why.get(code)) for code, hit in hits.items()}
    return _by_cause(found)


def _marks(rule: Rule, quality: Sequence[QualityFinding]) -> tuple[str, ...]:
    """Codes of the warnings that affect what the rule rests on, each once."""
    warnings = [one for one in quality if one.severity == "warning"]
    return tuple(dict.fromkeys(one.code for one in warnings if set(one.affects) & set(rule.relies_on)))


def _finding(context: Context, rule: Rule, hit: Hit, explained: Explained | None) -> RuleFinding:
    evidence = {**to_json(hit.numbers), "names": list(hit.names), "slices": [int(one) for one in hit.slices]}
    if context.mapped is not None and (told := mapped_lines(context.frame, context.mapped, hit.slices)):
        evidence["lines"] = told
    lines = python_lines(context.frame, evidence["slices"])
    if lines:
        evidence.setdefault("python_lines", lines)
    gain = hit.gain
    return RuleFinding(
        code=rule.id,
        severity="info" if explained is not None and not explained.own_time else _severity(rule, hit),
        what=hit.what,
        why=rule.meaning,
        fix=hit.fix or rule.advice,
        title=rule.title,
        threshold=rule.threshold,
        remedy=hit.remedy or rule.remedy,
        extent=hit.extent,
        evidence=evidence,
        quality=_marks(rule, context.quality),
        gain_ns=gain.ns if gain else None,
        step_ns=gain.step_ns if gain else None,
        gain_share=gain.share if gain else None,
        work_ns=gain.work_ns if gain else None,
        basis=gain.basis if gain else None,
        side=gain.side if gain else None,
        denominator=context.denominator,
        bound=rule.bound,
        explained_by=explained.by if explained else None,
        because=explained.because if explained else "",
        rows=tuple(hit.rows),
        experiments=applicable(context.trace, rule.experiments),
    )


def _severity(rule: Rule, hit: Hit) -> Severity:
    if rule.severity != "by gain":
        return rule.severity
    assert hit.gain is not None, f"{rule.id} must say what could be gained"
    found = severity_of(hit.gain)
    limit = hit.at_most or found
    return max(found, limit, key=SEVERITIES.index)


def _by_cause(found: Mapping[str, RuleFinding]) -> list[RuleFinding]:
    """Findings by severity, then by gain, the largest first; below each those that it explains."""

    def order(finding: RuleFinding) -> tuple[int, float]:
        gain = finding.gain_ns
        if gain is None:  # what is wrong with the recording comes first, what only describes comes last
            return SEVERITIES.index(finding.severity), float("inf") if finding.severity == "info" else -float(
                "inf"
            )
        return SEVERITIES.index(finding.severity), -gain

    def below(code: str | None) -> list[RuleFinding]:
        mine = sorted((one for one in found.values() if one.explained_by == code), key=order)
        return [item for one in mine for item in (one, *below(one.code))]

    return below(None)
