"""The names that Inductor makes: ``triton_<kind>_fused_<ops>_<number>``.

The ops are those of the graph whose values the kernel computes or uses, so an op may stand in the name
although another kernel did its work: ``triton_per_fused_addmm_gelu_native_layer_norm_5`` is a layer norm
behind a library's GEMM. The kind says what the kernel can be: ``poi`` computes each element from the same
place of its inputs, ``red`` and ``per`` reduce, ``tem`` and ``mm`` are templates with a matrix product.
"""

from __future__ import annotations

import re

KINDS = r"poi|red|per|tem|mm|bmm|for|unk|spl|split_scan|flex_attention(?:_backward)?"
"""Pattern of the word behind ``triton_`` in Inductor's names."""
_NAME = re.compile(rf"^triton_(?P<kind>{KINDS})(?:_fused)?(?:_(?P<ops>.*?))??(?:_?\d+)?$")
_OP_NAMES = """
_scaled_dot_product_flash_attention_backward _scaled_dot_product_efficient_attention_backward
_scaled_dot_product_cudnn_attention_backward _scaled_dot_product_fused_attention_overrideable
_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention
_scaled_dot_product_cudnn_attention _native_batch_norm_legit_no_training
_native_batch_norm_legit_functional _native_batch_norm_legit native_batch_norm_backward
native_layer_norm_backward native_group_norm_backward native_dropout_backward _fused_rms_norm_backward
_fused_rms_norm _log_softmax_backward_data _softmax_backward_data _safe_softmax threshold_backward
embedding_dense_backward native_layer_norm native_group_norm native_batch_norm native_dropout
binary_cross_entropy_with_logits binary_cross_entropy nll_loss_forward nll_loss_backward
nll_loss2d_forward mse_loss_backward mse_loss smooth_l1_loss huber_loss kl_div cross_entropy
_log_softmax log_softmax _softmax max_pool2d_with_indices_backward max_pool2d_with_indices
_adaptive_avg_pool2d adaptive_avg_pool2d avg_pool2d_backward avg_pool2d upsample_nearest2d
upsample_bilinear2d grid_sampler_2d gelu_backward silu_backward tanh_backward sigmoid_backward
hardtanh_backward leaky_relu hardtanh _to_copy _unsafe_view _unsafe_index_put _unsafe_index index_select
index_add index_put index_copy masked_fill bitwise_and bitwise_not bitwise_or bitwise_xor logical_and
logical_not logical_or select_scatter slice_scatter select_backward slice_backward scatter_add
scatter_reduce convert_element_type constant_pad_nd flex_attention_backward flex_attention moe_forward
new_zeros new_ones new_full zeros_like ones_like full_like empty_like scalar_tensor arange_start
var_mean clamp_min clamp_max split_with_sizes pixel_shuffle as_strided linalg_vector_norm addcmul
addcdiv inductor_random inductor_seeds inductor_lookup_seed wait_tensor all_reduce
all_gather_into_tensor reduce_scatter_tensor convolution_backward
"""
OPS = tuple(sorted(_OP_NAMES.split(), key=lambda op: -len(op)))
"""Ops whose own name holds '_', longest first, so that 'native_layer_norm' stays whole."""

