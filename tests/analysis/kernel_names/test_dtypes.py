"""Element types in names."""

from __future__ import annotations

import pytest

from profrun.analysis.kernel_names.dtypes import TOKENS, both, of_words


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("f<__nv_bfloat16, float>", "bf16"),
        ("f<cutlass::half_t>", "fp16"),
        ("f<float>", "fp32"),
        (
            "f<cutlass::float_e4m3_t, cutlass::bfloat16_t>",
            "fp8",
        ),  # reads the narrow type, writes the wide one
        ("f<__half, __nv_bfloat16>", None),  # one of them is another thing
        ("f<(vllm::Fp8KVCacheDataType)0>", None),  # the format of a cache
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", None),  # bf16 runs in it too
        ("f", None),
    ],
)
def test_the_type_by_words(text: str, dtype: str | None) -> None:
    assert of_words(text) == dtype


def test_a_narrow_cache_beside_wide_queries_has_no_one_type() -> None:
    assert of_words("f<__nv_bfloat16, __nv_fp8_e4m3>", mixed=True) is None


def test_the_type_of_two_inputs() -> None:
    assert both("fp8", "fp8") == "fp8"
    assert both("fp4", "fp8") == "fp4 x fp8"
    assert both("fp4", None) is None


def test_tokens() -> None:
    assert (TOKENS["e2m1"], TOKENS["bf16"], TOKENS["i32"]) == ("fp4", "bf16", "int32")
