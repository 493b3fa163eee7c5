"""Where a window that waits for the steady state opens: one process, several ranks, short programs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

import pytest

from profrun.contract.command import Command
from profrun.contract.recording import Rank
from profrun.contract.schedule import STEADY, Schedule
from profrun.in_job import timing, window_placer
from profrun.in_job.config import HookConfig
from profrun.in_job.hook_process import HookProcess
from profrun.in_job.step_follower import StepFollower
from profrun.in_job.window import WindowDriver

MS = 1_000_000


class Clock:
    """Stands for ``time``: the host's clock goes on when a step is made."""

    def __init__(self) -> None:
        self.now = 0

    def perf_counter_ns(self) -> int:
        return self.now

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (timing, window_placer):
        monkeypatch.setattr(module, "time", clock)
    return clock


class Ranges:
    """No ranges."""

    sink = None

    def begin_step(self, number: int) -> None:
        """Nothing."""

    def end_step(self) -> None:
        """Nothing."""


class Recorder:
    """Remembers at which steps it was started."""

    starts_at: Literal["warmup"] = "warmup"
    names_steps = is_torch_profiler = False
    memory_factor = 1.0
    emitter = None

    def __init__(self) -> None:
        self.started: list[int] = []

    def start(self, step: int, *, whole: bool = False) -> None:
        self.started.append(step)

    def step(self) -> None:
        """Nothing."""

    stop = discard = step


