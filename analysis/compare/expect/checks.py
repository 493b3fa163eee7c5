"""What one trace tells of the claims of a job: which claims are about it, and what each check asks of it.

``tell`` is given a trace and expectations and returns what it ``Told``; ``claims.judge`` puts the traces of
a run together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.expect import calls, kernels, names, shares, times
from profrun.analysis.compare.expect.evidence import Evidence
from profrun.analysis.compare.expect.model import Answer, Check, Told, untold
from profrun.analysis.compare.reading import read_trial
from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.trace.data_quality import data_quality, withheld
from profrun.analysis.trace.phases import phase
from profrun.contract.denominator import STEP, Denominator
from profrun.contract.profilers import NEUTRAL, become
from profrun.jobs.expectation import Expectation

if TYPE_CHECKING:
    from profrun.analysis.rules.finding import RuleFinding
    from profrun.analysis.rules.step_cost import UnprofiledStep
    from profrun.contract.provenance import Provenance
    from profrun.traces.trace import Trace


Point = tuple[str | None, str, bool]
"""Variant, collector as the job names it, and launch blocking of a trial."""
ONLY_TIMES = "an unprofiled trial has only step times"


@dataclass(frozen=True)
class Question:
    """A check that one trace can answer, by its key in the job.

    Attributes:
        answer: does the value of the check hold on a trace?
        relies_on: number that it rests on, as quality findings name it; a withheld one proves nothing.
        on_gpu: it is about GPU work. A trace without a GPU cannot tell, unless the claim is about runs
            without one.
        of_recording: it is about the whole recording, so that no phase of it can be asked.
    """

    answer: Callable[[Evidence, Any], Answer]
    relies_on: str = ""
    on_gpu: bool = False
    of_recording: bool = False


QUESTIONS: Mapping[str, Question] = {
    "kernels_per_step": Question(kernels.kernels_per_step, "steps.kernels", on_gpu=True),
    "counts": Question(calls.counts),
    "present": Question(names.present),
    "absent": Question(names.absent),
    "after": Question(calls.after, on_gpu=True),
    "fused": Question(kernels.fused, on_gpu=True),
    "dtype": Question(kernels.dtype, on_gpu=True),
    "max_share": Question(kernels.max_share, "kernels", on_gpu=True),
    "no_sync_in_step": Question(times.no_sync_in_step),
    "step_ms": Question(times.step_ms, "steps.dur_ns"),
    "bound": Question(times.bound, "devices.utilization", on_gpu=True),
    "achieved": Question(shares.achieved, on_gpu=True, of_recording=True),
    "finds": Question(times.finds),
    "finds_not": Question(times.finds_not),
}
"""The checks of one trace; the others compare variants (``claims``)."""


def applies(
    expectation: Expectation,
    *,
    variant: str | None,
    vendor: str,
    collector: str,
    tool: str,
    blocking: bool = False,
) -> bool:
    """Is this expectation about a trial of this variant, vendor and collector, with or without blocking?

    Args:
        collector: as the job of the trial names it. Where that is the tool itself, an expectation about
            ``timeline`` or ``counters`` means the tool that these are for the vendor.
        tool: the profiler that recorded the trial, or ``none``.
    """
    return (
        expectation.selects(variant)
        and (expectation.vendor is None or expectation.vendor == vendor)
        and collected_by(expectation, vendor=vendor, collector=collector, tool=tool)
        and expectation.blocking in (None, "on" if blocking else "off")
    )


def collected_by(expectation: Expectation, *, vendor: str, collector: str, tool: str) -> bool:
    """Is this expectation about traces of this collector? See ``applies``."""
    wanted = expectation.collector
    if wanted in NEUTRAL and collector == tool:
        profiler = become(wanted, vendor)
        wanted = profiler.name if profiler else wanted
    return wanted is None or wanted == collector


def tell(
    trace: Trace,
    expectations: Sequence[Expectation],
    *,
    trial: ComparedTrial | None = None,
    point: Point | None = None,
    steps: int | None = None,
    steps_of: Denominator = STEP,
    provenance: Provenance | None = None,
    unprofiled: UnprofiledStep | None = None,
) -> Told:
    """What a trace tells of the claims that are about it.

    Args:
        trial: the trace reduced already, to save the work.
        point: what was recorded, where the caller knows it better than the trace.
        steps: how many steps the hook saw in the recorded window, for a trace without steps of its own.
        steps_of: whether these are steps, or the one run of a program without steps.
        provenance, unprofiled: as for ``diagnose``.
    """

    def findings_of(part: Trace) -> Callable[[], Mapping[str, RuleFinding]]:
        return _once(
            lambda: {one.code: one for one in diagnose(part, provenance=provenance, unprofiled=unprofiled)}
        )

    job = trace.meta.get("job") or {}
    tool, vendor = str(trace.meta.get("collector")), str(trace.meta.get("vendor"))
    whole = Evidence(trace, trial or read_trial(trace), findings_of(trace), steps, steps_of)
    label = whole.trial.conditions.label
    collector, blocking = str(job.get("collector") or tool), bool(whole.trial.conditions.blocking)
    variant, collector, blocking = point or (job.get("variant"), collector, blocking)
    parts: dict[str | None, Evidence] = {None: whole}
    checks: list[Check] = []
    for number, one in enumerate(expectations):
        about = applies(
            one, variant=variant, vendor=vendor, collector=collector, tool=tool, blocking=blocking
        )
        if not about and variant not in one.others.values():
            continue
        if one.phase is not None and one.phase not in parts:
            part = phase(trace, one.phase)
            if part is not None:
                parts[one.phase] = Evidence(part, read_trial(part, label=label), findings_of(part))
        if not about:
            continue  # it is only the base of a claim about another variant, or about its blocking twin
        for key, value in one.checks.items():
            if key in QUESTIONS and (key != "no_sync_in_step" or value):  # false asks for nothing
                answer = _answer(parts.get(one.phase), key, value, one, whole)
                checks.append(Check(number, key, variant, answer, (label,)))
    return Told(
        label=label,
        variant=variant,
        vendor=vendor,
        collector=collector,
        tool=tool,
        blocking=blocking,
        checks=tuple(checks),
        trials={name: part.trial for name, part in parts.items()},
        dram=shares.dram_bytes(whole),
        dram_of=shares.dram_of(whole),
    )


def _once(compute: Callable[[], Mapping[str, RuleFinding]]) -> Callable[[], Mapping[str, RuleFinding]]:
    """The same function, run at most once."""
    kept: list[Mapping[str, RuleFinding]] = []

    def value() -> Mapping[str, RuleFinding]:
        if not kept:
            kept.append(compute())
        return kept[0]

    return value


def _answer(evidence: Evidence | None, key: str, value: Any, claim: Expectation, whole: Evidence) -> Answer:
    """Does the check hold? ``evidence`` is that of the claim's phase, None where the trace has no such."""
    question, conditions = QUESTIONS[key], whole.trial.conditions
    if not conditions.profiled and (key != "step_ms" or claim.phase is not None):
        return untold(ONLY_TIMES)
    if evidence is None:
        return untold(f"no range {claim.phase} in the recorded steps")
    if question.of_recording and claim.phase is not None:
        return untold(f"{key} is of the whole recording, not of a phase")
    if question.on_gpu and whole.no_gpu and claim.vendor != "none":
        return untold(whole.no_gpu)
    hidden = withheld(data_quality(whole.trace))
    for number in _relies_on(question, key, value):
        if number in hidden or number.split(".")[0] in hidden:
            return untold(f"{number} cannot be trusted in this trace; see `profrun summary`")
    return question.answer(evidence, value)


def _relies_on(question: Question, key: str, value: Any) -> Iterator[str]:
    """The numbers that a check rests on; those of the rules that it names."""
    if question.relies_on:
        yield question.relies_on
    if key in ("finds", "finds_not"):
        for rule in value:
            yield from times.relies_on(rule)
