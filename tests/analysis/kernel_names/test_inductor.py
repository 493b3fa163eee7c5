"""The names that Inductor makes."""

from __future__ import annotations

import pytest

from profrun.analysis.kernel_names.inductor import category_of, fused_ops, kind_of
from profrun.analysis.kernel_names.table import CATEGORIES


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("triton_per_fused_addmm_gelu_native_layer_norm_5", "norm"),  # the GEMM ran before, in a library
        ("triton_poi_fused_addmm_relu_1", "elementwise"),
        ("triton_poi_fused__scaled_dot_product_flash_attention_8", "elementwise"),
        ("triton_red_fused_mm_t_0", "gemm"),  # a thin product, multiplied and added by the kernel itself
        ("triton_red_fused_addmm_sum_2", "reduction"),  # the sum reduces, the product came from a library
        ("triton_tem_fused_addmm_relu_3", "gemm"),
        ("triton_tem_fused_flex_attention_0", "attention"),
        ("triton_red_fused_linalg_vector_norm_3", "reduction"),
        ("triton_red_fused_add_mean_mul_pow_rsqrt_0", "norm"),
        ("triton_per_fused__softmax_add_native_layer_norm_0", "softmax"),
        ("triton_poi_fused_native_dropout_backward_3", "elementwise"),
        ("triton_poi_fused__to_copy_transpose_1", "copy"),
        ("triton_poi_fused_zeros_like_1", "fill"),
        ("triton_poi_fused_0", "elementwise"),
        ("triton_unk_fused_add_0", "triton"),
        ("some_kernel", "triton"),
    ],
)
def test_the_heaviest_op_of_the_kind_decides(name: str, category: str) -> None:
    assert category_of(name) == category
    assert category in CATEGORIES


def test_kind_and_ops() -> None:
    assert kind_of("triton_per_fused_add_0") == "per"
    assert kind_of("some_kernel") is None
    assert fused_ops("triton_poi_fused__to_copy_add_3") == ("_to_copy", "add")
    assert fused_ops("some_kernel") == ()
