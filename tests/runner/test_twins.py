"""The step time of a trial's variant without a profiler, from its run."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from profrun.analysis.rules.step_cost import UnprofiledStep
from profrun.contract.codec import to_json
from profrun.contract.steps import Anchor, StepsFile, StepTime
from profrun.runner.twins import unprofiled_step
from profrun.store.files import write_json
from profrun.store.runs import Run
from tests.analysis.rules.recordings import run_trial
from tests.runner.scripted import begin, leave, new_run

SPEC = """
name: t
command: python x.py
variants: {a: {}, b: {}}
collectors: [none, torch]
launch_blocking: both
repeats: 2
"""
US = 1000


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run all of whose trials have finished; a step of trial N takes N + 1 us."""
    made, plan = new_run(tmp_path, SPEC)
    for trial in plan.trials:
        paths = begin(made.trial(trial.id))
        paths.trace.mkdir()
        (paths.trace / "meta.json").write_text("{}")
        made.log().append("started", trial.id, attempt=1)
        leave(paths, steps=[(trial.index + 1) * US, (trial.index + 1) * US, 900 * US])
    return made


def asked(run: Run, name: str) -> UnprofiledStep | None:
    (found,) = run.path.glob(f"trials/*-{name}")
    return unprofiled_step(found / "trace")


def number(run: Run, name: str) -> int:
    (found,) = run.path.glob(f"trials/*-{name}")
    return int(found.name.split("-")[0]) + 1


def test_the_twins_are_the_trials_of_the_variant_without_a_profiler(run: Run) -> None:
    first, second = number(run, "a-none-r1") * US, number(run, "a-none-r2") * US
    assert asked(run, "a-torch-r1") == UnprofiledStep(
        ns=round(math.sqrt(first * second)),
        low_ns=min(first, second),
        high_ns=max(first, second),
        trials=2,
        steps=6,
        clock="wall",
        mean_ns=round(math.sqrt((2 * first + 900 * US) / 3 * (2 * second + 900 * US) / 3)),
    )
    other = asked(run, "b-torch-r2")
    assert other is not None
    assert other.low_ns == number(run, "b-none-r1") * US


def test_blocking_launches_have_twins_of_their_own(run: Run) -> None:
    found = asked(run, "a-torch-blocking-r1")
    assert found is not None
    assert found.low_ns == number(run, "a-none-blocking-r1") * US


def test_a_trial_without_a_profiler_has_no_twin(run: Run) -> None:
    assert asked(run, "a-none-r1") is None


def test_a_twin_that_failed_or_counts_other_steps_is_none(run: Run) -> None:
    for name, state in (("a-none-r1", "failed"), ("b-none-r1", "finished"), ("b-none-r2", "finished")):
        (folder,) = run.path.glob(f"trials/*-{name}")
        leave(run.trial(folder.name), state, steps=[5 * US])  # type: ignore[arg-type]
    for name in ("b-none-r1", "b-none-r2"):
        (folder,) = run.path.glob(f"trials/*-{name}")
        rows = (StepTime(0, 0, 5 * US, window="active"),)
        other = StepsFile(0, 5, "module", "wall", Anchor(0, 0, 0), steps=rows)
        write_json(folder / "raw/rank0/steps.json", to_json(other))
    found = asked(run, "a-torch-r1")
    assert found is not None
    assert (found.trials, found.ns) == (1, number(run, "a-none-r2") * US)
    assert asked(run, "b-torch-r1") is None


def test_a_trace_that_is_no_trials_has_none(tmp_path: Path, run: Run) -> None:
    assert unprofiled_step(tmp_path / "somewhere" / "trace") is None
    assert unprofiled_step(tmp_path) is None
    run.plan.write_text("{")  # a damaged run
    assert asked(run, "a-torch-r1") is None


@pytest.mark.parametrize(
    ("name", "ns", "steps"), [("hf", 22_923_296, 29), ("ddp", 10_348_624, 28), ("dead", 38_005_953, 30)]
)
def test_runs_of_an_h200(name: str, ns: int, steps: int, tmp_path: Path) -> None:
    found = unprofiled_step(run_trial(f"{name}/torch", tmp_path) / "trace")
    assert found is not None
    assert (found.ns, found.trials, found.steps, found.clock) == (ns, 1, steps, "cuda_event")
