"""A trace reduced to a trial: drawings whose units, places and shares can be read off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profrun.analysis.compare import ComparedTrial, compare, read_trial
from tests.analysis.kit import memory_trace
from tests.analysis.sampled_runs import piecewise, read_counter, sampled_run


def _one(rows: list[Any], **more: Any) -> ComparedTrial:
    return read_trial(memory_trace(rows, **more), label="t")


def _recording(name: str, count: int, ns: int) -> list[Any]:
    rows: list[Any] = []
    for number in range(count):
        rows += [
            ("api", "cudaLaunchKernel", 100 * number, 10, "main"),
            ("kernel", name, 100 * number + 20, ns, "stream 7", {"launch": 2 * number}),
        ]
    return rows


def test_recordings_without_steps_are_compared_only_when_they_hold_the_same_kernels() -> None:
    a = _one(_recording("k", 5, 50))
    assert (a.conditions.measure, len(a.samples)) == ("recording", 1)
    same = compare([a], [_one(_recording("k", 5, 60))])
    assert same.ratio == pytest.approx((400 + 20 + 60) / (400 + 20 + 50))
    # Fewer kernels in the same time is less work, not faster.
    less = compare([a], [_one(_recording("k", 4, 50))], allow=["work"])
    assert {one.code for one in less.reasons if one.stops} == {"no_steps"}
    assert less.ratio is None


def test_the_energy_of_a_trial_is_that_of_its_steady_steps(tmp_path: Path) -> None:
    """A run of 100 steps of 100 ms at 700 W; of its trace only the times of the steps are known."""
    times = np.arange(-1000, 12_000, 100.0)
    counter = read_counter(piecewise((-2000, 120), (0, 700), (10_000, 120)), times)
    found = read_trial(sampled_run(tmp_path / "t", {0: {"energy": counter}}))
    assert found.energy_j == pytest.approx(70.0)
    assert found.energy_note is None
    short = read_trial(sampled_run(tmp_path / "u", {0: {"energy": counter}}, steps=20))
    assert short.energy_j is None
    assert short.energy_note == "2 s of steady steps; 4 s are needed: run at least 42 steady steps"
