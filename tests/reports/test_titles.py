"""What a report and its tabs are called."""

from __future__ import annotations

import pytest

from profrun.reports.titles import run_title, tab_name
from profrun.store.run_answer import StepAnswer, VariantAnswer


def answer(ns: int | None, *gpus: str) -> VariantAnswer:
    step = None if ns is None else StepAnswer(ns, ns, ns, 1, 5, "wall")
    return VariantAnswer("v", step=step, gpus=gpus)


@pytest.mark.parametrize(
    ("answers", "title"),
    [
        ([], "hf"),
        ([answer(22_600_000, "NVIDIA H200")], "hf on H200: 22.6 ms"),
        ([answer(None, "AMD Instinct MI300X")], "hf on MI300X"),
        ([answer(22_600_000)], "hf: 22.6 ms"),
        (
            [answer(22_300_000, "NVIDIA H200"), answer(15_500_000, "NVIDIA H200")],
            "hf on H200: 15.5 to 22.3 ms (2 variants)",
        ),
        ([answer(900_000), answer(1_500_000), answer(None)], "hf: 900 us to 1.5 ms (3 variants)"),
    ],
)
def test_the_title_states_gpu_and_step_time(answers: list[VariantAnswer], title: str) -> None:
    assert run_title("hf", answers) == title


def test_a_tab_states_what_tells_it_apart() -> None:
    assert tab_name("baseline", "torch") == "baseline, torch"
    assert tab_name("baseline", "nsys", blocking=True) == "baseline, nsys, blocking"
    assert tab_name("default", "torch", named=False) == "torch"
