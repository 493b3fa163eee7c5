"""The table of words: which words in a kernel's own name tell what it does, first match wins.

A category is what the kernel does, whoever wrote it, so that an H200 and an MI300X can be laid side by side.
A name with words of several categories is a fused kernel, and the row that comes first decides: what costs
most stands first (communication, attention, recurrences, experts, products, norms), what only moves or
changes single values stands last. Sources: names seen in traces of torch 1.8 to 2.11 on V100 to B200 and on
MI100 to MI355X, and the kernels in the public sources of the libraries.
"""

from __future__ import annotations

import re

CATEGORIES: dict[str, str] = {
    "gemm": "matrix multiply and matrix times vector",
    "convolution": "convolution, forward or backward",
    "attention": "fused attention and paged attention, with the kernels that prepare or merge its parts",
    "recurrence": "state-space models, linear attention, RNN cells: a state carried along the sequence",
    "norm": "batch, layer, RMS or group normalisation",
    "softmax": "softmax, log-softmax and their backward",
    "elementwise": "one output element from the same place of its inputs",
    "reduction": "sum, mean, max, norm over dimensions, and the sum of split-K parts",
    "copy": "moves, casts, concatenates or pads memory",
    "layout": "puts the same values in another order: transposes, NCHW to NHWC, im2col, repacked weights",
    "fill": "writes memory without reading any: zeros, constants, ranges",
    "indexing": "gather, scatter, embedding, index select, cache writes, tables of offsets and indices",
    "sort": "sort, top-k, scan, unique",
    "sampling": "draws tokens from their probabilities, speculative decoding included",
    "random": "random numbers and dropout masks",
    "pooling": "pooling and resampling",
    "loss": "loss functions",
    "optimizer": "optimizer updates and gradient scaling over parameter lists",
    "moe": "mixture-of-experts routing and grouped matrix multiply",
    "quantize": "quantise, dequantise, and the scales for it",
    "collective": "communication between ranks",
    "fft": "fast Fourier transforms",
    "triton": "a Triton kernel whose name tells no more",
    "unknown": "the name tells nothing known",
}

