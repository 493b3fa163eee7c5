"""What fusing a chain of kernels could save: steps of 100 us whose kernels run from 6 us on, one by one."""

from __future__ import annotations

import pytest

from tests.analysis.rules.cases import ADD, NVJET, SOFTMAX, US, gpu
from tests.analysis.rules.test_diagnose import ask

MEAN = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(int)"
SPLIT_K = "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, true>(int)"
FUSED = "triton_poi_fused_add_mul_0"


@pytest.mark.parametrize(
    ("kernels", "saved_us"),
    [
        ([(NVJET, 40), (ADD, 20), (ADD, 30)], 20),  # all but the longest of a chain
        ([(ADD, 20), (ADD, 10), (NVJET, 40), (ADD, 5), (ADD, 15)], 10 + 5),  # two chains
        ([(NVJET, 10), (ADD, 20), (ADD, 30), (MEAN, 25), (ADD, 5)], 20 + 25 + 5),  # a reduction between
        ([(NVJET, 30), (ADD, 20), (ADD, 10), (MEAN, 30)], 20 + 10),  # behind, and the longest
        ([(NVJET, 20), (SOFTMAX, 20), (ADD, 10), (ADD, 40)], 20 + 10),  # before
        ([(ADD, 20), (ADD, 10), (NVJET, 20), (ADD, 20), (MEAN, 20)], 10),  # one without a chain beside it
        ([(NVJET, 40), (SPLIT_K, 10), (ADD, 20), (ADD, 20)], 20),  # of a library's product: stays
        ([(NVJET, 40), (FUSED, 10), (ADD, 20), (ADD, 20)], 20),  # made by the compiler
    ],
)
def test_what_fusing_could_save(kernels: list[tuple[str, int]], saved_us: int) -> None:
    work, at = [], 6
    for name, took in kernels:
        work.append((name, at * US, took * US))
        at += took
    assert at == 96
    (found,) = ask(gpu(work), "pointwise-chains")
    assert found.gain is not None
    assert found.gain.ns == pytest.approx(saved_us * US)