_ELSEWHERE = re.compile(
    r"(?:mm|addmm|bmm|baddbmm|convolution\w*|_scaled_dot_product\w*|moe_forward|topk|nonzero)"
)
"""Ops that only a library's or a template's kernel computes; here they stand for the value that it made."""
_PRODUCT = re.compile(r"(?:mm|addmm|bmm|baddbmm)")
ORDER = (
    # (category, pattern over one op), what costs most first
    ("softmax", r"\w*softmax\w*"),
    ("norm", r"\w*(?:batch|layer|group|instance|rms)_norm\w*"),
    ("loss", r"\w*(?:nll_loss|cross_entropy|mse_loss|smooth_l1_loss|huber_loss|kl_div)\w*"),
    ("sort", r"cum(?:sum|prod|max|min)|logcumsumexp|sort|topk"),
    (
        "reduction",
        r"sum|mean|amax|amin|max|min|argmax|argmin|prod|any|all|var|std|logsumexp|linalg_vector_norm|norm",
    ),
    ("random", r"native_dropout|bernoulli|rand\w*|inductor_random|inductor_seeds|uniform|normal"),
    ("pooling", r"\w*pool2?d?\w*|upsample\w*|grid_sampler\w*"),
    ("indexing", r"(?:_unsafe_)?index\w*|embedding\w*|gather|scatter\w*|select_scatter|slice_scatter"),
    ("fill", r"(?:new_)?(?:zeros|ones|full)(?:_like)?|arange\w*|empty\w*|scalar_tensor|lift|fresh|copy"),
)
_COPIES = """
_to_copy clone copy cat permute _unsafe_view view t transpose constant_pad_nd stack convert slice
split_with_sizes expand unsqueeze squeeze select as_strided reshape pad
"""
COPIES = frozenset(_COPIES.split())
"""Ops that move values; a kernel of nothing else is a copy."""
_PATTERNS = {category: re.compile(pattern) for category, pattern in ORDER}


def kind_of(name: str) -> str | None:
    """The kind in an Inductor name: 'poi', 'red', ...; None when it is not one."""
    hit = _NAME.match(name)
    return hit["kind"] if hit else None


def fused_ops(name: str) -> tuple[str, ...]:
    """The ops in an Inductor kernel name: triton_poi_fused_gelu_mul_0 -> ('gelu', 'mul').

    Inductor joins sorted op names with '_', so a name with '_' inside is ambiguous; the known ATen names
    are kept whole, everything else is cut at '_'. Empty when it is not an Inductor name.
    """
    hit = _NAME.match(name)
    if hit is None:
        return ()
    rest, found = hit["ops"] or "", []
    while rest:
        for known in OPS:
            if rest == known or rest.startswith(known + "_"):
                found.append(known)
                rest = rest[len(known) :].removeprefix("_")
                break
        else:
            head, _, tail = rest.partition("_")
            if head:
                found.append(head)
            rest = tail
    return tuple(found)


def category_of(name: str) -> str:
    """The category of an Inductor kernel: of its heaviest op that a kernel of this kind can compute.

    The order is template products, softmax, norm, loss, scan, products by multiplying and adding, reduction,
    random, pooling, indexing, element-wise, copy, fill. 'triton' when the kind tells nothing and no op does.
    """
    kind, ops = kind_of(name), fused_ops(name)
    if kind is None:
        return "triton"
    if kind in ("tem", "mm", "bmm") or kind.startswith("flex"):
        return _template(kind, ops)
    if kind in ("spl", "split_scan"):
        return "sort"
    own = [op for op in ops if not _ELSEWHERE.fullmatch(op)]
    reduces = kind in ("red", "per")
    if (reduces and {"mean", "rsqrt"} <= set(own)) or {"var_mean", "rsqrt"} <= set(own):
        return "norm"
    for category, pattern in _PATTERNS.items():
        if category == "fill" or (category in ("sort", "reduction") and not reduces):
            continue
        if any(pattern.fullmatch(op) for op in own):
            return category
        if category == "sort" and reduces and _multiplies_and_adds(ops, own):
            return "gemm"
    return "reduction" if reduces else _pointwise(kind, own)


def _template(kind: str, ops: tuple[str, ...]) -> str:
    if kind.startswith("flex") or any("attention" in op for op in ops):
        return "attention"
    return "convolution" if any(op.startswith("convolution") for op in ops) else "gemm"


def _multiplies_and_adds(ops: tuple[str, ...], own: list[str]) -> bool:
    """A product of a thin matrix becomes a multiplication and a sum: no other op of the name reduces."""
    reduction = _PATTERNS["reduction"]
    return any(_PRODUCT.fullmatch(op) for op in ops) and not any(reduction.fullmatch(op) for op in own)


def _pointwise(kind: str, own: list[str]) -> str:
    if kind == "unk":
        return "triton"
    if own and all(_PATTERNS["fill"].fullmatch(op) for op in own):
        return "copy" if set(own) == {"copy"} else "fill"
    return "copy" if own and set(own) <= COPIES else "elementwise"
