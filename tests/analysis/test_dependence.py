"""Autocorrelation and blocks of series with known memory."""

from __future__ import annotations

import numpy as np
import pytest

from profrun.analysis.dependence import block_sums, dependence
from profrun.analysis.step_time import Floats


def remembering(count: int, memory: float) -> Floats:
    shocks = np.random.default_rng(0).normal(size=count)
    found = np.zeros(count)
    for place in range(1, count):
        found[place] = memory * found[place - 1] + shocks[place]
    return found


def test_independent_values_have_no_memory_and_blocks_of_one() -> None:
    found = dependence(remembering(2000, 0))
    assert found.block < 2
    assert np.abs(found.correlations[1:]).sum() < 0.1


def test_a_series_with_memory_has_its_correlations_and_longer_blocks() -> None:
    found = dependence(remembering(5000, 0.8))
    assert found.correlations[:4] == pytest.approx([1, 0.8, 0.64, 0.51], abs=0.05)
    assert dependence(remembering(5000, 0.5)).block < found.block < dependence(remembering(5000, 0.95)).block


def test_a_constant_and_a_short_series_have_none() -> None:
    assert dependence(np.ones(100)).block == dependence(np.arange(5.0)).block == 1


def test_the_covariance_matrix_times_a_column() -> None:
    found = dependence(remembering(300, 0.7))
    lags = np.abs(np.subtract.outer(np.arange(300), np.arange(300)))
    padded = np.concatenate([found.correlations, np.zeros(300)])
    column = np.random.default_rng(1).normal(size=(300, 2))
    assert found.times(column) == pytest.approx(padded[lags] @ column)


@pytest.mark.parametrize("block", [1.0, 7.5])
def test_a_resampled_series_is_as_long_and_has_the_mean_of_the_series(block: float) -> None:
    values = np.arange(50.0)
    rows = np.column_stack([np.ones(50), values])
    sums = np.concatenate(list(block_sums(rows, block, 4000, np.random.default_rng(0))))
    assert sums[:, 0] == pytest.approx(np.full(4000, 50))
    assert sums[:, 1].mean() / 50 == pytest.approx(values.mean(), rel=0.02)
    if block == 1:  # the standard error of a mean of 50 independent values
        assert (sums[:, 1] / 50).std() == pytest.approx(values.std() / np.sqrt(50), rel=0.05)
    else:  # neighbours come together, so the mean varies more
        assert (sums[:, 1] / 50).std() > 1.5 * values.std() / np.sqrt(50)
