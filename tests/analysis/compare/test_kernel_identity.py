"""Which spellings of kernel names mean the same kernel, and which its variants."""

from __future__ import annotations

import pytest

from profrun.analysis.compare.kernel_identity import kernel_family, kernel_identity, op_base_name

GEMM = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_NNT"


def test_variants_of_one_kernel_share_a_family_and_functors_part_them() -> None:
    four, eight = (
        f"at::native::vectorized_elementwise_kernel<{n}, at::native::GeluCUDAKernelImpl(at::X)::f>"
        for n in (4, 8)
    )
    other = four.replace("Gelu", "Silu")
    assert kernel_family(four) == kernel_family(eight) != kernel_family(other)
    assert kernel_family(GEMM) != kernel_family(GEMM.replace("bz_", "bz_bias_"))


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("f(const float&)", "f(float &)", True),  # parameter lists go
        ("g<h::operator()(int)>", "g<h::operator ()>", True),
        ("void (anonymous namespace)::k<int>", "(anonymous namespace)::k<int>", True),
        ("k<lambda(float)>", "k<lambda(double)>", False),  # the parameters of a lambda tell the type
        ("k<4>", "k<8>", False),
    ],
)
def test_two_tools_spell_one_kernel(one: str, two: str, *, same: bool) -> None:
    assert (kernel_identity(one) == kernel_identity(two)) is same


def test_ops_lose_the_namespace_of_the_framework() -> None:
    assert op_base_name("aten::gelu") == "gelu"
    assert op_base_name("autograd::engine::evaluate_function: MmBackward0").startswith("autograd::")
