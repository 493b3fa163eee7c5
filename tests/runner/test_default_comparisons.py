"""Which points a run has, and which of them are compared at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.analysis.compare import ComparedTrial
from profrun.analysis.compare.compared_trial import StepWork
from profrun.runner.default_comparisons import Point, compare_pairs, default_pairs, points_of
from profrun.runner.trial_files import prepare
from profrun.store.events import EventLog
from profrun.store.state import read_trial
from tests.analysis.compare.trials import trial as made_trial
from tests.runner.scripted import Scripted, leave, new_run
from tests.tracekit import make_trace


def _points(folder: Path, spec: str, vendor: str = "auto") -> list[Point]:
    """The points of a run whose trials all finished with a trace of one step."""
    run, plan = new_run(folder, spec, vendor=vendor)
    prepared = Scripted().prepare(plan, plan.trials, run, folder)
    for trial in plan.trials:
        prepare(run, prepared, trial, Scripted())
        EventLog(run.events).append("started", trial.id, attempt=1)
        leave(run.trial(trial.id), steps=[1000] * 3, collector=trial.collector)
        make_trace(run.trial(trial.id).trace, [("step", "profrun.step#1", 0, 1000, "main")]).close()
    return points_of([read_trial(run, trial.id) for trial in plan.trials])


def test_timeline_and_counters_on_amd_are_two_points(tmp_path: Path) -> None:
    """Both become rocprof there; under counters kernels run one at a time, so its times are no overhead."""
    spec = "name: x\ncommand: run\ncollectors: [none, timeline, counters]\nrepeats: 2\n"
    points = _points(tmp_path, spec, vendor="amd")
    assert [(point.name, point.serial, len(point.trials)) for point in points] == [
        ("default-none", False, 2),
        ("default-timeline", False, 2),
        ("default-counters", True, 2),
    ]
    assert {record.profiler for point in points[1:] for record in point.trials} == {"rocprof"}
    assert [(pair.kind, pair.a.name, pair.b.name) for pair in default_pairs(points)] == [
        ("overhead", "default-none", "default-timeline")
    ]


@pytest.mark.thorough
def test_every_point_is_compared_with_what_it_differs_from_in_one_way(tmp_path: Path) -> None:
    spec = (
        "name: x\ncommand: run {n}\nvariants: {a: {n: 1}, b: {n: 2}}\n"
        "collectors: [none, torch]\nlaunch_blocking: both\n"
    )
    assert [(pair.kind, pair.a.name, pair.b.name) for pair in default_pairs(_points(tmp_path, spec))] == [
        ("variant", "a-none", "b-none"),
        ("blocking", "a-none", "a-none-blocking"),
        ("blocking", "b-none", "b-none-blocking"),
        ("overhead", "a-none", "a-torch"),
        ("overhead", "b-none", "b-torch"),
        ("overhead", "a-none-blocking", "a-torch-blocking"),
        ("overhead", "b-none-blocking", "b-torch-blocking"),
        ("change", "a-torch", "b-torch"),
    ]


def test_a_pair_that_is_refused_says_how_to_go_on(tmp_path: Path) -> None:
    """One variant has a batch twice as large: other work per step."""
    spec = "name: x\ncommand: run {batch}\nvariants: {a: {batch: 1}, b: {batch: 2}}\ncollectors: [torch]\n"
    points = _points(tmp_path, spec)

    def trials_of(point: Point) -> list[ComparedTrial]:
        values = {"batch": 1 if point.variant == "a" else 2}
        label = f"{point.name}-r1"
        return [made_trial(name=point.variant, label=label, values=values, work=StepWork(), job=point.run)]

    (pair,) = compare_pairs(default_pairs(points), points, trials_of, trials_of)
    assert (pair.verdict, pair.ratio) == ("incomparable", None)
    run = points[0].run
    assert pair.text.startswith(
        "a-torch 100 ns, b-torch 100 ns per step, no verdict: different work per step"
    )
    command = f"profrun compare {run}/a-torch vs {run}/b-torch --allow work"
    assert pair.commands == (("to compare them all the same", command),)
