"""Samples beside stretches of time: means over each, work of others, slowing reasons, the slowest GPU."""

from __future__ import annotations

import numpy as np
import pytest

from profrun.analysis.trace.readings import Readings, host_readings
from profrun.analysis.trace.sampled_factors import Sampled, others_cores, slowing, used_gpu_readings
from tests.analysis.kit import memory_trace
from tests.analysis.sampled import MS, counters, mask

READ = Readings(np.array([0, 100, 200]), np.array([10.0, 20.0, 40.0]))


def test_means_over_stretches_are_those_of_one_by_one() -> None:
    starts, ends = np.array([0, 50, 150, 190, 250]), np.array([100, 150, 250, 191, 300])
    assert READ.means(starts, ends).tolist() == [10, 15, 30, 20, 40]
    single = [READ.mean(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]
    assert READ.means(starts, ends) == pytest.approx(single)
    assert READ.means(np.array([-50]), np.array([50])).tolist() == [10]  # the first reading holds before it


def test_cores_of_others_are_told_at_the_time_they_were_taken() -> None:
    """The reading at 100 ms is about the time from 0 to 100 ms."""
    host = counters(
        {},
        {
            "cpu_busy": [0, 3, 1, 1],
            "cpu_own": [0, 1, 1, 2],
            "cpu_stolen": [0, 0, 0.5, 0],
            "cpu_quota_wait": [0, 0, 0, 1],
        },
    )
    found = others_cores(host_readings(memory_trace([], side=host)))
    assert found is not None
    assert found.times.tolist() == [0, 100 * MS, 200 * MS]
    assert found.values.tolist() == [2, 0.5, 1]
    assert others_cores(host_readings(memory_trace([], side=counters({}, {"cpu_busy": [1, 2]})))) is None


def test_only_reasons_that_slow_a_gpu_down_under_load_count() -> None:
    masks = [0, mask("idle"), mask("set clocks"), mask("power cap"), mask("thermal", "idle")]
    read = Readings(np.arange(5), np.array(masks))
    assert slowing(read).values.tolist() == [0, 0, 0, 1, 1]
    assert slowing(read, ("power cap",)).values.tolist() == [0, 0, 0, 1, 0]


def test_of_several_gpus_the_slowest_sets_the_pace() -> None:
    first = counters({"sm_clock": [2000.0] * 30}, {})
    second = counters({"sm_clock": [1000.0] * 30}, {})
    tracks = [one | {"track": 902, "device": 1} for one in second["tracks"] if one["device"] == 0]
    more = [one | {"track": 902} for one in second["counters"]]
    side = {"tracks": [*first["tracks"], *tracks], "counters": [*first["counters"], *more]}
    trace = memory_trace([], side=side, ranks=2)
    assert len(used_gpu_readings(trace)) == 2
    starts = np.arange(0, 2900, 100) * MS
    found = Sampled.of(trace, starts, starts + 50 * MS, np.ones(len(starts)))
    (clock,) = [one for one in found.factors if one.name == "SM clock"]
    assert clock.column == pytest.approx(-np.log(1000))


def test_stretches_before_the_first_and_after_the_last_reading_are_left_out() -> None:
    trace = memory_trace([], side=counters({"sm_clock": [2000.0] * 30}, {}))
    starts = np.array([-1000, -200, 0, 1000, 3000, 4000]) * MS
    found = Sampled.of(trace, starts, starts + 10 * MS, np.ones(6))
    assert found.inside.tolist() == [1, 2, 3, 4]
