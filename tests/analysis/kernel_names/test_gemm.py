"""What the names of matrix kernels tell."""

from __future__ import annotations

import pytest

from profrun.analysis.kernel_names.gemm import MatrixDetails, matrix_details


@pytest.mark.parametrize(
    ("name", "family", "details"),
    [
        (
            "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas",
            "cublas",
            MatrixDetails("tn", "fp16", (128, 128, 64), "sm_90", True, "fp32"),
        ),
        ("ampere_sgemm_128x64_tn", "cublas", MatrixDetails("tn", "fp32", (128, 64), "sm_80", False, "fp32")),
        ("my_matmul", "unknown", MatrixDetails()),
        (
            "gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128>",
            "cublas",
            MatrixDetails(dtype="bf16", matrix_core=False, accumulate="fp32"),
        ),
    ],
)
def test_details(name: str, family: str, details: MatrixDetails) -> None:
    assert matrix_details(name, family) == details


@pytest.mark.parametrize(
    ("name", "dtype", "accumulate"),
    [
        ("nvjet_qqtst_256x128_128x4_1x2_h_bz_coopA_TNN", "fp8", "fp32"),
        ("sm90_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize128x128x64_w", "fp16", "fp16"),
        ("sm80_xmma_gemm_i8i32_i8i32_i32_tn_n_tilesize128x128x64_s", "int8", "int32"),
        ("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize64x64x128_w", "fp8", "fp32"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x8_s", "tf32", "fp32"),
        ("volta_h884gemm_64x128_ldg8_nn", "fp16", "fp16"),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "fp16", "fp32"),
        ("volta_zgemm_64x64_nt", "complex128", None),
        ("Cijk_Ailk_Bjlk_HHS_BH_MT128x64x32_MI16x16x16x1_SN", "fp16", "fp32"),
        ("Cijk_Ailk_Bljk_B_BS_BH_Bias_HA_S_SAV_MT64x288x64", "bf16", "fp32"),
        ("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3", "fp4 x fp8", "fp32"),
        ("bmm_Bfloat16_MxInt4Bfloat16_castBfloat16_Fp32_Ab32_t128x8x256_s4", "int4 x bf16", "fp32"),
        ("magma_sgemmEx_kernel<float, __nv_bfloat16, __nv_bfloat16, true>", "bf16", "fp32"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", "bf16 x fp4", None),
        ("deep_gemm::sm100_fp8_fp4_gemm_1d1d_impl<1>", "fp8 x fp4", None),
        ("_gemm_a8w8_kernel", None, None),
        ("_gemm_afp4_wfp4_kernel", "fp4", None),
    ],
)
def test_the_types_of_a_product(name: str, dtype: str | None, accumulate: str | None) -> None:
    details = matrix_details(name, "unknown")
    assert (details.dtype, details.accumulate) == (dtype, accumulate)
