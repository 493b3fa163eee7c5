"""The cost of one op call: FLOPs, and the least bytes that it must move, from recorded shapes and types.

Bytes are compulsory traffic: each input that the op reads whole, and its output, once. They are given only
for ops of which that is known (matrix multiplies, attention, element-wise ops, norms, softmax, reductions,
convolutions, copies, Triton kernels); an op that reads a part of its input (index, gather, embedding) has
none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from profrun.analysis.trace.flops import Shapes, dimensions, flops_of

_TYPES = """
float 4 fp32
double 8 fp64
half 2 fp16
bfloat16 2 bf16
c10::half 2 fp16
c10::bfloat16 2 bf16
c10::float8_e4m3fn 1 fp8
c10::float8_e5m2 1 fp8
c10::float8_e4m3fnuz 1 fp8
c10::float8_e5m2fnuz 1 fp8
c10::complex<float> 8 -
c10::complex<double> 16 -
signed char 1 int8
unsigned char 1 -
bool 1 -
short 2 -
unsigned short 2 -
int 4 -
unsigned int 4 -
long 8 -
long int 8 -
unsigned long 8 -
"""
_TYPE_ROWS = [line.rsplit(maxsplit=2) for line in _TYPES.strip().splitlines()]

ITEM_BYTES = {name: int(size) for name, size, _ in _TYPE_ROWS}
"""Bytes of an element by the type names that torch records, lower case."""
DTYPES = {name: dtype for name, _, dtype in _TYPE_ROWS if dtype != "-"}
"""The dtype, as the table of peaks calls it, by the same names; only types that matrix units multiply."""

_POINTWISE = """
add sub rsub mul div neg abs exp log sqrt rsqrt pow reciprocal sin cos maximum minimum clamp clamp_min
clamp_max where masked_fill lerp addcmul addcdiv relu gelu silu sigmoid tanh hardtanh leaky_relu
threshold_backward gelu_backward silu_backward sigmoid_backward tanh_backward native_dropout
native_dropout_backward _softmax _log_softmax _safe_softmax _softmax_backward_data
_log_softmax_backward_data native_layer_norm native_layer_norm_backward native_batch_norm
native_batch_norm_backward cudnn_batch_norm cudnn_batch_norm_backward miopen_batch_norm
miopen_batch_norm_backward _fused_rms_norm
"""
POINTWISE = frozenset(_POINTWISE.split())
"""Each input is read once, and a tensor of the largest input's size is written; in place or not."""
_READING = """
sum mean amax amin argmax argmin norm linalg_vector_norm cudnn_convolution miopen_convolution
convolution_overrideable convolution_backward _slow_conv2d_forward
"""
READING = frozenset(_READING.split())
"""Each input is read once; what is written is not in the shapes, so only the inputs count."""
_TRITON = re.compile(r"^triton_(?!.*(?:embedding|index|gather|scatter))")
_ATTENTION = re.compile(r"^aten::_?(?:scaled_dot_product|flash|efficient|cudnn)\w*_?attention")
_BY_SEQUENCE = re.compile(r"^aten::_(?:flash|efficient)_attention")
"""Tensors are batch x sequence x heads x dim here, batch x heads x sequence x dim elsewhere."""


@dataclass(frozen=True)
class OpCost:
    """Cost of one op call.

    Attributes:
        flops: floating point operations; None where the shapes do not tell.
        bytes: the least bytes that it must move; None where the shapes do not tell.
        dtype: type of its first input that matrix units multiply, as the table of peaks calls it, or None.
    """

    flops: int | None
    bytes: int | None
    dtype: str | None


def cost_of(name: str, shapes: Shapes, dtypes: Sequence[object]) -> OpCost:
    """FLOPs, compulsory bytes and dtype of one call; attention counts both of its matrix products.

    Bytes are a lower bound: a kernel that reads an input twice moves more.

    Args:
        name: the op, such as aten::mm.
        shapes: input shapes as recorded.
        dtypes: type names of the inputs as recorded, in the same order.
    """
    types = [str(item).lower() for item in dtypes]
    dtype = next((DTYPES[item] for item in types if item in DTYPES), None)
    dims = [dimensions(shape) for shape in shapes]
    sizes = _sizes(dims, types)
    if _ATTENTION.search(name):
        return _attention(
            name, dims, next((ITEM_BYTES[kind] for kind in types if kind in ITEM_BYTES), None), dtype
        )
    return OpCost(flops_of(name, shapes), _bytes(name, dims, sizes), dtype)


def _sizes(dims: Sequence[list[int] | None], types: Sequence[str]) -> list[int] | None:
    """Bytes of each tensor, 0 for what is none; None when the type of one is not known."""
    known = next((ITEM_BYTES[kind] for kind in types if kind in ITEM_BYTES), None)
    found = []
    for place, shape in enumerate(dims):
        kind = types[place] if place < len(types) else ""
        item = ITEM_BYTES.get(kind, None if kind else known)
        if shape and item is None:
            return None
        found.append(prod(shape) * (item or 0) if shape else 0)
    return found


def _bytes(name: str, dims: Sequence[list[int] | None], sizes: list[int] | None) -> int | None:
    if not sizes or not any(sizes):
        return None
    if _TRITON.match(name):
        return sum(sizes)  # what it writes is among its arguments
    base = name.removeprefix("aten::")
    if base == name:
        return None
    at = {"mm": 0, "bmm": 0, "_scaled_mm": 0, "addmm": 1, "baddbmm": 1, "_addmm_activation": 1}.get(base)
    if at is not None:
        return _product(dims, sizes, at)
    if base in ("fill_", "zero_"):
        return sizes[0]
    if base == "copy_":
        return sum(sizes)
    if base.removesuffix("_") in POINTWISE:
        return sum(sizes) + max(sizes)
    return sum(sizes) if base in READING else None


def _product(dims: Sequence[list[int] | None], sizes: list[int], at: int) -> int | None:
    """Inputs and output of a matrix multiply; the output is of the first factor's type."""
    if len(dims) < at + 2:
        return None
    left, right = dims[at], dims[at + 1]
    if not left or not right or not prod(left):
        return None
    return sum(sizes) + sizes[at] // prod(left) * prod([*left[:-1], right[-1]])


def _attention(name: str, dims: Sequence[list[int] | None], item: int | None, dtype: str | None) -> OpCost:
    """2 products of 2 x B x H x Sq x Sk x D; the backward does five instead of two (FlashAttention-2, 2.3.1).

    A causal mask, which may skip half of it, is not in the shapes: an upper bound. The backward's first input
    is the gradient of the output; it reads that, query, key, value and the output, and writes three
    gradients.
    """
    backward = "backward" in name
    tensors = [shape for shape in dims[1 if backward else 0 :][:3] if shape and len(shape) == 4]
    if len(tensors) < 3:
        return OpCost(None, None, dtype)
    query, key, value = tensors
    output = [*query[:3], value[3]]
    forward = 2 * (prod(query) + prod(output)) * key[1 if _BY_SEQUENCE.match(name) else 2]
    moved = [query, key, value, output] * (2 if backward else 1)
    size = None if item is None else item * sum(prod(shape) for shape in moved)
    return OpCost(forward * 5 // 2 if backward else forward, size, dtype)
