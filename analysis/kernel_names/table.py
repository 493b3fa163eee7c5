"""The table of names: which words in a kernel's name tell its family and category, first match wins.

A category is what the kernel does, whoever wrote it, so that an H200 and an MI300X can be laid side by side.
Sources: names seen in traces of torch 1.8 to 2.11 on V100 to B200 and MI100 to MI355X, and the naming rules
of the libraries' own sources (PyTorch ATen, CUTLASS, Tensile, Composable Kernel, MIOpen, Inductor).
"""

from __future__ import annotations

import re

CATEGORIES: dict[str, str] = {
    "gemm": "matrix multiply and its split-K reductions",
    "convolution": "convolution, forward or backward, with its layout transforms inside the library",
    "attention": "fused attention and paged attention",
    "norm": "batch, layer, RMS or group normalisation",
    "softmax": "softmax, log-softmax and their backward",
    "elementwise": "one output element from the same place of its inputs",
    "reduction": "sum, mean, max, norm over dimensions",
    "copy": "moves, casts, transposes, concatenates or fills memory",
    "indexing": "gather, scatter, embedding, index select, cache writes",
    "sort": "sort, top-k, scan, unique",
    "random": "random numbers and dropout masks",
    "pooling": "pooling and resampling",
    "loss": "loss functions",
    "optimizer": "optimizer updates over parameter lists",
    "moe": "mixture-of-experts routing and grouped matrix multiply",
    "quantize": "quantise, dequantise, scale",
    "collective": "communication between ranks",
    "fft": "fast Fourier transforms",
    "triton": "a Triton kernel whose name tells no more",
    "unknown": "the name tells nothing known",
}

