"""The first lines of a trace's part of the report: what it tells, and whether its numbers can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.contract.denominator import NO_STEPS
from profrun.contract.units import count_text, counted, time_text
from profrun.reports.answer_text import percent
from profrun.reports.html import Child, Html, chip, el

if TYPE_CHECKING:
    from profrun.analysis.trace.quality import QualityFinding
    from profrun.reports.content import TraceContent
    from profrun.store.run_answer import VariantAnswer


def verdict_html(content: TraceContent, key: str) -> Html | None:
    """What the trace tells first, in one paragraph; None where it tells nothing of a step.

    Args:
        content: what is shown of the trace.
        key: prefix of the ids of its sections.
    """
    answer = content.answer
    if answer is None or not answer.step_ns:
        return None
    recorded = content.recorded_ns
    took = time_text(answer.step_ns)
    why = f"; {NO_STEPS}, set-up included" if answer.denominator.of == "run" else ""
    if answer.basis == "unprofiled":
        under = f" ({time_text(recorded)} in this recording, with the profiler)" if recorded else ""
        first = (
            el("b", f"{_capital(answer.denominator.one)} takes {took}"),
            f" without a profiler{under}{why}. ",
        )
    elif answer.basis == "profiled":
        one = "a recorded step" if answer.denominator.several else answer.denominator.recorded
        told = f"; what the profiler adds is not known{why}. "
        first = (el("b", f"{_capital(one)} takes {took}"), told)
    else:
        first = (el("b", f"The recording is {took} long"), " and has no steps. ")
    return el("p", first, _work(answer), _best(answer, key), class_="verdict")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _work(answer: VariantAnswer) -> Child:
    """What the GPU does in that time."""
    if answer.gpu_share is None:
        if not answer.parts:
            return "No GPU work was recorded. "
        part = answer.parts[0]
        return f"No GPU worked; {part.name} is {percent(part.share)} of the CPU time of all operators. "
    parts = f", mostly {answer.parts[0].name} ({percent(answer.parts[0].share)})" if answer.parts else ""
    return (
        el("b", f"The GPU works {time_text(answer.gpu_ns)} = {percent(answer.gpu_share)} of it"),
        f"{parts}. ",
    )


def _best(answer: VariantAnswer, key: str) -> Child:
    """What would help most, with a link to it."""
    if not answer.findings:
        return "No finding could save 5 % of it or more."
    first = answer.findings[0]
    gain = f"at most {time_text(first.gain_ns)} ({percent(first.gain_share)})"
    title = el("a", first.text, href=f"#{finding_id(key, first.code)}")
    return ("What would help most: ", title, f", {gain}", f": {first.remedy}." if first.remedy else ".")


def finding_id(key: str, code: str) -> str:
    """The id of a finding in the page; ``key`` is the prefix of the trace's ids."""
    return f"{key}-finding-{code}"


def trust_html(content: TraceContent) -> Html:
    """Doubts about the recording, or that there are none; what changes no number is folded away."""
    every = content.summary.quality
    doubts = [one for one in every if one.severity != "info"]
    notes = [_note(one) for one in every if one.severity == "info"]
    notes += [
        el("li", f"{issue.code}: {issue.message} ({counted(issue.count, 'time')})")
        for issue in content.issues
    ]
    told = counted(len(notes), "note") + " on the recording"
    folded = el("details", el("summary", told), el("ul", notes)) if notes else None
    if doubts:
        return el("div", el("ul", map(_doubt, doubts), class_="quality"), folded, class_="trust")
    fine = el("p", chip("trusted", "fine"), " No check found a reason to doubt these numbers.")
    return el("div", fine, folded, class_="trust")


def _doubt(finding: QualityFinding) -> Html:
    touches = _touches(finding.severity, finding.affects)
    return el("li", chip(finding.severity), f" {finding}", touches, el("code", finding.code))


def _note(finding: QualityFinding) -> Html:
    return el("li", str(finding), el("code", f" {finding.code}"))


def _touches(severity: str, affects: Sequence[str]) -> Html | None:
    if not affects:
        return None
    word = {"critical": "withheld", "warning": "marked with ?"}.get(severity, "touches")
    return el("span", f" {word}: {', '.join(affects)}", class_="note")


def facts_line(content: TraceContent) -> str:
    """Which tool recorded the trace, and how many slices of each kind it has."""
    summary = content.summary
    version = f" {summary.tool_version}" if summary.tool_version else ""
    blocking = {True: "on", False: "off", None: "not stated"}[summary.launch_blocking]
    counts = ", ".join(f"{count_text(count)} {kind}" for kind, count in summary.counts.items())
    return (
        f"collector {summary.collector}, read from {summary.source}{version}; {time_text(summary.span_ns)} "
        f"from first to last slice; launch blocking {blocking}; slices: {counts or 'none'}"
    )
