"""What a run measured: points, overheads and launch-blocking twins, by hand."""

from __future__ import annotations

from pathlib import Path

from profrun.contract.paths import TrialPaths
from profrun.contract.states import TrialState
from profrun.runner.points import overheads, points, twins
from profrun.store.documents import Steps
from profrun.store.state import TrialRecord


def _trial(
    variant: str, collector: str, blocking: bool, steps: tuple[int, ...], state: TrialState = "finished"
) -> TrialRecord:
    measured = Steps("optimizer", "wall", len(steps), steps, steps)
    return TrialRecord("x", 0, variant, collector, blocking, 1, state, TrialPaths(Path("x")), steps=measured)


TRIALS = [
    _trial("a", "none", False, (10, 10, 10)),
    _trial("a", "none", False, (30, 30, 30)),
    _trial("a", "none", False, (1000,), "failed"),  # what did not finish is no measurement
    _trial("a", "torch", False, (30,)),
    _trial("a", "none", True, (50, 70)),
    _trial("a", "torch", True, ()),
    _trial("b", "torch", False, (7,)),
]


def test_a_point_is_the_median_over_its_finished_trials() -> None:
    assert [(p.variant, p.collector, p.blocking, p.median_step_ns, p.trials) for p in points(TRIALS)] == [
        ("a", "none", False, 20, 2),
        ("a", "torch", False, 30, 1),
        ("a", "none", True, 60, 1),
        ("a", "torch", True, None, 0),
        ("b", "torch", False, 7, 1),
    ]


def test_overhead_is_profiled_over_unprofiled_of_the_same_point() -> None:
    found = overheads(points(TRIALS))
    assert [(r.of.collector, r.of.blocking, r.value) for r in found] == [
        ("torch", False, 1.5),
        ("torch", True, None),
    ]  # b has no unprofiled trials: no line, not a ratio of nothing


def test_twins_are_blocking_over_not() -> None:
    assert [(r.of.collector, r.value) for r in twins(points(TRIALS))] == [("none", 3.0), ("torch", None)]
