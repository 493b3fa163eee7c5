"""What a kernel does: by its own name, or by what a wrapper wraps."""

from __future__ import annotations

import pytest

from profrun.analysis.kernel_names import normalise
from profrun.analysis.kernel_names.category import category_of
from profrun.analysis.kernel_names.parts import split


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", "collective"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::masked_fill_kernel>(int)",
            "elementwise",
        ),
        ("void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>(int)", "copy"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, A>(int)", "fill"),
        ("void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel>(int)", "indexing"),
        (
            "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)",
            "optimizer",
        ),
        ("void multi_tensor_apply_kernel<M<2>, at::native::CopyFunctor<int, long, 2>>(int)", "copy"),
        ("void multi_tensor_apply_kernel<M<1>, at::native::LpNormFunctor<float>>(int)", "reduction"),
        (
            "void multi_tensor_apply_kernel<M<2>, BinaryOpListAlphaFunctor<float>, std::plus<float>>(int)",
            "elementwise",
        ),
        (
            "void cutlass::Kernel<cutlass::conv::kernel::ImplicitGemmConvolution<cutlass::half_t>>(int)",
            "convolution",
        ),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(int)", "gemm"),
        ("void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<int>>>(int)", "attention"),
        ("void ck_tile::kentry<1, ck_tile::Layernorm2dFwd<int>>(int)", "norm"),
        ("void rocprim::detail::transform_kernel<C, long, rocprim::identity<void>>(int)", "copy"),
        ("void vllm::reshape_and_cache_kernel<unsigned short, (vllm::Fp8KVCacheDataType)0>(int)", "indexing"),
        ("nvjet_tst_192x208_64x4_1x1_h_bz_coopB_bias_TNT", "gemm"),
        (
            "void my::run<cutlass::gemm::Gemm>(int)",
            "unknown",
        ),  # the arguments of no known wrapper do not decide
        ("zzz", "unknown"),
    ],
)
def test_the_category_of_a_name(name: str, category: str) -> None:
    assert category_of(split(normalise(name))) == category
