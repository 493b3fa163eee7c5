"""Short kernel names that still differ where the kernels do."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.kernels import kernels
from profrun.reports.kernel_labels import fitted_labels, kernel_labels
from tests.analysis.kit import memory_trace

ADD = "void at::native::elementwise_kernel<128, 4, at::native::CUDAFunctor_add<float> >(int)"
MUL = "void at::native::elementwise_kernel<128, 4, at::native::MulFunctor<float> >(int)"
WIDE = "void at::native::elementwise_kernel<512, 4, at::native::MulFunctor<float> >(int)"


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        ([ADD], ["elementwise_kernel"]),
        ([ADD, MUL], ["elementwise_kernel: CUDAFunctor_add", "elementwise_kernel: MulFunctor"]),
        ([ADD, MUL, WIDE], ["elementwise_kernel: CUDAFunctor_add", MUL, WIDE]),
    ],
)
def test_labels(names: list[str], labels: list[str]) -> None:
    trace = memory_trace([("kernel", name, 10 * at, 9 - at, "stream 7") for at, name in enumerate(names)])
    assert kernel_labels(kernels(trace)) == labels


XMMA = "sm80_xmma_gemm_f32f32_f32f32_f32_{}_n_tilesize256x64x8_stage3_warpsize2x2x1_ffma_aligna4_{}"


def test_matrix_kernels_are_put_in_words_where_their_names_do_not_fit() -> None:
    tiles = [XMMA.format(layout, tail) for layout, tail in (("tn", "a"), ("tn", "b"), ("nn", "a"))]
    names = ["ampere_sgemm_128x64_tn", *tiles, "relu"]
    rows = kernels(
        memory_trace([("kernel", name, 10 * n, 9 - n, "stream 7") for n, name in enumerate(names)])
    )
    assert fitted_labels(rows, 30) == [
        "gemm fp32 tn 128x64",
        "gemm fp32 tn 256x64x8 #1",
        "gemm fp32 tn 256x64x8 #2",
        "gemm fp32 nn 256x64x8",
        "relu",
    ]
    assert fitted_labels(rows, None) == fitted_labels(rows, 200) == kernel_labels(rows)
