"""The framework ops whose shapes tell how much matrix work a step does."""

from __future__ import annotations

MATRIX = frozenset(
    {"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::_scaled_mm", "aten::_addmm_activation"}
)
CONVOLUTION = frozenset(
    {"aten::conv2d", "aten::convolution", "aten::convolution_backward", "aten::conv1d", "aten::conv3d"}
)
ATTENTION = ("scaled_dot_product", "flash_attention", "efficient_attention", "flash_attn")


def is_attention(name: str) -> bool:
    """Is this a framework op that does attention as a whole?"""
    return name.startswith("aten::") and any(word in name for word in ATTENTION)


def is_counted(name: str) -> bool:
    """Does the work of this op count as matrix work?"""
    return name in MATRIX or name in CONVOLUTION or is_attention(name)
