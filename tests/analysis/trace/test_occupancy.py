"""Estimated occupancy: by hand, and against the profiler's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
import pytest

from profrun.analysis.trace.occupancy import Floats, estimate_occupancy
from profrun.traces.schema import DeviceRow
from profrun.traces.trace import Trace
from tests.analysis.kit import H200


def occupancy(device: Mapping[str, object], *columns: Sequence[float]) -> Floats:
    """``estimate_occupancy`` of columns given as lists."""
    row = {**dict.fromkeys(DeviceRow.__annotations__), **device}
    return estimate_occupancy(cast("DeviceRow", row), *(np.array(one, float) for one in columns))


def test_occupancy_by_hand() -> None:
    # 128 threads and 64 registers on an SM of 2048 threads and 64 K registers: registers allow 8 blocks =
    # 1024
    many, few, none = occupancy(H200, [10_000, 132, 10], [128, 128, 128], [64, 64, np.nan], [0, 0, 0])
    assert many == pytest.approx(0.5)
    assert few == pytest.approx(128 / 2048)  # one block per SM
    assert np.isnan(none)
    # 100 KiB of shared memory per block: two blocks per SM
    assert occupancy(H200, [10_000], [256], [32], [100 * 1024])[0] == pytest.approx(512 / 2048)
    assert np.isnan(occupancy(H200 | {"arch": None}, [1], [128], [64], [0])[0])


def test_occupancy_estimates_agree_with_kinetos_own(real: Callable[..., Trace]) -> None:
    """kineto prints whole per cent of the same formula, and 0 for kernels with much dynamic shared memory."""
    trace = real("h200/torch/train.json.gz")
    rows = trace.sql(
        "SELECT grid_x * grid_y * grid_z, block_x * block_y * block_z, registers, "
        "coalesce(smem_static, 0) + coalesce(smem_dynamic, 0), est_occupancy FROM kernels WHERE "
        "est_occupancy > 0"
    ).rows
    assert len(rows) > 600
    mine = occupancy(H200, *([row[place] for row in rows] for place in range(4)))
    assert np.abs(mine - np.array([row[4] for row in rows])).max() <= 0.0101


def test_occupancy_on_amd_needs_registers() -> None:
    device = {"vendor": "amd", "arch": "gfx942", "sm_count": 304, "max_threads_per_sm": 2048}
    known, unknown = occupancy(device, [100_000, 1000], [256, 256], [128, np.nan], [0, 0])
    assert known == pytest.approx(0.5)  # 512 / 128 = 4 of 8 waves per SIMD
    assert np.isnan(unknown)
