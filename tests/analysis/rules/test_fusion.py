"""What fusing a chain of kernels could save: steps of 100 us whose kernels run from 6 us on, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.rules.cases import ADD, NVJET, SOFTMAX, US, gpu, grid
from tests.analysis.rules.test_diagnose import ask

MEAN = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(int)"
SPLIT_K = "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, true>(int)"
MUL8 = "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<float> >(int)"
MEMSET = "Memset (Device)"
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
    assert _saved(kernels, {}) == pytest.approx(saved_us * US)


@pytest.mark.parametrize(
    ("kernels", "saved_us"),
    [
        # silu(gate(x)) * up(x): the multiply of ``up`` runs between the activation and the product
        ([(ADD, 26), (ADD, 10), (NVJET, 34), (ADD, 20)], 10 + 20),
        ([(ADD, 26), (ADD, 10), (NVJET, 14), (NVJET, 20), (ADD, 20)], 10 + 20),  # two in the backward
        ([(ADD, 26), (ADD, 10), (NVJET, 10), (NVJET, 4), (NVJET, 20), (ADD, 20)], 10),  # three
        ([(ADD, 26), (ADD, 10), (MEMSET, 4), (NVJET, 30), (ADD, 20)], 10 + 20),  # the library's own
        ([(ADD, 26), (ADD, 10), (NVJET, 34), (MUL8, 20)], 10),  # twice as many elements
        ([(ADD, 26), (ADD, 10), (MEMSET, 34), (ADD, 20)], 10),  # no multiply between
        ([(ADD, 22), (ADD, 10), (NVJET, 10), (ADD, 20), (NVJET, 8), (ADD, 20)], 10 + 20),  # one neighbour
        ([(ADD, 26), (NVJET, 24), (ADD, 20), (ADD, 10), (NVJET, 5), (ADD, 5)], 20 + 10),
    ],
)
def test_a_chain_goes_on_past_a_multiply(kernels: list[tuple[str, int]], saved_us: int) -> None:
    """Where the kernels on both sides have as many elements. Without their sizes, it ends there."""
    assert _saved(kernels, grid(528)) == pytest.approx(saved_us * US)
    assert _saved(kernels, {}) == pytest.approx(10 * US)


def test_a_network_of_equal_layers_has_no_chains() -> None:
    assert _saved([(ADD, 20), (NVJET, 20), (ADD, 20), (NVJET, 10), (ADD, 20)], grid(528)) is None


def _saved(kernels: list[tuple[str, int]], columns: dict[str, Any]) -> int | None:
    """What the finding says could be saved per step, ns; None without a finding."""
    work, at = [], 6
    for name, took in kernels:
        work.append((name, at * US, took * US))
        at += took
    assert at == 96
    rows = [
        ("memset", *row[1:5], {"launch": row[5]["launch"]}) if row[1] == MEMSET else row
        for row in gpu(work, columns=columns)
    ]
    found = ask(rows, "pointwise-chains")
    if not found:
        return None
    assert found[0].gain is not None
    return found[0].gain.ns
