"""A trace reduced to a trial: drawings whose units, places and shares can be read off."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial, compare, read_trial
from tests.analysis.kit import memory_trace


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