_RULES: tuple[tuple[str, str, str], ...] = (
    # (pattern, family, category); order matters
    (r"^(?:ncclDevKernel|ncclKernel|ncclSymDevKernel|ncclSymkDevKernel)", "nccl", "collective"),
    (r"^(?:rccl_main_kernel|mscclKernel|msccl)", "rccl", "collective"),
    (r"multimem_|one_shot_all_reduce|two_shot_all_reduce|symm_mem", "pytorch", "collective"),
    (r"cross_device_reduce|allreduce_fusion_kernel|quickreduce|custom_all_?reduce", "vllm", "collective"),
    (r"nvshmem|rocshmem", "shmem", "collective"),
    (r"^__amd_rocclr_", "rocclr", "copy"),
    # Inductor, by its own prefix (its fused op list decides in __init__)
    (r"^triton_(?:poi|red|per|tem|mm|for|unk|split_scan)_", "inductor", "triton"),
    (r"^nvfuser_|::nvfuser_pointwise", "nvfuser", "elementwise"),
    (r"nvfuser_(?:inner_|outer_|reduction|inner_outer)", "nvfuser", "reduction"),
    # attention before GEMM: their names hold 'cutlass' and 'gemm' too
    (r"sdpa|fmha|flash_?(?:fwd|bwd|fprop|bprop|attn)|flash::|FlashAttn|mha_(?:fwd|bwd)", "", "attention"),
    (r"^attn_(?:fwd|bwd)|_attn_fwd|attention_kernel|AttentionKernel|PagedAttention", "", "attention"),
    (r"paged_attention|unified_attention|decode_attention|BatchPrefill|BatchDecode", "", "attention"),
    (r"ComposedAttention|merge_attn_states|_fwd_grouped_kernel_stage|mla_", "", "attention"),
    (r"compute_dot_do_o|convert_dq_to_16bits|_attn_bwd|bwd_dq_dk_dv", "", "attention"),
    (r"reshape_and_cache|store_kvcache|kv_cache|kv_indices|page_indices|concat_and_cache", "", "indexing"),
    # mixture of experts
    (r"matmul_ogs|moe|topk_gating|topkGating|expert|_combined_routing|bitmatrix", "", "moe"),
    # optimizers
    (r"Adam|adamw?_|[Ll]amb[A-Z_]|adagrad|rowwise_adagrad|sgd|SGD|FusedOptimizer|Muon", "", "optimizer"),
    (r"multi_tensor_apply_kernel|multi_tensor_|amp_update_scale|amp_non_finite", "pytorch", "optimizer"),
    # convolution
    (r"^igemm_(?:fwd|bwd|wrw)", "miopen", "convolution"),
    (r"^miopen|MIOpen.*Conv|naive_conv|gridwise_convolution|^Im2d2Col|^Col2Im", "miopen", "convolution"),
    (r"grouped_conv|batched_gemm_xdlops_bwd_weight|conv(?:olution)?_(?:fwd|bwd|wrw)", "ck", "convolution"),
    (r"implicit_gemm|_xmma_(?:fprop|dgrad|wgrad)|xmma_warp_specialized_implicit", "cudnn", "convolution"),
    (r"scudnn|hcudnn|[hsi]\d{3,5}cudnn|cudnn.*winograd|winograd", "cudnn", "convolution"),
    (r"cask_cudnn|cudnn::cnn|dgrad|wgrad|fprop|nchwToNhwc|nhwcToNchw|cudnn::detail", "cudnn", "convolution"),
    (r"conv2d|conv1d|conv3d|convolve|implicit_convolve|conv_depthwise|depthwise", "", "convolution"),
    (r"im2col|col2im", "pytorch", "convolution"),
    # normalisation and softmax
    (r"MIOpenBatchNorm|BatchNorm.*(?:Fwd|Bwd)Spatial", "miopen", "norm"),
    (r"cudnn::bn_|bn_(?:fw|bw)_|batch_?norm|batch_norm", "", "norm"),
    (r"[Rr]ms_?[Nn]orm|RMSNorm|Rmsnorm|rms_norm", "", "norm"),
    (
        r"layer_?norm|LayerNorm|GammaBeta|RowwiseMoments|group_?norm|GroupNorm|Welford|_norm_kernel",
        "",
        "norm",
    ),
    (r"soft_?max|SoftMax|Softmax", "", "softmax"),
    (r"scal_kernel|axpy_kernel|scalePackedTensor|rotary|rope_", "", "elementwise"),
    # GEMM
    (r"^Cijk_|Tensile", "tensile", "gemm"),
    (r"^nvjet", "cublaslt", "gemm"),
    (
        r"cublasLt::|splitKreduce|gemmSN|gemmk1|gemv2|gemvx|cublasGemv|dot_kernel|reduce_1Block",
        "cublas",
        "gemm",
    ),
    (r"_xmma_gemm|xmma_sparse_gemm|xmma_warp_specialized_gemm", "cublas", "gemm"),
    (r"^(?:void )?(?:volta|turing|ampere|maxwell|pascal|hopper)_\w*gemm", "cublas", "gemm"),
    (r"gcgemm|[sdhci]gemm_|_gemm_|Gemm|^gemm|gemv|Gemv", "", "gemm"),
    (r"cutlass(?:3x)?_\d*_?\w*(?:gemm|tensorop|simt|gemmgroup)|cutlass::gemm", "cutlass", "gemm"),
    (r"^bmm_|^gemm_.*_sm\d+|deep_gemm|DeepGemm|fp8_gemm", "trtllm", "gemm"),
    (r"kernel_gemm|GemmKernel|GridwiseGemm|xdlops|_xdl_", "ck", "gemm"),
    (r"mul_mat|matmul|matrix_mul|wvSplitK|LLGemm|skinny", "", "gemm"),
    (r"fft\dd|_fft_|cufft|rocfft|vkfft|regular_fft|vector_fft", "", "fft"),
    # quantisation
    (r"quantiz|quant_|_quant|dequant|convert_.*fp8|amax", "", "quantize"),
    # losses, pooling, random
    (r"nll_loss|cross_entropy|ClassNLL|mse_|bce_|smooth_l1|kl_div|ctc_loss", "", "loss"),
    (r"pool|upsample|interp|grid_sampler|roi_align|resize", "", "pooling"),
    (r"distribution_|curand|hiprand|rocrand|philox|dropout|bernoulli|randperm|random_", "", "random"),
    (r"DeviceReduce(?:Kernel|SingleTile)|DeviceSegmentedReduce|reduce_segments", "", "reduction"),
    # sort and scan
    (
        r"RadixSort|MergeSort|bitonicSort|[Ss]ort|topk|[Tt]op_?k|gatherTopK|Scan|scan|unique|Compact",
        "",
        "sort",
    ),
    (r"searchsorted|histogram|bincount|RLE|RunLength|ReduceByKey", "", "sort"),
    # indexing
    (r"index|Index|gather|scatter|embedding|Embedding|segment|sum_and_scatter|take_|masked_", "", "indexing"),
    (r"compute_grad_weight|krn_partial|bounds_check|compute_num_of_partial|token_ids", "", "indexing"),
    # reductions
    (r"reduce_kernel|DeviceReduce|ReduceOp|reduction|block_reduce|reduce_segments|_reduce", "", "reduction"),
    # copies
    (r"direct_copy|copy_kernel|copy_device_to_device|CatArray|concat|memcpy|[Cc]opyKernel", "", "copy"),
    (
        r"[Tt]ranspose|SubTensorOp|permute|FillFunctor|[Mm]emset|fill_kernel|_copy_|cpy_|vecCopy|_to_copy",
        "",
        "copy",
    ),
    (r"^copy|rocclr|pad_kernel|constant_pad|triu_tril|flip_kernel|roll_cuda", "", "copy"),
    # element-wise last among PyTorch's: nearly every functor of the above is an elementwise_kernel too
    (
        r"elementwise|Elementwise|pointwise|unrolled_|vectorized_|Functor|arange|range_cuda|clamp_",
        "",
        "elementwise",
    ),
    (
        r"act_and_mul|activation|gelu|silu|swiglu|relu|rotary|rope|(?:add|mul|sub|div|scale)_(?:kernel|f32)",
        "",
        "elementwise",
    ),
    (r"cupy_(?:absolute|add|sub|mul|true_divide|sqrt|var)", "cupy", "elementwise"),
    (r"^cupy_copy", "cupy", "copy"),
    (r"_triton\b|_triton_|^triton_", "triton", "triton"),
)

