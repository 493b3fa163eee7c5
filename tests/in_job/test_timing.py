"""Step times from GPU events."""

from __future__ import annotations

from profrun.contract.schedule import Schedule
from profrun.in_job.timing import StepTimer, anchor
from tests.in_job.lagging_gpu import Gpu

SCHEDULE = Schedule().steps()


def walk(gpu: Gpu, timer: StepTimer, times: list[float]) -> None:
    moment = timer.mark()
    gpu.run(0.0)
    for number, ms in enumerate(times):
        timer.start(moment)
        gpu.run(ms)
        moment = timer.mark()
        timer.end(number, moment)


def test_events_give_the_gpus_time_and_are_read_late() -> None:
    gpu = Gpu()
    timer = StepTimer(gpu)
    walk(gpu, timer, [1.5, 0.25, 2.0])
    assert timer.steps(SCHEDULE) == (), "nothing is known before the events are read"
    timer.read()
    assert [row.dur_ns for row in timer.steps(SCHEDULE)] == [1_500_000, 250_000], "the last is not over yet"
    timer.wait()
    assert [row.dur_ns for row in timer.steps(SCHEDULE)] == [1_500_000, 250_000, 2_000_000]
    assert timer.clock == "cuda_event"
    assert all((row.host_ns or 0) < 50_000_000 for row in timer.steps(SCHEDULE))


def test_old_events_are_let_go_during_a_long_run() -> None:
    gpu = Gpu()
    timer = StepTimer(gpu)
    walk(gpu, timer, [1.0] * 1000)
    assert sum(row[3] is not None for row in timer._rows) <= 200
    timer.wait()
    assert [row.dur_ns for row in timer.steps(SCHEDULE)] == [1_000_000] * 1000


def test_a_lost_gpu_leaves_the_hosts_times() -> None:
    gpu = Gpu()
    timer = StepTimer(gpu)
    walk(gpu, timer, [1.0, 1.0])
    gpu.broken = True
    timer.wait()
    rows = timer.steps(SCHEDULE)
    assert [row.clock for row in rows] == [None, None]
    assert timer.clock == "wall"
    assert all(row.dur_ns == row.host_ns for row in rows)


def test_steps_before_the_gpu_is_used_say_so() -> None:
    gpu = Gpu()
    timer = StepTimer(gpu)
    gpu.cuda.is_initialized = lambda: False
    walk(gpu, timer, [1.0])
    gpu.cuda.is_initialized = lambda: True
    walk(gpu, timer, [1.0, 2.0])
    timer.wait()
    assert timer.clock == "cuda_event"
    assert [row.clock for row in timer.steps(SCHEDULE)] == ["wall", None, None]


def test_the_anchor_reads_three_clocks_at_one_moment() -> None:
    reading = anchor()
    assert reading.boottime_ns >= reading.monotonic_ns > 0
    assert reading.realtime_ns > 1_600_000_000_000_000_000
