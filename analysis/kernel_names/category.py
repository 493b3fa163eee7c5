"""What a kernel does, from the parts of its name.

Most kernels say it in their own name (``table``). A wrapper says it in its template arguments: one kernel of
PyTorch runs every element-wise functor, one of CUTLASS every GEMM, convolution and attention.
"""

from __future__ import annotations

import re

from profrun.analysis.kernel_names.parts import Parts
from profrun.analysis.kernel_names.table import by_words

_SYSTEMATIC = re.compile(r"Cijk_A|nvjet_|Custom_Cijk_")
"""Libraries that name every kernel of theirs by a scheme of its own; each is a GEMM."""

_WRAPPERS = re.compile(
    r"Kernel2?|device_kernel|kentry|launch_and_check|trampoline_kernel|enable_\w+|\w+_only|make_kernel"
    r"|attention_kernel_batched_impl|_kernel_agent|run_global"
)
_FUNCTORS = (
    # (category, pattern over the template arguments of an element-wise wrapper); the rest is element-wise
    ("copy", r"(?:direct|float\w*)_copy_kernel|copy_device_to_device|CopyFunctor|at::native::Copy<"),
    ("fill", r"FillFunctor|ZeroFunctor|arange|linspace|eye_"),
    ("random", r"bernoulli|normal_and_transform|uniform_and_transform|random_from_to"),
    ("quantize", r"quantize|h?fp8_gpu|_to_h?fp8|h?fp8_to_"),
    ("loss", r"(?:mse|smooth_l1|huber|kl_div|binary_cross_entropy|nll)_(?:kernel|backward|loss)"),
    ("norm", r"batch_norm|layer_norm|group_norm"),
)
_LISTS = (
    # the same for kernels over lists of tensors, which optimizers use, and others too
    (
        "optimizer",
        r"(?i:adam|lamb|sgd|adagrad|novograd|lars|lion|rmsprop)\w*(?:Functor|Math)|FusedOptimizer|_amp_",
    ),
    ("reduction", r"NormFunctor|MaxFunctor|SumFunctor"),
)
FUNCTORS = tuple((category, re.compile(pattern)) for category, pattern in _FUNCTORS)
LISTS = tuple((category, re.compile(pattern)) for category, pattern in _LISTS + _FUNCTORS[:2])
DEPTH = 4
"""How many wrappers deep a name is read."""


def category_of(parts: Parts) -> str:
    """The category, 'unknown' when neither the name nor what it wraps tells one."""
    return _named(parts, DEPTH) or "unknown"


def _named(parts: Parts, depth: int) -> str | None:
    if _SYSTEMATIC.match(parts.own):
        return "gemm"
    if parts.own == "multi_tensor_apply_kernel":
        return _functor(parts, LISTS)
    if "elementwise_kernel" in parts.own and parts.arguments:
        if re.search(r"index_elementwise|scatter_gather", parts.own):
            return "indexing"
        return "random" if "distribution" in parts.own else _functor(parts, FUNCTORS)
    if parts.own == "transform_kernel":  # rocPRIM's; with the identity it copies
        return "copy" if "identity" in parts.arguments else "elementwise"
    if "ParallelForAgent<" in parts.arguments[:200] and "__transform" in parts.arguments:
        return "elementwise"
    if _WRAPPERS.fullmatch(parts.own) and parts.arguments and depth:
        for inner in parts.inner[:3]:
            found = _named(inner, depth - 1)
            if found is not None:
                return found
    return by_words(parts.words, parts.scope_words)


def _functor(parts: Parts, rows: tuple[tuple[str, re.Pattern[str]], ...]) -> str:
    for category, pattern in rows:
        if pattern.search(parts.arguments):
            return category
    return "elementwise"