_FAMILIES: tuple[tuple[str, str], ...] = (
    (r"pytorch_flash|flash::|FlashAttn|^flash_|flash_fwd|flash_bwd", "flash-attention"),
    (r"liger|Liger", "liger"),
    (r"cudnn", "cudnn"),
    (r"fmha_cutlass|cutlass", "cutlass"),
    (r"ck_tile", "ck_tile"),
    (r"\bck::|_ZN2ck|ck16tensor_operation", "ck"),
    (r"aiter", "aiter"),
    (r"sgl_|sglang|sgl_kernel", "sglang"),
    (r"vllm", "vllm"),
    (r"flashinfer", "flashinfer"),
    (r"tensorrt_llm|trtllm|fmhaSm\d+", "trtllm"),
    (r"transformer_engine", "transformer-engine"),
    (r"apex", "apex"),
    (r"at::native|at::|c10::", "pytorch"),
    (r"cub::|thrust::|hipcub|rocprim", "cub"),
    (r"MIOpen|miopen|^batched_transpose_|^SubTensorOp|^transpose_N?C", "miopen"),
    (r"ggml|mul_mat_q|quantize_q8", "ggml"),
    (r"^attn_fwd$|_kernel_\d+d\d+d|^_\w+$", "triton"),
)

RULES = tuple((re.compile(pattern), family, category) for pattern, family, category in _RULES)
FAMILIES = tuple((re.compile(pattern), family) for pattern, family in _FAMILIES)


def family_and_category(name: str) -> tuple[str, str]:
    """(family, category) of a name as a tool wrote it; ('unknown', 'unknown') when nothing is known."""
    for pattern, family, category in RULES:
        if pattern.search(name):
            return family or _family(name), _refine(name, category)
    return _family(name), "unknown"


def _refine(name: str, category: str) -> str:
    """PyTorch's element-wise kernels carry other words in their functors (masked_fill is no gather)."""
    if "elementwise_kernel" not in name or "at::native" not in name:
        return category
    if category in ("indexing", "sort", "pooling", "random", "quantize", "moe", "gemm", "convolution"):
        if "index_elementwise_kernel" in name or "distribution_elementwise" in name:
            return category
        if re.search(r"direct_copy|copy_kernel|copy_device_to_device|FillFunctor", name):
            return "copy"
        return "elementwise"
    return category


def _family(name: str) -> str:
    for pattern, family in FAMILIES:
        if pattern.search(name):
            return family
    return "unknown"
