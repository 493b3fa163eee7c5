"""Collectives on the CPU that nothing hides: steps of 100 us of one or two processes."""

from __future__ import annotations

from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.rules.finding import RuleFinding
from profrun.analysis.rules.step_cost import UnprofiledStep
from tests.analysis.kit import Row, memory_trace, step
from tests.analysis.rules.cases import NVJET, US

STEP = step(0, 0, 100 * US)
WORK: Row = ("op", "aten::mm", 0, 30 * US, "main")


def gloo(ts: int, dur: int, track: str = "gloo") -> Row:
    """A collective, us."""
    return ("range", "gloo:all_reduce", ts * US, dur * US, track)


def ask(rows: list[Row], unprofiled: UnprofiledStep | None = None, ranks: int = 1) -> list[RuleFinding]:
    """The findings of the rule."""
    found = diagnose(memory_trace(rows, ranks=ranks), unprofiled=unprofiled)
    return [one for one in found if one.code == "cpu-communication"]


def test_operators_of_any_thread_hide_a_collective() -> None:
    """40 us of collectives in two threads: 10 us beside aten::mm, 5 us beside one of the backward.

    All of them could be gained, because operators beside a collective share the cores with it.
    """
    backward: Row = ("op", "autograd::engine::evaluate_function: AddmmBackward0", 50 * US, 5 * US, "autograd")
    (found,) = ask([STEP, WORK, backward, gloo(20, 20), gloo(40, 20, "gloo 2")])
    assert found.what.startswith(
        "25 us per step pass in collectives on the CPU (2 per step) while no operator"
    )
    assert found.gain_ns == 40 * US
    assert found.evidence["beside_operators_ns_per_step"] == 15 * US
    assert found.evidence["operators_ns_per_step"] == 35 * US
    assert [(row.name, row.calls) for row in found.rows] == [("gloo:all_reduce", 2)]


def test_it_is_the_mean_over_the_ranks() -> None:
    second = [step(0, 0, 100 * US, track="r1:main"), gloo(40, 60, "r1:gloo")]
    (found,) = ask([STEP, WORK, gloo(40, 20), *second], ranks=2)
    assert found.gain_ns == 40 * US
    assert found.what.startswith("40 us per step pass in collectives on the CPU (1 per step)")


def test_without_a_profiler_the_operators_take_at_least_a_third() -> None:
    """30 us of operators are at least 10 us of a step of 45 us, so at most 35 us are left."""
    known = UnprofiledStep(45 * US, 45 * US, 45 * US, 3, 30, "wall")
    (found,) = ask([STEP, WORK, gloo(30, 60)], known)
    assert (found.gain_ns, found.step_ns) == (35 * US, 45 * US)


def test_a_program_on_a_gpu_is_asked_by_its_gpu() -> None:
    assert ask([STEP, WORK, gloo(30, 60), ("kernel", NVJET, 5 * US, 5 * US, "stream 7")]) == []
