"""Which library or compiler a kernel comes from: 'unknown' when its name does not tell."""

from __future__ import annotations

import re

from profrun.analysis.kernel_names.inductor import KINDS
from profrun.analysis.kernel_names.parts import Parts

_NAMESPACES = """
pytorch: at c10d
cub: at_cuda_detail cub thrust rocprim hipcub
cudnn: cudnn cask_cudnn cask_cudnn_infer cask_cudnn_train cutlass__5x_cudnn
cublas: cublasLt epilogue
cusparse: cusparse
flash-attention: flash pytorch_flash
vllm: vllm quickreduce marlin marlin_moe_wna16
flashinfer: flashinfer
trtllm: tensorrt_llm moe genericReformat
transformer-engine: transformer_engine
deepgemm: deep_gemm
deepep: deep_ep
onnxruntime: onnxruntime
aiter: aiter
sglang: sgl_hip
ck: ck
ck_tile: ck_tile
fbgemm: fbgemm_gpu
cutlass: PyTorchMemEffAttention cutlass
"""
_SCOPES: dict[str, str] = {
    scope: family
    for family, _, scopes in (row.partition(":") for row in _NAMESPACES.split("\n"))
    for scope in scopes.split()
}
"""The library of a namespace; the outermost one that is listed decides."""

