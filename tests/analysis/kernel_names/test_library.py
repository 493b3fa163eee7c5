"""Which library a kernel comes from."""

from __future__ import annotations

import pytest

from profrun.analysis.kernel_names import normalise
from profrun.analysis.kernel_names.library import family_of
from profrun.analysis.kernel_names.parts import split


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("void vllm::rms_norm_kernel<c10::BFloat16>(int)", "vllm"),
        ("void at::native::(anonymous namespace)::elementwise_kernel<1, A>(int)", "pytorch"),
        ("void at_cuda_detail::cub::DeviceScanKernel<at::A>(int)", "cub"),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int>>(int)", "cutlass"),
        ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<int>>(int)", "flash-attention"),
        ("void cutlass::Kernel2<vllm::enable_sm89_to_sm90<cutlass::gemm::kernel::G<int>>>(int)", "vllm"),
        ("_ZN5aiter19fmha_fwd_hd128_bf16E", "aiter"),
        ("void magma_sgemmEx_kernel<float, float, float, true>(int)", "magma"),
        ("void wvSplitK_hf_sml_<__half, 64>(int)", "vllm"),
        ("nchwToNhwcKernel<float>", "cudnn"),
        ("__pgi_dev_cumemset_16n", "openacc"),
        ("triton_poi_fused_add_0", "inductor"),
        ("_my_kernel", "triton"),
        ("my_kernel", "unknown"),  # CUDA C without a parameter list is written like that too
    ],
)
def test_the_family_of_a_name(name: str, family: str) -> None:
    assert family_of(split(normalise(name))) == family
