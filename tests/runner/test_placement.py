"""Where the windows of profiled trials lie after an unprofiled trial has shown the phases of the program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profrun.analysis.trace.run_steps import RunSteps
from profrun.analysis.trace.steadiness import RunPhase, Steadiness
from profrun.contract.schedule import STEADY, Schedule
from profrun.plans.model import Plan
from profrun.runner.drive import drive
from profrun.runner.interrupt import Interrupts
from profrun.runner.placement import Placer, placed
from profrun.store.documents import read_command
from profrun.store.runs import Run
from profrun.store.state import read_state
from tests.runner.scripted import Scripted, Watcher, begin, leave, new_run
from tests.tracekit import make_trace

MS = 1_000_000
SPEC = "name: t\ncommand: python x.py\nvariants: {a: {}, b: {}}\ncollectors: [none, torch]\n"
BOOST = [2.94] * 18 + [3.42] * 582


def phases(*parts: tuple[int, float], steady: int | None, window: int | None = 0) -> Steadiness:
    """A run of phases, each (steps, ms per step), whose window lies in the given one."""
    found, at, first = [], 0, 0
    for level, (steps, ms) in enumerate(parts):
        end = at + int(steps * ms * MS)
        found.append(RunPhase(first, first + steps - 1, at, end, steps, ms * MS, level))
        at, first = end, first + steps
    numbers = np.arange(first, dtype=np.int64)
    nowhere = np.zeros(first, dtype=np.bool_)
    steps_of_run = RunSteps(numbers, numbers, numbers + 1, nowhere, nowhere)
    median = None if steady is None else found[steady].median_ns
    return Steadiness(tuple(found), steady, window, steps_of_run, median)


@pytest.mark.parametrize(
    ("schedule", "found", "wait"),
    [
        # 1 s of steps behind the begin at step 18, or the middle of the phase where that comes earlier
        (Schedule(), phases((18, 2.94), (5000, 3.42), steady=1), 18 + 293),
        (Schedule(), phases((18, 2.94), (304, 3.42), steady=1), 18 + 100),
        # 100 steps of warm-up fit into the phase, and nothing more
        (Schedule(), phases((18, 2.94), (104, 3.42), steady=1), 18),
        # they do not fit: the warm-up stays one step
        (Schedule(), phases((18, 2.94), (84, 3.42), steady=1), 18 + 40),
        (Schedule(skip_first=0, active=104, warmup=0), phases((18, 2.9), (104, 3.4), steady=1), 18),
        # as many steps as came before, if that is more than 1 s
        (Schedule(), phases((500, 2.94), (5000, 3.42), steady=1), 1000),
        (Schedule(), phases((3, 9000.0), (100, 3000.0), steady=1), 6),
        (Schedule(STEADY), phases((5000, 3.42), steady=0), 293),
        (Schedule(STEADY, skip_first=400), phases((5000, 3.42), steady=0), 0),
    ],
)
def test_the_window_lies_in_the_steady_phase(schedule: Schedule, found: Steadiness, wait: int) -> None:
    there = placed(schedule, found, "000-a-none-r1")
    assert there is not None
    assert (there.schedule.wait, there.schedule.skip_first) == (wait, schedule.skip_first)
    steps = there.schedule.steps()
    assert found.steady is not None
    phase = found.phases[found.steady]
    assert steps.begin is not None
    assert steps.last is not None
    assert phase.first_step <= steps.begin <= steps.last <= phase.last_step


@pytest.mark.parametrize(("ms", "warmup"), [(3.42, 100), (50.0, 10), (900.0, 1)])
def test_a_moved_window_has_half_a_second_of_warm_up(ms: float, warmup: int) -> None:
    """While a profiler starts, the GPU rests, and its first steps after that are faster."""
    there = placed(Schedule(), phases((18, 0.8 * ms), (600, ms), steady=1), "t")
    assert there is not None
    assert there.schedule.warmup == warmup


@pytest.mark.parametrize(("wait", "between"), [(None, 1), (STEADY, 0)])
def test_several_cycles_stay_as_far_apart_as_they_were(wait: None, between: int) -> None:
    there = placed(Schedule(wait, 1, 2, repeat=3), phases((18, 2.94), (600, 3.42), steady=1), "t")
    assert there is not None
    steps = there.schedule.steps()
    assert (steps.begin, there.schedule.wait) == (18 + 293, between)
    assert steps.last == 18 + 293 + 3 * (3 + between) - between - 1


@pytest.mark.parametrize(
    ("schedule", "found"),
    [
        (Schedule(), phases((18, 3.42), (582, 3.42), steady=0)),  # the window is in the steady phase
        (Schedule(), phases((18, 3.42), (582, 3.47), steady=1)),  # less than 2 %
        (Schedule(), phases((18, 2.94), (582, 3.42), steady=1, window=None)),  # no window was seen
        (Schedule(), phases((7, 3.42), steady=None, window=None)),  # too few steps to tell
        (Schedule(STEADY), phases((7, 3.42), steady=None, window=None)),
        (Schedule(STEADY, active=600), phases((18, 2.94), (582, 3.42), steady=1)),  # the hook's rule
    ],
)
def test_the_window_stays_where_there_is_no_reason_to_move_it(schedule: Schedule, found: Steadiness) -> None:
    assert placed(schedule, found, "t") is None


def test_a_steady_phase_that_is_too_short_for_the_window_is_said() -> None:
    there = placed(Schedule(active=50), phases((18, 2.94), (40, 3.42), steady=1), "000-a")
    assert there is not None
    assert there.schedule == Schedule(active=50)
    assert (there.finding.code, there.finding.severity) == ("window-does-not-fit", "info")
    assert "which has 40 steps: it does not fit into it" in str(there.finding)


def ready(root: Path, spec: str = SPEC, durs_ms: list[float] = BOOST) -> tuple[Run, Plan]:
    """A run whose first trial, of variant a without a profiler, has finished with these steps."""
    run, plan = new_run(root, spec)
    first = plan.trials[0]
    paths = begin(run.trial(first.id))
    run.log().append("started", first.id, attempt=1)
    leave(paths)
    starts = np.concatenate(([0], np.cumsum(durs_ms)))
    rows = [
        {
            "process": 0,
            "step": step,
            "ts_ns": int(starts[step] * MS),
            "dur_ns": int(dur * MS),
            "clock": "wall",
            "part": "active" if 2 <= step < 5 else "outside",
        }
        for step, dur in enumerate(durs_ms)
    ]
    make_trace(paths.trace, [], meta={"collector": "none"}, side={"step_times": rows}).close()
    return run, plan


def test_a_profiled_trial_of_the_same_variant_is_placed_by_the_first_unprofiled_one(tmp_path: Path) -> None:
    run, plan = ready(tmp_path)
    placer = Placer(run, plan)
    there = {trial.id: placer.place(trial) for trial in plan.trials}
    assert [trial for trial, place in there.items() if place is not None] == ["002-a-torch-r1"]
    found = there["002-a-torch-r1"]
    assert found is not None
    assert (found.schedule.wait, found.schedule.warmup) == (257, 100)
    assert str(found.finding) == (
        "recorded from step 357 on, in the steady phase: trial 000-a-none-r1 showed that steps 0-17 are "
        "14.0 % faster than the steady ones: 2.94 ms per step, not 3.42 ms; set schedule.wait to record "
        "elsewhere"
    )


@pytest.mark.parametrize(
    "more",
    ["schedule: {wait: 1}", "schedule: {skip_first: 3}", "ranges: {steps: off}", "launch_blocking: on"],
)
def test_a_job_that_says_where_its_window_is_keeps_it(tmp_path: Path, more: str) -> None:
    run, plan = ready(tmp_path, SPEC + more + "\n")
    moved = [Placer(run, plan).place(trial) is not None for trial in plan.trials]
    assert any(moved) == (more == "launch_blocking: on"), "a blocking trial goes by a blocking one"


def test_a_steady_program_is_not_moved_unless_the_job_asks_for_it(tmp_path: Path) -> None:
    for number, (more, wait) in enumerate((("", None), ("schedule: {wait: steady}\n", 248))):
        run, plan = ready(tmp_path / str(number), SPEC + more, [3.42] * 600)
        there = Placer(run, plan).place(plan.trials[2])
        assert (None if there is None else there.schedule.wait) == wait


def test_a_damaged_trace_moves_nothing(tmp_path: Path) -> None:
    run, plan = ready(tmp_path)
    (run.trial(plan.trials[0].id).trace / "step_times.parquet").write_text("no parquet")
    assert Placer(run, plan).place(plan.trials[2]) is None


def test_an_unexpected_error_costs_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("profrun.runner.trial_files.sources", lambda record: [])
    monkeypatch.setattr("profrun.runner.placement.placed", fails)
    run, plan = ready(tmp_path)
    watcher = Watcher()
    drive(run, plan, Scripted(), cwd=run.path, observer=watcher, interrupts=Interrupts())
    (said,) = (note for note in watcher.notes if "window" in note)
    assert said.startswith("002-a-torch-r1: its window stays where the schedule has it (ZeroDivisionError")
    assert read_state(run).phase == "finished"


@pytest.mark.parametrize("concurrent", [False, True])
def test_what_runs_one_after_another_is_placed_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrent: bool
) -> None:
    """The rest of a run, twice: a resumed run places a trial where it was placed before."""
    monkeypatch.setattr("profrun.runner.trial_files.sources", lambda record: [])
    run, plan = ready(tmp_path, SPEC + "repeats: 2\n")
    assert read_state(run).trials[0].trace is not None
    for state in ("failed", "finished"):
        engine, watcher = Scripted(concurrent=concurrent, ends={"002-a-torch-r1": state}), Watcher()
        interrupts = Interrupts()
        drive(
            run,
            plan,
            engine,
            cwd=run.path,
            observer=watcher,
            interrupts=interrupts,
            repeat_failed=True,
        )
        told = [note for note in watcher.notes if note.startswith("recorded from step 357 on")]
        assert len(told) == (not concurrent)
        command = read_command(run.trial("002-a-torch-r1"))
        assert command is not None
        assert command.schedule.wait == (1 if concurrent else 257)
        assert [finding.code for finding in command.findings] == ([] if concurrent else ["window-moved"])
    other = read_command(run.trial("003-b-torch-r1"))
    assert other is not None
    assert (other.schedule.wait, other.findings) == (1, ()), "nothing is known of this variant"