_INDICES = r"(?:indices|ids|locs|locations|positions|slots)"
_BY_ONE = r"(?:add|addition|sub|subtract|mul|multiply|div|divide|scale)"
_WORDS: tuple[tuple[str, str], ...] = (
    # (category, pattern over the words of the own name); order matters
    ("collective", r"all_?(?:reduce|gather)|reduce_?scatter|all_?to_?all|_a2_?a(?![b-z])"),
    ("collective", r"cross_device_reduce|send_recv"),
    ("collective", r"^_(?:nccl|rccl|mscc|nvshmem|rocshmem|k?userbuffers|multimem)"),
    # what is written into a cache and the tables for it, before the attention that reads it
    ("attention", r"with_(?:paged_|ragged_)?kv_cache"),
    ("indexing", r"(?:reshape|concat|cat|copy|append|gather|store|set|quant|update)_.*cache(?![a-z])"),
    ("indexing", r"kv_?cache_$|kv_(?:indices|buffer)|page_(?:indices|table)|block_table|slot_mapping"),
    ("indexing", rf"^(?!.*(?:moe|expert|routing|rotary|rope)).*_{_INDICES}(?:_kernel|_triton)?_$"),
    ("indexing", r"find_long_segments|offsets_(?:kernel|range)|req_(?:to_token|index)"),
    ("copy", r"^_(?:copy|concat)_"),
    # recurrences before attention: 'gated linear attention' is one
    ("recurrence", r"selective_(?:scan|state)|ssm_scan|state_passing|chunk_(?:state|scan)"),
    ("recurrence", r"delta_(?:rule|net|product)|fused_recurrent|linear_attn|lightning_att|mamba_?ssd"),
    ("recurrence", r"_rwkv\d*|_wkv|_(?:flash)?(?:kda|gla|gsa|gdn|hgrn)_(?!gate)|_(?:[ms]?lstm|gru|rnn)_"),
    ("recurrence", r"rn_?n_?cell"),
    ("recurrence", r"^_chunk_(?:\w+_)?(?:fwd|bwd)_|chunk_scaled_dot_kkt"),
    ("softmax", r"att(?:n|ention)_softmax_(?!and)"),
    ("attention", r"attention|_attn(?![a-z])|(?<![a-z])(?:fmha|sdpa|mha|xqa)(?![a-z])"),
    ("attention", r"flash_(?:fwd|bwd|decod)|flash_attn"),
    ("attention", r"(?<![a-z])mla_|mqa_logits|merge_states?_|paged_(?:att|decode|prefill)"),
    ("attention", r"gemm_softmax_gemm|_nsa_"),
    ("attention", r"dot_do_o|convert_dq_|dkdv|_fwd_grouped_kernel_stage"),
    ("attention", r"bwd_kernel_(?:\w*d(?:kv|q)|fuse|causal)|neighborhood"),
    ("attention", r"(?<![a-z])att\d?(?![a-z])|^_pa_(?:bf16|fp16|a\d)|_decode_(?:softmax_)?reducev"),
    ("attention", r"grouped_att_"),
    ("moe", r"(?<![a-z])f?moe(?![a-z])|expert|_gating|top_?k_?softmax|grouped_topk|topk_with_score"),
    ("moe", r"matmul_(?:ogs|scatter)|routing|bitmatrix|_expt_|expand_input_rows|_ep_(?:gather|scatter)"),
    ("moe", r"deepep_"),
    ("optimizer", r"(?<![a-z])(?:adam|adamw|lamb|sgd|adagrad|rmsprop|lion|muon|novograd)(?![a-z])"),
    ("optimizer", r"optimizer"),
    ("optimizer", r"_amp_(?:update|non_finite|foreach)"),
    # helpers of a library carry its words: before what they help
    ("layout", r"nchw_to|nhwc_to|to_nhwc|to_nchw|nchw2|cnhw2|im2d2?_?col|im2col|col2im|vol2col"),
    ("layout", r"image_to_column"),
    ("layout", r"_repack_|permute_cols|flip_filter|reformat"),
    ("reduction", r"split_?k_?reduce|(?:gemm|gemv|matmul)\w*_reduce(?:_kernel)?_$|reduce_wgrad|split_sum"),
    ("convolution", r"conv(?:olution|olve)?(?:_?[123]d)?(?![a-z\d])|depthwise|winograd"),
    ("convolution", r"mult_and_sum_complex"),
    ("convolution", r"\d[fdw](?:prop|grad)_|[dw]grad(?:\d?d)?_(?:alg|engine)|fprop|igemm_(?:fwd|bwd|wrw)"),
    ("convolution", r"implicit_gemm|[hsi]\d*cudnn"),
    ("convolution", r"asm_?conv|gemm\w*_bwd_(?:weight|data)"),
    # a name that quantises before or for a product is no product
    ("quantize", r"dequant_mm"),
    ("gemm", r"(?<!deep)(?<!deep_)gemm(?!a)|gemv|matrix_mul"),
    ("gemm", r"(?<![a-z])(?:matmul\d?|mat_mul|mul_mat)(?![a-z])"),
    ("gemm", r"(?<![a-z])(?:t?gmm|b?mm|b?addb?mm|spmm|sddmm|csrmm)(?![a-z])|wv_split_?k"),
    ("gemm", r"(?<![a-z])marlin_$|_lora_(?:shrink|expand)|scaled_mm|i8mm|up_proj_swiglu"),
    # normalisation with the quantisation behind it; a vector's norm and a renormalised probability are none
    ("reduction", r"lp_?norm|nrm2|vector_norm"),
    ("norm", r"(?:rms|layer|group|batch|instance|poly|qk)_?norm|_l2_?norm(?![a-z])|_rms_"),
    ("norm", r"norm(?:2d|alization)_"),
    ("norm", r"(?<![a-z])norm_(?:f32|fwd|bwd|kernel|forward|backward|rope)|_norm_$|_bn_|welford"),
    ("norm", r"gamma_beta|rowwise_moments|(?<![a-z])ln_(?:fwd?|bwd?|forward|backward)_|fused_ln_|_ada_?ln"),
    ("loss", r"cross_entropy|x_entropy|nll_?loss|class_nll|kl_?div|_jsd_|(?:mse|l1|ctc|bce)_loss|_grpo_"),
    ("loss", r"xent_|_ce_(?:loss|fwd|bwd|forward|backward)"),
    ("loss", r"tv_distance|_ce_tvd_"),
    ("softmax", r"soft_?max|sparsemax"),
    ("sampling", r"(?<![a-z])(?:sampling|sample|gumbel|rejection)_|recovered_tokens|speculative_"),
    ("sampling", r"(?:top|min)_?p_"),
    ("fft", r"(?<![a-z])fft(?![a-z])"),
    ("quantize", r"quant|rowwise_to_float|float_to_(?:h?fp8|fused8bit)|hfp8_to|cvt_\w*fp[48]|qparam"),
    ("quantize", r"(?:down|up)cast_(?:to|from)|convert_fp8|cast_transpose|scale_\d+x\d+_|calculate_scale"),
    ("quantize", r"ue8m0|scale_and_cast"),
    ("quantize", r"(?<![a-z])amax(?![a-z])|to_(?:mx|nv)?fp[48]|fp[48]_\w*_scales?_"),
    ("pooling", r"(?:max|avg|average|mean|_)pool(?:ing)?(?![a-z])|upsample|interpolat|grid_sampl"),
    ("pooling", r"roi_align|resize|upscale"),
    ("random", r"distribution|(?<![a-z])(?:dropout|bernoulli|randperm|random)|curand|hiprand|rocrand"),
    ("reduction", r"segmented_?reduce|device_reduce(?!_by)|reduce_segments"),
    ("sort", r"top_?k|sort(?![a-z])|(?<![a-z])scan(?![a-z])|cum_?sum|cum_?prod|prefix_sum|unique|by_key"),
    ("sort", r"searchsorted|histogram|bincount|compact_init|partition_kernel|radix_find"),
    ("indexing", r"permute_(?:pooled|\d_d|indices|lengths)"),
    ("layout", r"(?<![a-z])(?:transpose|permute|interleave)(?!d)|transform_bias_rescale|swizzle"),
    ("layout", r"blocked_layout|swap_dim|shuffle"),
    ("indexing", r"index_(?:select|put|add|copy|fill|func|mul|kernel)|indexing|gather|scatter"),
    ("indexing", r"(?<!rotary_)(?<!rope_)embedding|lookup|(?<![a-z])take_|token_ids|[gs]et_rows"),
    ("indexing", r"bounds_check|compute_grad_weight|krn_partial|num_of_partial|dynamic_update_slice"),
    ("indexing", r"write_req"),
    ("indexing", r"get_last_loc|(?:linearize|convert\w*)_ind(?:ex|ices)|(?:kv|mla)_?cache"),
    ("reduction", r"reduce|reduction"),
    ("reduction", r"_(?:sum|mean|asum|dot|absmax|argmax|argmin|logsumexp)_(?:kernel|f32|fwd|bwd)"),
    ("reduction", r"^_(?:logsumexp|argmax|argmin)_|max_absval|sum_partials|_gpu__red_"),
    ("reduction", r"_(?:var|sum|mean|max|min)_core"),
    ("reduction", r"nvfuser_(?:inner|outer)"),
    ("elementwise", r"_and_mul_|activation|silu|gelu|swiglu|geglu|relu|sigmoid|swish"),
    ("elementwise", r"(?<![a-z])(?:glu|tanh)_"),
    ("elementwise", r"rotary|(?<![a-z])m?rope(?![a-z])|token_shift|(?:add|bias|gate)_residual|addcmul"),
    ("elementwise", r"clamp_|mul_add|bias_(?:add|n[hc])|_penalt(?:y|ies)_"),
    ("fill", r"(?<![a-z])(?:fill|arange|iota)|mem_?set|set_value|clean_logits|_zeros?_"),
    ("copy", r"(?<![a-z])(?:cat|concat|pad|split|pack|roll|flip|expand|cast|convert|slice)(?![a-z])"),
    ("copy", r"copy|(?<![a-z])(?:mem)?cpy(?![a-z])|d2_?dcpy|_pad\d|triu_tril|op_with_cast|packunpack"),
    ("elementwise", r"element_?wise|pointwise"),
    ("elementwise", r"(?<![a-z])(?:unary|binary|tenary|bin_bcast|axpy|scal)(?![a-z])"),
    ("elementwise", rf"^_(?:element_)?{_BY_ONE}_(?:kernel|f32|tensor)"),
    ("elementwise", r"_act_kernel|operator_(?:tn|bcast)|packed_tensor|generic_tensor|^_saxpy_"),
    ("elementwise", r"sub_tensor_op"),
    ("elementwise", r"^_cupy_\w+__\w|^_loop_\w*fusion|^_add_parallel_"),
)

