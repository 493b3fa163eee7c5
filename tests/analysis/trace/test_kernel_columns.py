"""Columns of the kernels table by slice."""

from __future__ import annotations

import numpy as np

from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.kernel_columns import kernel_values, occupancies
from tests.analysis.kit import memory_trace

GRID = {"kernels.grid_x": 4, "kernels.grid_y": 2, "kernels.grid_z": 1}
BLOCK = {"kernels.block_x": 32, "kernels.block_y": 4, "kernels.block_z": 1, "kernels.smem_static": 100}


def test_a_value_for_each_slice_and_nan_where_there_is_none() -> None:
    trace = memory_trace(
        [
            ("op", "aten::mm", 0, 9, "main"),
            ("kernel", "a", 10, 5, "stream 7", GRID | BLOCK),
            ("kernel", "b", 20, 5, "stream 7"),
        ]
    )
    ids = np.array([2, 1, 0])
    for name, value in (("blocks", 8.0), ("threads", 128.0), ("smem", 100.0)):
        found = kernel_values(trace, name, ids)  # type: ignore[arg-type]
        assert found[1] == value
    assert np.isnan(kernel_values(trace, "blocks", ids)[[0, 2]]).all()


def test_the_tools_own_occupancy_is_no_estimate() -> None:
    rows = [
        ("kernel", "a", 0, 5, "stream 7", {"kernels.est_occupancy": 0.25}),
        ("kernel", "b", 10, 5, "stream 7", GRID | BLOCK | {"kernels.registers": 32}),
    ]
    trace = memory_trace(rows)
    (device,) = frame(trace).devices
    found, estimated = occupancies(trace, np.array([0, 1]), device)
    assert estimated.tolist() == [False, True]
    assert found[0] == 0.25
    assert 0 < found[1] <= 1
