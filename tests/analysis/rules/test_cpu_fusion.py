"""Chains of point-wise operators on the CPU."""

from __future__ import annotations

import pytest

from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.rules.finding import RuleFinding
from profrun.analysis.rules.step_cost import UnprofiledStep
from tests.analysis.kit import Row, memory_trace, step
from tests.analysis.rules.cases import NVJET, US

STEP = step(0, 0, 1000 * US)
LINEAR: Row = ("op", "aten::linear", 0, 100 * US, "main")
MUL: Row = ("op", "aten::mul", 100 * US, 100 * US, "main")
TANH: Row = ("op", "aten::tanh", 210 * US, 100 * US, "main")
CHAIN = [LINEAR, MUL, TANH]  # from 100 to 310 us


def ask(rows: list[Row], unprofiled: UnprofiledStep | None = None) -> list[RuleFinding]:
    """The findings of the rule."""
    found = diagnose(memory_trace(rows), unprofiled=unprofiled)
    return [one for one in found if one.code == "cpu-pointwise"]


def test_a_chain_counts_from_its_first_operator_to_its_last() -> None:
    (found,) = ask([STEP, *CHAIN])
    assert found.what == (
        "1 chain of point-wise operators per step, the longest of 2 operators, takes 210 us per step, "
        "21.0 % of the recorded step"
    )
    assert (found.gain_ns, found.step_ns) == (210 * US, 1000 * US)
    assert [(row.name, row.calls) for row in found.rows] == [("aten::mul", 1), ("aten::tanh", 1)]


@pytest.mark.parametrize(
    ("between", "gain_us"),
    [
        (("op", "aten::view", 310 * US, 5 * US, "main"), 310),
        (("op", "aten::mean", 310 * US, 5 * US, "main"), 310),
        (("op", "aten::mm", 310 * US, 5 * US, "main"), 210),
        (("op", "aten::mm", 310 * US, 5 * US, "other"), 310),
        (("op", "aten::mul", 220 * US, 5 * US, "main"), 310),
        (("range", "nn.Module: 0 (GELU)", 310 * US, 200 * US, "main"), 310),
    ],
    ids=["a view", "a reduction", "a product", "on another thread", "inside of an operator", "a module"],
)
def test_what_lies_between_two_operators_of_a_chain(between: Row, gain_us: int) -> None:
    (found,) = ask([STEP, *CHAIN, between, ("op", "aten::add_", 320 * US, 90 * US, "main")])
    assert found.gain_ns == gain_us * US


@pytest.mark.parametrize(("at_us", "gain_us"), [(410, 410), (411, 210)])
def test_a_longer_pause_than_the_operators_beside_it_ends_a_chain(at_us: int, gain_us: int) -> None:
    (found,) = ask([STEP, *CHAIN, ("op", "aten::add", at_us * US, 100 * US, "main")])
    assert found.gain_ns == gain_us * US


@pytest.mark.parametrize(
    "around",
    [
        "Optimizer.step#SGD.step",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "CompiledFunction",
        "entire_frame_compile (dynamo_timed)",
    ],
)
def test_operators_that_the_remedy_does_not_reach_do_not_count(around: str) -> None:
    assert ask([STEP, *CHAIN, ("range", around, 90 * US, 500 * US, "main")]) == []


@pytest.mark.parametrize(
    "rows",
    [
        [*CHAIN, ("kernel", NVJET, 40 * US, 5 * US, "stream 7")],
        [MUL, ("op", "aten::sum", 200 * US, 700 * US, "main")],
        [("op", "aten::mul", 0, 20 * US, "main"), ("op", "aten::add", 20 * US, 20 * US, "main")],
        [("op", "triton::mul", 0, 90 * US, "main"), ("op", "aten::add", 90 * US, 20 * US, "main")],
    ],
    ids=["a GPU works", "one is a reduction", "they take 4 % of the step", "of another library"],
)
def test_what_is_no_finding(rows: list[Row]) -> None:
    assert ask([STEP, *rows]) == []


def test_a_chain_does_not_reach_into_the_next_step() -> None:
    steps = [step(number, number * 300 * US, 300 * US) for number in range(3)]
    ends = [("op", "aten::mul", (number * 300 + 280) * US, 20 * US, "main") for number in range(3)]
    begins: list[Row] = [("op", "aten::add", number * 300 * US, 20 * US, "main") for number in range(3)]
    assert ask([*steps, *begins, *ends]) == []


def test_without_a_profiler_the_rest_of_the_step_takes_at_least_a_third() -> None:
    """790 us of the recorded step are at least 263 us of one of 400 us."""
    known = UnprofiledStep(400 * US, 400 * US, 400 * US, 3, 30, "wall")
    (found,) = ask([STEP, *CHAIN], known)
    assert found.gain_ns == pytest.approx(400 * US - 790 * US / 3, abs=1)


def test_a_program_that_is_compiled_in_part_is_told_so() -> None:
    (found,) = ask([STEP, *CHAIN, ("op", "Torch-Compiled Region: 0/0", 500 * US, 100 * US, "main")])
    assert "outside of it" in found.fix
