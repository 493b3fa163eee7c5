"""What kernel names tell: ``read_kernel(name)`` gives family, category, and what else is in the name.

Works for cuBLAS, cuBLASLt (nvjet), CUTLASS, cuDNN, FlashAttention, Liger, Triton and Inductor on NVIDIA, and
Tensile / hipBLASLt, Composable Kernel, ck_tile, MIOpen, AITER and RCCL on AMD. A name that tells nothing is
category 'unknown': nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from profrun.analysis.kernel_names.gemm import MatrixDetails, matrix_details
from profrun.analysis.kernel_names.table import CATEGORIES, family_and_category
from profrun.analysis.kernel_names.text import normalise, short

__all__ = ["CATEGORIES", "KernelName", "fused_ops", "normalise", "read_kernel", "short"]

MATRIX_CATEGORIES = frozenset({"gemm", "convolution", "attention", "moe"})
"""Categories whose kernels could use tensor / matrix cores."""


@dataclass(frozen=True)
class KernelName:
    """What a kernel's name tells.

    Attributes:
        name: the name as the tool wrote it.
        family: the library or compiler it comes from, 'unknown' when the name does not tell.
        category: a key of ``CATEGORIES``.
        layout: BLAS operations of A and B: 'nn', 'nt', 'tn', 'tt', or None.
        dtype: input type: fp16, bf16, tf32, fp32, fp64, fp8, int8, complex64, or None.
        tile: output tile of one block, (m, n) or (m, n, k), or None.
        arch: architecture the kernel was written for (sm_90, gfx942), or None.
        fused_ops: the framework ops Inductor fused into it, in name order.
        normalised: the name in one spelling for all tools and runs (see ``normalise``).
        short: what a person calls it.
        matrix_core: True / False when the name proves it, None when it does not tell.
        epilogue: 'bias', 'relu', ... fused behind a GEMM, by its name.
    """

    name: str
    family: str
    category: str
    layout: str | None
    dtype: str | None
    tile: tuple[int, ...] | None
    arch: str | None
    fused_ops: tuple[str, ...]
    normalised: str
    short: str
    matrix_core: bool | None
    epilogue: tuple[str, ...] = ()


_INDUCTOR = re.compile(
    r"^triton_(?P<kind>poi|red|per|tem|mm|for|unk|split_scan)_(?:fused_?)?(?P<ops>.*?)_?\d*$"
)
_ATEN_NAMES = """
_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention constant_pad_nd
native_layer_norm_backward native_dropout_backward _log_softmax_backward_data _softmax_backward_data
threshold_backward native_batch_norm_backward embedding_dense_backward native_layer_norm native_group_norm
native_dropout _native_batch_norm_legit_functional nll_loss_forward nll_loss_backward _log_softmax
log_softmax _softmax gelu_backward silu_backward tanh_backward sigmoid_backward _to_copy _unsafe_view
_unsafe_index_put _unsafe_index index_select index_add index_put masked_fill bitwise_and bitwise_not
bitwise_or bitwise_xor logical_and logical_not logical_or select_scatter slice_scatter convert_element_type
max_pool2d_with_indices avg_pool2d adaptive_avg_pool2d moe_forward new_zeros new_ones zeros_like ones_like
full_like empty_like scalar_tensor arange_start var_mean clamp_min clamp_max split_with_sizes leaky_relu
hardtanh pixel_shuffle as_strided linalg_vector_norm scatter_add addcmul addcdiv
"""
_ATEN = tuple(_ATEN_NAMES.split())
"""ATen overloads whose own name holds '_', longest first, so that 'native_layer_norm' stays whole."""


def fused_ops(name: str) -> tuple[str, ...]:
    """The ops in an Inductor kernel name: triton_poi_fused_gelu_mul_0 -> ('gelu', 'mul').

    Inductor joins sorted op names with '_', so a name with '_' inside is ambiguous; the known ATen names
    are kept whole, everything else is cut at '_'. Empty when it is not an Inductor name.
    """
    hit = _INDUCTOR.match(name)
    if hit is None:
        return ()
    rest, found = hit["ops"], []
    while rest:
        for known in _ATEN:
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


def _inductor_category(name: str, ops: tuple[str, ...]) -> str:
    kind = _INDUCTOR.match(name)
    word = kind["kind"] if kind else ""
    joined = " ".join(ops)
    if word in ("tem", "mm") or re.search(r"\b(?:mm|addmm|bmm|baddbmm)\b", joined):
        if "attention" in joined or "flex" in joined:
            return "attention"
        return "convolution" if "convolution" in joined else "gemm"
    if "softmax" in joined:
        return "softmax"
    if "norm" in joined or {"mean", "rsqrt"} <= set(ops) or "var_mean" in ops:
        return "norm"
    if word in ("red", "per"):
        return "reduction"
    if "embedding" in ops or "index" in ops:
        return "indexing"
    if ops and all(
        op in ("_to_copy", "clone", "copy", "cat", "permute", "_unsafe_view", "view") for op in ops
    ):
        return "copy"
    return "elementwise" if word in ("poi", "for") else "triton"


def _epilogue(name: str) -> tuple[str, ...]:
    text = name.lower()
    return tuple(
        word for word in ("bias", "relu", "gelu", "silu", "swiglu") if re.search(rf"_{word}|{word}_", text)
    )


@lru_cache(maxsize=65536)
def read_kernel(name: str) -> KernelName:
    """Read one kernel name. Never raises; what the name does not say is None or 'unknown'."""
    stripped = name.strip()
    family, category = family_and_category(stripped)
    ops = fused_ops(stripped)
    if family == "inductor":
        category = _inductor_category(stripped, ops)
    details = MatrixDetails()
    core: bool | None = None
    epilogue: tuple[str, ...] = ()
    if category in MATRIX_CATEGORIES:
        details = matrix_details(stripped, family)
        core = details.matrix_core
        epilogue = _epilogue(stripped) if category == "gemm" else ()
    elif category not in ("unknown", "triton"):
        core = False
    return KernelName(
        name=name,
        family=family,
        category=category,
        layout=details.layout,
        dtype=details.dtype,
        tile=details.tile,
        arch=details.arch,
        fused_ops=ops,
        normalised=normalise(stripped),
        short=short(stripped),
        matrix_core=core,
        epilogue=epilogue,
    )
