"""The window: when a recorder is started and stopped."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest

from profrun.contract.finding import Finding
from profrun.contract.schedule import Schedule
from profrun.in_job import recorders
from profrun.in_job.config import HookConfig
from profrun.in_job.window import WindowDriver
from tests.in_job.lagging_gpu import Gpu


def test_the_profiler_is_started_and_stopped_with_the_gpu_idle() -> None:
    gpu = Gpu()
    changes: list[bool] = []
    config = HookConfig(folder="/t", hook="cuda", schedule=Schedule(1, 1, 2, 2))
    schedule = config.schedule.steps()
    driver = WindowDriver(config, schedule, recorders.make(config, schedule, gpu, fail), changes.append, fail)
    driver.begin(0)
    for step in range(10):
        driver.end(step)
        driver.begin(step + 1)
    driver.finish()
    assert gpu.calls == ["synchronize", "start", "synchronize", "stop"] * 2
    assert changes == [True, False] * 2
    assert driver.complete == 2


def test_a_window_cut_short_is_closed_once() -> None:
    gpu = Gpu()
    config = HookConfig(folder="/t", hook="cuda")
    schedule = config.schedule.steps()
    driver = WindowDriver(config, schedule, recorders.make(config, schedule, gpu, fail), lambda _: None, fail)
    for step in range(3):
        driver.begin(step)
        driver.end(step)
    driver.finish()
    driver.finish()
    assert gpu.calls == ["synchronize", "start", "synchronize", "stop"]
    assert (driver.opened, driver.complete) == (1, 0)


@pytest.mark.parametrize(("warmup", "drained"), [(1, []), (3, [4]), (0, [])])
def test_after_a_long_warm_up_the_gpu_is_waited_for(warmup: int, drained: list[int]) -> None:
    """Else the work of the recorded steps' time was launched before them, and belongs to no step."""
    calls: list[int] = []
    steps: list[int] = []
    recorder = SimpleNamespace(
        starts_at="warmup", start=lambda step: None, step=lambda: None, stop=lambda: None
    )
    config = HookConfig(folder="/t", hook="in_process", schedule=Schedule(2, warmup, 2))
    driver: Any = WindowDriver(
        config,
        config.schedule.steps(),
        recorder,
        lambda on: None,
        fail,
        lambda: calls.append(steps[-1]),
    )
    recorder.start = lambda step, whole=False: None
    for step in range(10):
        steps.append(step)
        driver.begin(step)
        driver.end(step)
    assert calls == drained
    assert driver.complete == 1


def fail(finding: Finding) -> None:
    pytest.fail(str(finding))


def test_a_profiler_that_cannot_be_switched_is_one_warning_and_no_crash() -> None:
    told: list[Finding] = []
    config = HookConfig(folder="/t", hook="roctx", schedule=Schedule(0, 0, 1))
    schedule = config.schedule.steps()
    driver = WindowDriver(
        config, schedule, recorders.make(config, schedule, None, fail), lambda _: None, told.append
    )
    driver.begin(0)
    driver.end(0)
    driver.finish()
    assert [finding.code for finding in told] == ["window-not-opened"]
    assert "no ROCTX library" in told[0].why


