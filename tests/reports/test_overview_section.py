"""The first section of a report."""

from __future__ import annotations

import dataclasses
import re

from profrun.reports.overview_section import overview_html
from profrun.store.run_answer import PartAnswer, UseAnswer
from tests.reports.test_answer_text import CPU, EAGER, MS, PAIR


def text(html: object) -> str:
    """The words of a section."""
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", str(html)))


def test_the_numbers_and_the_bar_of_a_variant() -> None:
    said = text(overview_html([EAGER], []))
    assert "step 20 ms without a profiler; 19 to 21 ms in 3 trials" in said
    assert "GPU busy 25 % 5 ms of the step" in said
    assert "mostly fp32 gemm 67 % of the GPU" in said
    # 25 % of the step: 0.67 and 0.033 of it are named, the rest is other work
    for legend in ("fp32 gemm 17 %", "copies 0.8 %", "other GPU work 7.4 %", "GPU idle 75 %"):
        assert legend in said


def test_mfu_says_what_it_is_of() -> None:
    use = UseAnswer(4e11, 3e11, "bf16", 989.4, mfu=0.3, hfu=0.4)
    said = text(overview_html([dataclasses.replace(EAGER, use=use)], []))
    assert "MFU 30 % of 989 TFLOP/s (dense bf16) in the step; HFU 40 %" in said
    assert "clock that ran" not in said
    more = dataclasses.replace(use, hfu=0.3, mfu_at_clock=0.36, clock_mhz=1525.0, at_least=True)
    said = text(overview_html([dataclasses.replace(EAGER, use=more)], []))
    assert "MFU 30 % at least, of 989 TFLOP/s (dense bf16) in the step; at the clock" in said
    assert "at the clock that ran, 1525 MHz, MFU 36 %" in said


def test_findings_by_what_they_could_save() -> None:
    said = text(overview_html([EAGER], []))
    assert said.index("Steps wait for data 15 ms (75 %)") < said.index("Matrix work in full fp32 2 ms (10 %)")
    assert "bf16 autocast, or TF32" in said


def test_several_variants_are_named_and_compared() -> None:
    said = text(overview_html([EAGER, dataclasses.replace(EAGER, variant="fast")], [PAIR]))
    assert "what would help most in at most per step" in said
    assert "eager 20 ms -&gt; fast 10 ms per step: 50.0 % faster" in said


def test_a_program_on_the_cpu_has_no_gpu_and_no_bar() -> None:
    html = str(overview_html([CPU], []))
    assert "GPU busy" not in html
    assert "mostly" in html
    assert "No finding could save 5 % of a step or more." in html
    assert 'class="bar"' not in html


def test_uneven_steps_are_said() -> None:
    assert EAGER.step is not None
    uneven = dataclasses.replace(EAGER, step=dataclasses.replace(EAGER.step, mean_ns=100 * MS))
    assert "steps are uneven: 100 ms on average" in text(overview_html([uneven], []))


def test_before_the_end_of_a_run_there_is_none() -> None:
    assert overview_html([], []) is None


def test_names_are_escaped() -> None:
    hostile = dataclasses.replace(EAGER, parts=(PartAnswer("<script>alert(1)</script>", 0.9),))
    assert "<script>" not in str(overview_html([hostile], []))


def test_the_chart_of_several_variants_and_links_to_findings() -> None:
    html = str(
        overview_html([EAGER, dataclasses.replace(EAGER, variant="fast")], [PAIR], {EAGER.trial or "": "t1"})
    )
    assert "step time of each variant: eager 20 ms; fast 20 ms" in html
    assert 'href="#t1-finding-' in html
    assert "step time of each variant" not in str(overview_html([EAGER], []))


def test_the_energy_stands_beside_the_step_time() -> None:
    said = text(overview_html([dataclasses.replace(EAGER, energy_j=2.354)], []))
    assert "energy 2.354 J per step, of the GPU boards" in said
    assert said.index("step 20 ms") < said.index("energy 2.354 J") < said.index("GPU busy")
    assert "energy" not in text(overview_html([EAGER], []))