class Program:
    """One rank of a program that calls ``profrun.step()``."""

    def __init__(self, folder: Path, rank: Rank = Rank(), **config: Any) -> None:  # noqa: B008
        (folder / "hook").mkdir(exist_ok=True)
        config.setdefault("schedule", Schedule(STEADY, 1, 2))
        self.process = HookProcess(HookConfig(str(folder), hook="in_process", **config))
        self.rank = rank
        self.recorder = Recorder()
        self.looks = 0
        self.window = WindowDriver(
            self.process.config, self.process.schedule, self.recorder, lambda _: None, self.process.warn
        )
        ranges: Any = Ranges()
        self.steps = StepFollower(self.process, self.window, ranges, lambda _: None, lambda: None)

    def step(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(window_placer, "current", self._current)
        self.steps.finder.explicit()

    def _current(self, _torch: object) -> Rank:
        self.looks += 1
        return self.rank

    @property
    def told(self) -> str:
        return str(self.steps.placer.explain(self.steps.finder.count))


def test_the_window_opens_when_the_steps_are_steady_and_says_so(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(tmp_path)
    for step in range(1000):
        clock.now += (2_940_000 if step < 30 else 3_420_000) if step else 0
        program.step(monkeypatch)
    (opened,) = program.recorder.started
    assert 585 <= opened <= 760
    assert program.window.complete == 1
    assert program.told == (
        f"the window opens at step {opened + 1}, after {(29 * 2.94 + (opened - 30) * 3.42) / 1e3:.4g} s, "
        "when step times were steady (3.42 ms per step; the last two blocks of steps differ by 0.0 %)"
    )
    active = [
        row.step for row in program.steps.timer.steps(program.process.schedule) if row.window == "active"
    ]
    assert active == [opened + 1, opened + 2]
    assert program.looks < 20, "between two looks nothing is asked"


@pytest.mark.parametrize("lead", [-30, -1, 0, 1, 30])
def test_all_ranks_open_the_window_at_the_same_step(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, lead: int
) -> None:
    """``lead``: how many steps the host of rank 1 is ahead of that of rank 0."""
    leader, other = (Program(tmp_path, Rank(rank, rank, 2)) for rank in (0, 1))
    for step in range(1600):
        clock.now += 3 * MS
        if step + min(lead, 0) >= 0:
            other.step(monkeypatch)
        if step - max(lead, 0) >= 0:
            leader.step(monkeypatch)
    assert leader.recorder.started == other.recorder.started
    assert len(other.recorder.started) == 1
    assert other.told == "None", "one rank says it"
    assert other.looks < 120, "it looks every 0.2 s"


def test_a_rank_that_learns_of_it_late_says_so(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Program(tmp_path, Rank(1, 1, 2))
    for step in range(300):
        clock.now += 10 * MS
        if step == 200:
            window_placer.place_file(other.process.config.paths).write_text("150\n")
        other.step(monkeypatch)
    (opened,) = other.recorder.started
    assert 200 <= opened <= 240
    assert f"at step {opened} of this rank and at step 150 of rank 0" in other.told


def test_a_further_pass_of_a_counter_collection_opens_it_at_the_step_of_the_first_pass(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    for run, step_ns in ((0, 3 * MS), (1, 9 * MS)):
        program = Program(tmp_path, run=run)
        for _ in range(1000):
            program.step(monkeypatch)
            clock.now += step_ns
        opened += program.recorder.started
    assert len(opened) == 2
    assert opened[0] == opened[1] >= 600


def test_steps_that_turn_out_to_be_none_are_forgotten(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """900 calls of a module, and only then the program calls ``profrun.step()``."""
    program = Program(tmp_path, schedule=Schedule(STEADY, 300, 2))
    monkeypatch.setattr(window_placer, "current", lambda _: Rank())
    module = type("Module", (), {})()
    for _ in range(900):
        program.steps.finder.called("module", module)
        clock.now += 3 * MS
    assert program.process.schedule.begin is not None
    for _ in range(1200):
        clock.now += 3 * MS
        program.step(monkeypatch)
    assert program.steps.finder.how == "explicit"
    first, again = program.recorder.started
    assert first >= 600
    assert again >= 10, "they are counted from 0 again"
    assert program.told.startswith(f"the window opens at step {again + 300},")


@pytest.mark.parametrize(("hook", "severity"), [("in_process", "critical"), ("none", "info")])
def test_a_program_that_ends_before_it_was_steady_is_told_what_to_do(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, hook: str, severity: str
) -> None:
    program = Program(tmp_path)
    monkeypatch.setattr(type(program.process.config), "windowed", hook != "none")
    for _ in range(60):
        program.step(monkeypatch)
        clock.now += 3 * MS
    finding = program.steps.placer.explain(60)
    assert finding is not None
    assert (finding.code, finding.severity) == ("steady-not-reached", severity)
    assert str(finding) == (
        "the window that waits for the steady state did not open: the program made 60 steps in 180 ms: the "
        "earliest is after 12 steps and 2 s of them; run more steps, or give a number: --set schedule.wait=42"
    )
    assert program.steps.placer.explain(0) is None


def test_a_program_that_is_never_steady_is_recorded_after_a_minute(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(tmp_path)
    for step in range(400):
        program.step(monkeypatch)
        clock.now += int((100 + step) * MS)
    (opened,) = program.recorder.started
    assert 200 < opened < 390
    assert f"and the window opens at step {opened + 1} all the same: the last two blocks" in program.told


def test_a_few_steps_of_many_minutes_are_recorded_too(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(tmp_path)
    for _ in range(10):
        program.step(monkeypatch)
        clock.now += 300_000 * MS
    assert program.recorder.started == [3]


@pytest.mark.parametrize(("wait", "rank", "left"), [(STEADY, 0, ""), (STEADY, 1, "7\n"), (3, 0, "7\n")])
def test_rank_0_clears_what_an_earlier_attempt_left(tmp_path: Path, wait: Any, rank: int, left: str) -> None:
    command = Command("t", "r", "j", "v", "none", (), "/", schedule=Schedule(wait))
    paths = HookConfig(str(tmp_path)).paths
    paths.hook.mkdir()
    window_placer.place_file(paths).write_text("7\n")
    window_placer.prepare(command, paths, rank)
    assert window_placer.place_file(paths).read_text() == left
