"""Kernel names of every library, as tools write them, and what they tell."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.kernel_names import CATEGORIES, MATRIX_CATEGORIES, fused_ops, normalise, read_kernel
from tests.analysis.kernel_names import truth
from tests.conftest import ROOT

TABLE = list(
    csv.DictReader(
        (Path(__file__).parent / "kernel_names.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t"
    )
)
NAMES = [row["name"] for row in TABLE]
TRUTH = truth.table()
JUDGES = {
    "category": truth.category,
    "dtype": truth.dtype,
    "accumulate": truth.accumulate,
    "library": truth.library,
}
PARTS = {
    "all": TRUTH,
    "held out": [row for row in TRUTH if row.held_out],
    "blind": [row for row in TRUTH if row.origin == "blind"],
}


def _shares(fact: str, part: str, *, by_time: bool = False) -> dict[truth.Verdict, float]:
    judged = [
        (verdict, row.gpu_ns if by_time else 1)
        for row in PARTS[part]
        if (verdict := JUDGES[fact](row)) is not None and not (by_time and row.category == "unknown")
    ]
    return truth.shares(judged)


@pytest.mark.parametrize("row", TABLE, ids=[name[:40] for name in NAMES])
def test_a_name_is_read(row: dict[str, str]) -> None:
    read = read_kernel(row["name"])
    tile = "x".join(str(size) for size in read.tile) if read.tile else ""
    core = "" if read.matrix_core is None else str(read.matrix_core)
    found = (read.family, read.category, read.layout or "", read.dtype or "", tile, read.arch or "", core)
    assert found == tuple(row.values())[1:]


@pytest.mark.parametrize(
    ("name", "ops"),
    [
        ("triton_poi_fused_gelu_mul_0", ("gelu", "mul")),
        ("triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1",
         ("_unsafe_view", "add", "mean", "mul", "pow", "rsqrt")),
        ("triton_per_fused__to_copy_native_layer_norm_native_layer_norm_backward_12",
         ("_to_copy", "native_layer_norm", "native_layer_norm_backward")),
        ("triton_poi_fused_0", ()),
        ("nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT", ()),
    ],
)  # fmt: skip
def test_the_ops_that_inductor_fused(name: str, ops: tuple[str, ...]) -> None:
    assert fused_ops(name) == ops


def test_different_kernels_stay_different() -> None:
    assert len({normalise(name) for name in NAMES}) == len(NAMES)


@given(st.text(max_size=80))
def test_any_text_is_read_without_error_and_normalising_is_idempotent(name: str) -> None:
    read = read_kernel(name)
    assert read.category in CATEGORIES
    assert normalise(read.normalised) == read.normalised


@given(st.sampled_from(NAMES), st.integers(0, 200), st.integers(0, 200))
def test_cut_names_are_read_without_error(name: str, start: int, end: int) -> None:
    assert read_kernel(name[start:end]).category in CATEGORIES


def test_the_table_is_large_and_each_name_stands_in_it_once() -> None:
    assert len(TRUTH) >= 600
    assert len({normalise(row.name) for row in TRUTH}) == len(TRUTH)
    assert {one for row in TRUTH for one in row.category.split("|")} <= CATEGORIES.keys()


@pytest.mark.parametrize(
    ("fact", "part", "right", "wrong"),
    [
        ("category", "all", 0.96, 0.02),
        ("category", "held out", 0.96, 0.02),
        ("category", "blind", 0.85, 0.05),
        ("dtype", "all", 0.98, 0.01),
        ("dtype", "held out", 0.97, 0.02),
        ("accumulate", "all", 0.97, 0.0),
        ("library", "all", 0.92, 0.005),
        ("library", "held out", 0.92, 0.01),
    ],
)
def test_the_share_of_names_that_are_read_rightly(fact: str, part: str, right: float, wrong: float) -> None:
    found = _shares(fact, part)
    assert found["right"] >= right
    assert found["wrong"] <= wrong


@pytest.mark.parametrize("part", ["all", "held out"])
def test_the_share_of_gpu_time_whose_names_are_read_rightly(part: str) -> None:
    found = _shares("category", part, by_time=True)
    assert found["right"] >= 0.999
    assert found["wrong"] <= 0.0001


def test_the_page_states_these_shares() -> None:
    page = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
    for part in PARTS:
        for by_time in (False, True)[: 1 if part == "blind" else 2]:
            found = _shares("category", part, by_time=by_time)
            cells = " | ".join(f"{100 * share:.1f} %" for share in found.values())
            assert f"| {part}, by {'GPU time' if by_time else 'count'} | {cells} |" in page


@pytest.mark.parametrize(
    ("name", "category", "dtype"),
    [
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)", "layout", None),
        ("nhwcToNchwKernel<float, float, float, true, false, (cudnnKernelDataType_t)0>", "layout", None),
        ("triton_per_fused_addmm_gelu_native_layer_norm_5", "norm", None),
        (
            "void at::native::multi_tensor_apply_kernel<M<2>, CopyFunctor<int, long>, Copy<int>>(int)",
            "copy",
            None,
        ),
        ("cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float>", "reduction", None),
        ("_ZN7ck_tile6kentryILi256ELi2ENS_13FmhaFwdKernelINS_4PipeEEEJEEEvDpT1_", "attention", None),
        (
            "void cutlass::Kernel<cutlass::conv::kernel::ImplicitGemmConvolution<int>>(int)",
            "convolution",
            None,
        ),
        ("void wvSplitK_hf_sml_<__hip_bfloat16, 64, 4, 16, 8, 2, 1>(int)", "gemm", "bf16"),
        ("_Z15wvSplitKQ_hf_v", "gemm", None),
        ("void magma_sgemmEx_kernel<float, __nv_bfloat16, __nv_bfloat16, true>(int)", "gemm", "bf16"),
        ("void at::native::lpnorm_cleanup<float, (at::native::NormType)1, float>(int)", "reduction", None),
        ("void at::native::transform_bias_rescale_qkv_kernel<c10::Half, float, true>(int)", "layout", None),
        ("__pgi_dev_cumemset_16n", "fill", None),
        ("_kernel_quantize_fp8_row", "quantize", None),
        ("void per_token_quant_fp8_kernel<c10::BFloat16, 16>(int)", "quantize", None),
        ("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32", "gemm", "fp4 x fp8"),
    ],
)
def test_names_that_were_read_wrongly(name: str, category: str, dtype: str | None) -> None:
    read = read_kernel(name)
    assert (read.category, read.dtype) == (category, dtype)


def test_paged_attention_in_hip_is_no_triton_kernel() -> None:
    read = read_kernel("void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, __hip_bfloat16>(int)")
    assert (read.family, read.category, read.matrix_core) == ("vllm", "attention", True)


def test_a_kernel_that_multiplies_nothing_has_no_type_of_a_product() -> None:
    routing = read_kernel("void moe::dev::routing::routingIndicesOffsetsKernel<P<__nv_bfloat16>>(int)")
    assert (routing.category, routing.dtype, routing.matrix_core) == ("moe", None, False)
    for row in TRUTH:
        read = read_kernel(row.name)
        if read.category not in MATRIX_CATEGORIES:
            assert (read.dtype, read.accumulate, read.matrix_core in (False, None)) == (None, None, True)


@given(st.sampled_from([row.name for row in TRUTH]), st.text(max_size=6), st.integers(0, 400))
def test_a_damaged_name_is_read_without_error_and_always_alike(name: str, dirt: str, at: int) -> None:
    damaged = name[:at] + dirt + name[at:]
    read = read_kernel(damaged)
    read_kernel.cache_clear()
    assert read_kernel(damaged) == read
    assert read.category in CATEGORIES


@given(st.sampled_from([row.name for row in TRUTH]))
def test_the_parameters_and_the_return_type_change_nothing(name: str) -> None:
    read, plain = read_kernel(name), read_kernel(normalise(name))
    assert (read.family, read.category, read.dtype) == (plain.family, plain.category, plain.dtype)
