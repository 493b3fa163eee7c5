"""The first lines of a trace: its answer, and whether to trust it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profrun.analysis.trace.quality import QualityFinding
from profrun.reports.content import TraceContent
from profrun.reports.verdict_section import trust_html, verdict_html
from profrun.runner.report import trace_content
from profrun.store.run_answer import FindingAnswer, PartAnswer, VariantAnswer
from tests.reports.documents import parse
from tests.tracekit import make_trace

HELP = FindingAnswer("full-fp32", "Matrix work in full fp32", "warning", 5_800_000, 0.26, "bf16 autocast")
ANSWER = VariantAnswer(
    "v",
    gpu_ns=18_030_000,
    gpu_share=0.8,
    step_ns=22_600_000,
    basis="unprofiled",
    side="gpu",
    parts=(PartAnswer("fp32 gemm", 0.67),),
    findings=(HELP,),
)


@pytest.fixture
def content(tmp_path: Path) -> TraceContent:
    """A trace without any finding of the quality checks."""
    with make_trace(tmp_path / "t", [("step", "profrun.step#1", 0, 1000, "main")]) as trace:
        return replace(trace_content(trace, name="t"), answer=ANSWER, recorded_ns=30_710_000.0)


def said(content: TraceContent) -> str:
    found = verdict_html(content, "t0")
    assert found is not None
    return parse(found).text


def test_the_answer_of_a_profiled_trial(content: TraceContent) -> None:
    assert said(content) == (
        "A step takes 22.6 ms without a profiler (30.71 ms in this recording, with the profiler). "
        "The GPU works 18.03 ms = 80 % of it, mostly fp32 gemm (67 %). "
        "What would help most: Matrix work in full fp32, at most 5.8 ms (26 %): bf16 autocast."
    )
    (link,) = parse(verdict_html(content, "t0") or "").every("a")
    assert link.attributes["href"] == "#t0-finding-full-fp32"


def test_without_an_unprofiled_step_without_steps_and_without_a_gpu(content: TraceContent) -> None:
    profiled = replace(content, answer=replace(ANSWER, basis="profiled", findings=()))
    assert said(profiled).startswith("A recorded step takes 22.6 ms; what the profiler adds is not known.")
    assert said(profiled).endswith("No finding could save 5 % of it or more.")
    whole = replace(content, answer=replace(ANSWER, basis="recording"))
    assert said(whole).startswith("The recording is 22.6 ms long and has no steps.")
    host = replace(content, answer=replace(ANSWER, gpu_share=None, gpu_ns=None, side="host"))
    assert "No GPU worked; fp32 gemm is 67 % of the CPU time of all operators." in said(host)
    assert verdict_html(replace(content, answer=None), "t0") is None


def test_one_line_when_nothing_is_wrong_and_doubts_first_otherwise(content: TraceContent) -> None:
    note = QualityFinding("a-note", "info", "harmless")
    doubt = QualityFinding("lost", "critical", "records are lost", affects=("kernels",))
    fine = replace(content, summary=replace(content.summary, quality=[note]), issues=())
    document = parse(trust_html(fine))
    assert document.every("p")[0].text == "trusted No check found a reason to doubt these numbers."
    assert document.every("summary")[0].text == "1 note on the recording"
    doubted = replace(content, summary=replace(content.summary, quality=[doubt, note]), issues=())
    document = parse(trust_html(doubted))
    (line,) = document.every("ul", class_="quality")[0].every("li")
    assert line.text.startswith("critical records are lost")
    assert "withheld: kernels" in line.text
    assert not document.every("p")