class Driver:
    """Stands for CUDA's driver and the framework that uses it without torch: JAX, CuPy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.used = False
        self.result = 0
        monkeypatch.setattr(recorders, "driver", lambda: self)
        monkeypatch.setattr(recorders, "wait_until_idle", self.wait)

    def wait(self, _torch: object) -> bool:
        self.calls.append("wait")
        return self.used

    def cuProfilerStart(self) -> int:
        self.calls.append("start")
        return self.result

    def cuProfilerStop(self) -> int:
        self.calls.append("stop")
        return 0


CPU_TORCH = SimpleNamespace(
    cuda=SimpleNamespace(is_initialized=lambda: False, is_available=lambda: False), version=None
)


@pytest.mark.parametrize("torch", [None, CPU_TORCH], ids=["no torch", "torch without CUDA"])
def test_a_program_that_uses_the_gpu_without_torch_is_recorded_from_its_first_use(
    monkeypatch: pytest.MonkeyPatch, torch: Any
) -> None:
    gpu = Driver(monkeypatch)
    config = HookConfig(folder="/t", hook="cuda", schedule=Schedule(0, 0, 3))
    schedule = config.schedule.steps()
    driver = WindowDriver(
        config, schedule, recorders.make(config, schedule, torch, fail), lambda _: None, fail
    )
    driver.begin(0)
    assert "start" not in gpu.calls
    driver.end(0)
    gpu.used = True
    for step in (1, 2):
        driver.begin(step)
        driver.end(step)
    assert [call for call in gpu.calls if call != "wait"] == ["start", "stop"]
    assert gpu.calls[-2:] == ["wait", "stop"]
    assert driver.shortfall(3) is None


def test_a_program_that_never_uses_a_gpu_is_told_so_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    Driver(monkeypatch)
    config = HookConfig(folder="/t", hook="cuda", schedule=Schedule(0, 0, 1))
    schedule = config.schedule.steps()
    driver = WindowDriver(
        config, schedule, recorders.make(config, schedule, None, fail), lambda _: None, fail
    )
    driver.begin(0)
    driver.end(0)
    found = driver.shortfall(9)
    assert found is not None
    assert (found.code, found.why) == ("window-not-opened", "this process has not used a CUDA GPU")


def test_a_driver_that_refuses_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Driver(monkeypatch)
    gpu.used, gpu.result = True, 999
    told: list[Finding] = []
    config = HookConfig(folder="/t", hook="cuda", schedule=Schedule(0, 0, 2))
    schedule = config.schedule.steps()
    driver = WindowDriver(
        config, schedule, recorders.make(config, schedule, None, fail), lambda _: None, told.append
    )
    driver.begin(0)
    driver.begin(1)
    assert [finding.why for finding in told] == ["the CUDA driver's cuProfilerStart failed with CUresult 999"]


class StepCounter:
    """A recorder that only counts what it is told."""

    names_steps = is_torch_profiler = False
    memory_factor = 1.0
    emitter = None

    def __init__(self, starts_at: Literal["warmup", "active"]) -> None:
        self.starts_at = starts_at
        self.calls: list[str] = []

    def start(self, step: int, *, whole: bool = False) -> None:
        self.calls.append(f"start {step}")

    def step(self) -> None:
        self.calls.append("step")

    def stop(self) -> None:
        self.calls.append("stop")

    def discard(self) -> None:
        self.calls.append("discard")


@pytest.mark.parametrize(
    ("starts_at", "calls"),
    [("warmup", ["start 1", "step", "step", "stop"]), ("active", ["start 2", "step", "stop"])],
)
def test_a_recorder_is_started_where_it_asks_for(
    starts_at: Literal["warmup", "active"], calls: list[str]
) -> None:
    recorder = StepCounter(starts_at)
    config = HookConfig(folder="/t", hook="in_process", schedule=Schedule(1, 1, 2))
    schedule = config.schedule.steps()
    driver = WindowDriver(config, schedule, recorder, lambda _: None, fail)
    for step in range(6):
        driver.begin(step)
        driver.end(step)
    assert recorder.calls == calls


def test_what_was_warmed_up_for_steps_that_were_none_is_discarded() -> None:
    recorder = StepCounter("warmup")
    config = HookConfig(folder="/t", hook="in_process", schedule=Schedule(0, 2, 2))
    schedule = config.schedule.steps()
    driver = WindowDriver(config, schedule, recorder, lambda _: None, fail)
    driver.begin(0)
    assert driver.reset()
    driver.begin(0)
    driver.finish()
    assert recorder.calls == ["start 0", "discard", "start 0", "stop"]
