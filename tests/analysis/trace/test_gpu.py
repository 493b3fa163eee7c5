"""The share of tensor / matrix cores is told only where names tell: no confident zero of unknown kernels."""

from __future__ import annotations

import pytest

from profrun.analysis.kernel_names import read_kernel
from profrun.analysis.trace.gpu import devices
from tests.analysis.kit import memory_trace

NVJET = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


@pytest.mark.parametrize(
    ("known", "unknown", "share"), [(100, 0, 0.6), (100, 100, 0.3), (100, 101, None), (0, 50, None)]
)
def test_share_of_all_kernel_time_or_nothing(known: int, unknown: int, share: float | None) -> None:
    """Of the known time 60 % is on matrix cores."""
    rows = [
        ("kernel", NVJET, 0, known * 6 // 10, "stream 7"),
        ("kernel", ADD, 1000, known * 4 // 10, "stream 7"),
        ("kernel", "my_own_kernel", 2000, unknown, "stream 7"),
    ]
    (row,) = devices(memory_trace(rows))
    assert (row.matrix_core_ns, row.matrix_core_known_ns) == (known * 6 // 10, known)
    assert row.matrix_core_share == (None if share is None else pytest.approx(share))


def test_a_name_that_says_matrix_core_is_believed() -> None:
    assert read_kernel("batched_matrix_multiplication_matrix_core_128x128x16").matrix_core is True
