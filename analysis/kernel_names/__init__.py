"""What kernel names tell: ``read_kernel(name)`` gives family, category, and what else is in the name.

Works for cuBLAS, cuBLASLt (nvjet), CUTLASS, cuDNN, FlashAttention, FlashInfer, vLLM, SGLang, TensorRT-LLM,
DeepGEMM, Transformer Engine, Liger, Triton and Inductor on NVIDIA, and Tensile / hipBLASLt, Composable
Kernel, ck_tile, MIOpen, AITER and RCCL on AMD. A name that tells nothing is category 'unknown'.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from profrun.analysis.kernel_names import inductor
from profrun.analysis.kernel_names.category import category_of
from profrun.analysis.kernel_names.gemm import MatrixDetails, matrix_details
from profrun.analysis.kernel_names.inductor import fused_ops
from profrun.analysis.kernel_names.library import family_of
from profrun.analysis.kernel_names.parts import split
from profrun.analysis.kernel_names.table import CATEGORIES
from profrun.analysis.kernel_names.text import normalise, short

__all__ = ["CATEGORIES", "KernelName", "fused_ops", "normalise", "read_kernel", "short"]

MATRIX_CATEGORIES = frozenset({"gemm", "convolution", "attention", "recurrence", "moe"})
"""Categories whose kernels could use tensor / matrix cores."""
_NO_PRODUCT = re.compile(
    r"routing|align_block|_reduce_|combine|merge|finalize|gating|bitmatrix|sort|_sum_|permute|top_?k|softmax"
)
"""Words of the kernels around experts and attention that multiply no matrices."""


@dataclass(frozen=True)
class KernelName:
    """What a kernel's name tells.

    Attributes:
        name: the name as the tool wrote it.
        family: the library or compiler it comes from, 'unknown' when the name does not tell.
        category: a key of ``CATEGORIES``.
        layout: BLAS operations of A and B: 'nn', 'nt', 'tn', 'tt', or None.
        dtype: type of the inputs of the matrix product: fp16, bf16, tf32, fp32, fp64, fp8, fp4, int8, int4,
            complex64, complex128; 'fp4 x fp8' where A and B differ; None where the name does not tell.
        accumulate: type in which the product is summed up: fp32, fp16, fp64, int32, or None.
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
    accumulate: str | None = None


def _epilogue(name: str) -> tuple[str, ...]:
    text = name.lower()
    return tuple(
        word for word in ("bias", "relu", "gelu", "silu", "swiglu") if re.search(rf"_{word}|{word}_", text)
    )


@lru_cache(maxsize=65536)
def read_kernel(name: str) -> KernelName:
    """Read one kernel name. Never raises; what the name does not say is None or 'unknown'."""
    text = normalise(name)
    parts = split(text)
    family = family_of(parts)
    category = inductor.category_of(text) if family == "inductor" else category_of(parts)
    if category == "unknown" and family == "triton":
        category = "triton"
    details = MatrixDetails()
    core: bool | None = None
    if category in MATRIX_CATEGORIES:
        if category in ("attention", "moe") and _NO_PRODUCT.search(parts.words):
            core = False
        else:
            details = matrix_details(text, family, category)
            core = details.matrix_core
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
        fused_ops=fused_ops(text),
        normalised=text,
        short=short(name.strip()),
        matrix_core=core,
        epilogue=_epilogue(name) if category == "gemm" else (),
        accumulate=details.accumulate,
    )
