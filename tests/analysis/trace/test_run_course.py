"""The course of a run: its steps, and the readings within them."""

from __future__ import annotations

from typing import Any

from profrun.analysis.trace.run_course import FEWEST, Slowed, run_course
from profrun.contract.sampling import MEANINGS, REASONS, Quantity
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace


def steps(count: int) -> list[dict[str, Any]]:
    """Steps of 10 ns."""
    return [
        {"process": 0, "step": n, "ts_ns": 10 * n, "dur_ns": 10, "clock": "wall", "part": "outside"}
        for n in range(count)
    ]


def made(count: int, sampled: dict[Quantity, list[tuple[int, float]]], device: int | None) -> Trace:
    counters = [
        {"track": 1, "ts_ns": ts, "name": MEANINGS[name].name, "value": value, "unit": MEANINGS[name].unit}
        for name, readings in sampled.items()
        for ts, value in readings
    ]
    track = {"track": 1, "kind": "counter", "process": 0, "device": device, "name": "samples"}
    side = {"step_times": steps(count), "counters": counters, "tracks": [track]}
    return memory_trace([("op", "a", 0, 50, "main")], side=side)


def test_clock_power_and_why_the_clock_was_lowered() -> None:
    """Each reading holds until the next; idle is no reason that slows a program down."""
    cap, hot, idle = (float(REASONS[name]) for name in ("power cap", "thermal", "idle"))
    course = run_course(
        made(
            10,
            {
                "sm_clock": [(-50, 1.0), (-5, 1980.0), (40, 1400.0), (500, 2.0)],
                "reasons": [(-5, idle), (20, cap), (30, cap + idle), (60, cap + hot), (70, 0.0), (90, hot)],
            },
            0,
        )
    )
    assert course is not None
    assert [(one.name, one.unit, one.readings.times.tolist()) for one in course.lines] == [
        ("GPU 0: SM clock", "MHz", [-5, 40])
    ]
    assert course.slowed == (
        Slowed(20, 60, "power cap"),
        Slowed(60, 70, "power cap, thermal"),
        Slowed(90, 100, "thermal"),
    )


def test_a_program_without_a_gpu_has_the_load_of_its_host() -> None:
    course = run_course(made(10, {"cpu_busy": [(0, 1.5)], "cpu_stolen": [(0, 0.5)]}, None))
    assert course is not None
    assert [(one.name, one.readings.values.tolist()) for one in course.lines] == [("CPU cores busy", [1.5])]
    assert course.slowed == ()


def test_a_few_steps_have_no_course() -> None:
    assert run_course(made(FEWEST - 1, {}, None)) is None
    assert run_course(made(FEWEST, {}, None)) is not None
    assert run_course(memory_trace([("op", "a", 0, 50, "main")])) is None
