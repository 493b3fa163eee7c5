"""What the sampler read: means over stretches of time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.trace.readings import MeanReading, Readings, sm_clock
from tests.analysis.kit import memory_trace, sm_clocks

THREE = Readings(np.array([100, 200, 300]), np.array([1000.0, 2000.0, 500.0]))
"""1000 from 100 to 200, 2000 until 300, 500 from then on."""


def over(*stretches: tuple[int, int]) -> MeanReading | None:
    starts, ends = (np.array(list(one), dtype=np.int64) for one in zip(*stretches, strict=True))
    return THREE.over(starts, ends)


def test_the_mean_over_several_stretches_is_weighted_by_their_time() -> None:
    """50 ns at 1000, 50 at 2000 and 100 at 500 are 1000 on average, of three readings."""
    assert over((150, 250), (400, 500)) == MeanReading(1000.0, 3)
    assert over((120, 130)) == MeanReading(1000.0, 1)
    assert over((0, 110)) == MeanReading(1000.0, 1)  # nothing is known of what lies before 100
    assert over((0, 100)) is None
    assert THREE.over(np.zeros(0, np.int64), np.zeros(0, np.int64)) is None


@given(st.integers(100, 600), st.integers(1, 300))
def test_one_stretch_has_the_mean_that_mean_gives(start: int, length: int) -> None:
    found = over((start, start + length))
    assert found is not None
    assert found.value == pytest.approx(THREE.mean(start, start + length))


def test_the_clock_of_a_gpu_is_its_own() -> None:
    trace = memory_trace([("op", "aten::mm", 0, 20, "main")], side=sm_clocks({0: 1500.0}))
    one = np.array([5]), np.array([10])
    assert sm_clock(trace, 0, *one) == MeanReading(1500.0, 1)
    assert sm_clock(trace, 1, *one) is None