_SCOPES: tuple[tuple[str, str], ...] = (
    # (category, pattern over the words of the scopes): before the own name, which is short in such a scope
    ("attention", r"_natten_"),
    ("collective", r"_deep_ep_|_symmetric_memory_|allreduce_fusion_"),
    ("moe", r"^_moe_::_dev_"),
    ("convolution", r"_winograd(?:_nonfused)?_"),
    ("gemm", r"_gemvx_"),
    ("elementwise", r"_epilogue_::_impl_"),
)

_SCOPES_LAST: tuple[tuple[str, str], ...] = (
    # where the own name tells nothing
    ("moe", r"(?<![a-z])moe(?![a-z])"),
    ("attention", r"fused_attn|fmha|_mla_"),
    ("sampling", r"_sampling_"),
    ("norm", r"layer_?norm|_normalization_"),
)


def _compiled(rows: tuple[tuple[str, str], ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((category, re.compile(pattern)) for category, pattern in rows)


WORDS, SCOPES, SCOPES_LAST = _compiled(_WORDS), _compiled(_SCOPES), _compiled(_SCOPES_LAST)


_PURPOSE = re.compile(r"_for_.*|(?<=_)(?:pre|post)_(?:attention|attn|moe|gemm|norm|mlp)(?=_)")
"""Words that say what a kernel works for or beside, and not what it does."""
_PREPARES = re.compile(
    r"(?:args|arguments|metadata|descriptors?|problem_sizes|ptrs|pointers|schedule|tensor_maps?|plan|prep)(?:_kernel)?_$"
)
"""Last words of kernels that only prepare the launch of another one: no category fits."""


def by_words(words: str, scope_words: str = "") -> str | None:
    """The category that the words of an own name and of its scopes tell (see ``parts``), or None."""
    if _PREPARES.search(words):
        return None
    words = _PURPOSE.sub("_", words)
    for rows, text in ((SCOPES, scope_words), (WORDS, words), (SCOPES_LAST, scope_words)):
        for category, pattern in rows:
            if pattern.search(text):
                return category
    return None