_NAMES: tuple[tuple[str, str], ...] = (
    # (pattern at the start of the own name, library): kernels outside of every namespace
    (r"nccl(?:Dev|Sym|Kernel)", "nccl"),
    (r"rccl_|msccl", "rccl"),
    (r"__amd_rocclr_", "rocclr"),
    (r"nvfuser_", "nvfuser"),
    (r"(?:Custom_)?Cijk_", "tensile"),
    (r"nvjet", "cublaslt"),
    (
        r"\w*cudnn|\w*_xmma_(?:fprop|dgrad|wgrad)|\w*implicit_gemm|(?:im|ex)plicit_convolve_|[dw]grad_alg\d",
        "cudnn",
    ),
    (
        r"n(?:ch|hw)wT?o?N\w+Kernel|nchwToNhwc|nhwcToNchw|(?:RNN_|elemWiseRNN|LSTM_|GRU_)|op_generic_tensor",
        "cudnn",
    ),
    (r"fft[12]d_[rc]2[rc]_|pointwise_mult_and_sum|flip_filter|transpose_readWrite", "cudnn"),
    (r"softmax_warp_(?:for|back)ward|cunn_(?:ClassNLL|SoftMax)", "pytorch"),
    (r"\w*_xmma_(?:sparse_)?gemm|(?:volta|turing|ampere|maxwell|pascal|hopper)_\w*gemm", "cublas"),
    (r"splitKreduce|gemv2|gemvx|gemvNSP|gemmSN|gemmk1|dot_kernel$|reduce_1Block|[sd]gemm_largek", "cublas"),
    (r"(?:asum|nrm2|scal|axpy_kernel_val)(?:_|$)", "cublas"),
    (r"magma_", "magma"),
    (r"(?:bmm|gemm)_(?:Mx)?(?:Bfloat16|Fp16|Fp32|E\dm\d)_|fmhaSm\d+|fmha_v2_", "trtllm"),
    (
        r"igemm_(?:fwd|bwd|wrw)_gtc|miopen|MIOpen|batched_transpose_\d|SubTensorOp|naive_conv_|Im2d2Col",
        "miopen",
    ),
    (r"transpose_(?:NCHW|CNHW|NHWC)", "miopen"),
    (r"cutlass_?\d|cutlass3x|cutlass_tensorop|fmha_cutlass", "cutlass"),
    (r"flash_(?:fwd|bwd)_|kernel_cutlass_kernel_flash_attn", "flash-attention"),
    (r"cupy_", "cupy"),
    (
        r"k(?:Optimizer|Quantize|Dequantize|Int8Vector|gemm_4bit|dequant_mm|Precondition|Percentile)",
        "bitsandbytes",
    ),
    (r"_?liger_", "liger"),
    (r"wvSplitK|LLGemm|LLMM1|paged_attention_ll4mi", "vllm"),
    (r"kn_entry_|kn_mla_|fmoe_(?:fp8|int8|bf16|fp16|stage)|pa_a\d+w\d", "aiter"),
    (r"mul_mat_(?:vec_)?[qf]?$|quantize_(?:mmq_)?q8_1|k_(?:bin_bcast|get_rows|set_rows|argsort)", "ggml"),
    (
        r"(?:rms_|l2_|group_)?norm_f32|soft_max_f32|ssm_(?:conv|scan)_f32|rwkv_wkv|flash_attn_(?:ext|tile|vec|comb)",
        "ggml",
    ),
    (r"cpy_f\d|dequantize_block_q|unary_(?:gated_)?op_kernel|scale_f32|concat_cont", "ggml"),
    (r"(?:split|dense)_embedding_\w*codegen|linearize_index|bounds_check_indices|permute_pooled", "fbgemm"),
    (r"_kernel_(?:de)?quantize_fp8_|_kernel_matmul_fp8_", "fbgemm"),
    (r"selective_scan_(?:fwd|bwd)_kernel|_chunk_(?:scan|state|cumsum)_|_state_passing_|_bmm_chunk", "mamba"),
    (r"(?:fused_recurrent|chunk)_\w*(?:fwd|bwd)", "fla"),
    (r"__pgi_\w+|\w+_\d+_gpu(?:__red)?$", "openacc"),
    (r"nvkernel_|__omp_offloading_", "openmp"),
    (r"(?:loop|input|gemm|wrapped)_(?:\w*fusion|\w*transpose)|triton_softmax_\d", "xla"),
    (rf"triton_(?:{KINDS})(?:_|$)", "inductor"),
)
NAMES = tuple((re.compile(pattern), family) for pattern, family in _NAMES)
_ARGUMENTS: tuple[tuple[str, str], ...] = (
    (r"cublasGemvParams|cublasDotParams|cublasGemvTensor", "cublas"),
    (r"\(ggml_(?:type|sort_order)\)", "ggml"),
    (r"cudnnTensor|cudnnKernelDataType", "cudnn"),
    (r"Selective_Scan_|Causal_conv1d_", "mamba"),
    (r"Flash_(?:fwd|bwd)_kernel_traits", "flash-attention"),
    (r"at::native::|c10::(?!BFloat16|Half|Float8)", "pytorch"),
)
ARGUMENTS = tuple((re.compile(pattern), family) for pattern, family in _ARGUMENTS)
_TRITON = re.compile(r"_[a-z]\w*|\w+_triton|attn_fwd|\w+_kernel_\d+d\d+d\w*")


def family_of(parts: Parts) -> str:
    """The library or compiler; for a kernel built of CUTLASS's parts the library that built it."""
    found = _of_scopes(parts)
    if found == "cutlass":
        return _builder(parts, 3) or found
    if found is not None:
        return found
    for pattern, family in NAMES:
        if pattern.match(parts.own):
            return family
    for pattern, family in ARGUMENTS:
        if pattern.search(parts.arguments):
            return family
    if not parts.arguments and not parts.scopes and _TRITON.fullmatch(parts.own):
        return "triton"
    return "unknown"


def _of_scopes(parts: Parts) -> str | None:
    return next((_SCOPES[scope] for scope in parts.scopes if scope in _SCOPES), None)


def _builder(parts: Parts, depth: int) -> str | None:
    """Who instantiated a CUTLASS kernel: the namespace of what stands in its arguments."""
    if not parts.inner:
        return None
    found = _of_scopes(parts.inner[0])
    if found not in (None, "cutlass"):
        return found
    return _builder(parts.inner[0], depth - 1) if depth else None
