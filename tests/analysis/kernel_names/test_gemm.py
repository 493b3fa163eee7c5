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
            MatrixDetails("tn", "fp16", (128, 128, 64), "sm_90", True),
        ),
        ("ampere_sgemm_128x64_tn", "cublas", MatrixDetails("tn", "fp32", (128, 64), "sm_80", False)),
        ("my_matmul", "unknown", MatrixDetails()),
    ],
)
def test_details(name: str, family: str, details: MatrixDetails) -> None:
    assert matrix_details(name, family) == details
