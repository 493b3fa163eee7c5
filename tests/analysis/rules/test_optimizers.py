"""What a fused optimizer could gain on the CPU: one step of 100 us with two updates of parameters."""

from __future__ import annotations

import pytest

from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.rules.finding import RuleFinding
from profrun.analysis.rules.step_cost import UnprofiledStep
from tests.analysis.kit import Row, memory_trace, step
from tests.analysis.rules.cases import NVJET, US

ADAM: list[Row] = [
    ("range", "Optimizer.step#Adam.step", 20 * US, 10 * US, "main"),
    ("op", "aten::mul_", 21 * US, 2 * US, "main"),
]
SGD: list[Row] = [
    ("range", "Optimizer.step#SGD.step", 50 * US, 30 * US, "main"),
    ("op", "aten::add_", 51 * US, 2 * US, "main"),
    ("op", "aten::add_", 60 * US, 2 * US, "main"),
]
STEP = step(0, 0, 100 * US)


def ask(rows: list[Row], unprofiled: UnprofiledStep | None = None) -> list[RuleFinding]:
    """The findings of the rule."""
    found = diagnose(memory_trace(rows), unprofiled=unprofiled)
    return [one for one in found if one.code == "cpu-optimizer"]


def renamed(rows: list[Row], before: str, after: str) -> list[Row]:
    """These rows, with another name in place of one."""
    return [(kind, name.replace(before, after), *rest) for kind, name, *rest in rows]


def test_the_steps_of_all_optimizers_that_could_be_fused_count() -> None:
    (found,) = ask([STEP, *ADAM, *SGD])
    assert found.what.startswith("Adam and SGD update parameters with 3 operators per step, 40 us per step")
    assert found.gain_ns == 40 * US
    assert [(row.name, row.calls) for row in found.rows] == [("aten::add_", 2), ("aten::mul_", 1)]


@pytest.mark.parametrize(
    "rows",
    [
        [*ADAM, *renamed(SGD, "aten::add_", "aten::_fused_sgd_")],
        [*ADAM, *renamed(SGD, "aten::add_", "Torch-Compiled Region: 0/0")],
        [*ADAM, *renamed(SGD, "#SGD", "#LBFGS")],
        [*ADAM, *renamed(SGD, "Optimizer.step#", "update ")],
    ],
    ids=["one is fused", "one is compiled", "one cannot be fused", "not the range of an optimizer"],
)
def test_others_do_not_count(rows: list[Row]) -> None:
    (found,) = ask([STEP, *rows])
    assert found.gain_ns == 10 * US


@pytest.mark.parametrize(
    "rows",
    [[*ADAM, ("kernel", NVJET, 40 * US, 5 * US, "stream 7")], renamed(ADAM, "Adam", "LBFGS")],
    ids=["a GPU works", "it cannot be fused"],
)
def test_what_is_no_finding(rows: list[Row]) -> None:
    assert ask([STEP, *rows]) == []


def test_without_a_profiler_the_rest_of_the_step_takes_at_least_a_third() -> None:
    """60 us of the recorded step are at least 20 us of one of 45 us."""
    known = UnprofiledStep(45 * US, 45 * US, 45 * US, 3, 30, "wall")
    (found,) = ask([STEP, *ADAM, *SGD], known)
    assert (found.gain_ns, found.step_ns) == (25 * US, 45 * US)
