"""FLOPs and least bytes of one op call, from its recorded shapes and types."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.op_cost import cost_of

BF16 = ["c10::BFloat16", "c10::BFloat16"]


HEADS, SEQUENCE = [2, 4, 8, 16], [2, 8, 4, 16]


ONE = 2 * 4 * 8 * 16


@pytest.mark.parametrize(
    ("name", "shapes", "types", "size"),
    [
        ("aten::mm", [[2, 3], [3, 5]], BF16, 2 * (6 + 15 + 10)),
        ("aten::addmm", [[5], [2, 3], [3, 5], [], []], ["float"] * 3 + ["Scalar"] * 2, 4 * (5 + 6 + 15 + 10)),
        ("aten::mm", [[2, 3], [3, 5]], [], None),
        ("aten::add", [[4, 4], [4], []], ["float", "float", "Scalar"], 4 * (16 + 4 + 16)),
        ("aten::add_", [[4, 4], [4, 4], []], ["float", "float", "Scalar"], 4 * 48),
        ("aten::copy_", [[8], [8], []], ["float", "c10::BFloat16", "Scalar"], 8 * (4 + 2)),
        ("aten::fill_", [[8], []], ["float", "Scalar"], 32),
        ("aten::mean", [[8, 4], [], [], []], ["float", "ScalarList", "Scalar", ""], 128),
        ("aten::index_select", [[1000, 4], [], [2]], ["float", "Scalar", "long int"], None),
        ("aten::nll_loss_forward", [[8, 1000], [8]], ["float", "long int"], None),
        ("triton_poi_fused_add_0", [[8], [8], [8]], ["float"] * 3, 96),
        ("triton_poi_fused_embedding_0", [[1000, 8], [4]], ["float", "long int"], None),
        ("vllm::unified_attention_with_output", [[8, 8, 64]] * 4, ["c10::BFloat16"] * 4, None),
    ],
)  # fmt: skip
def test_bytes_are_what_an_op_must_move(
    name: str, shapes: list[object], types: list[str], size: int | None
) -> None:
    assert cost_of(name, shapes, types).bytes == size


@pytest.mark.parametrize(
    ("name", "shapes", "flops", "tensors"),
    [
        ("aten::_scaled_dot_product_flash_attention", [HEADS] * 3, 4 * ONE * 8, 4),
        ("aten::_cudnn_attention_forward", [HEADS] * 3 + [[]], 4 * ONE * 8, 4),
        ("aten::_flash_attention_forward", [SEQUENCE] * 3 + [[], []], 4 * ONE * 8, 4),
        ("aten::_efficient_attention_forward", [SEQUENCE] * 3, 4 * ONE * 8, 4),
        ("aten::_flash_attention_backward", [SEQUENCE] * 5, 10 * ONE * 8, 8),
        ("aten::_cudnn_attention_backward", [HEADS] * 5 + [[2, 4, 8, 1]], 10 * ONE * 8, 8),
    ],
)
def test_attention_by_either_order_of_its_dimensions(
    name: str, shapes: list[object], flops: int, tensors: int
) -> None:
    cost = cost_of(name, shapes, ["c10::Half"] * len(shapes))
    assert (cost.flops, cost.bytes) == (flops, tensors * ONE * 2)


def test_attention_over_a_longer_sequence_counts_the_keys() -> None:
    query, keys = [2, 4, 8, 16], [2, 4, 32, 16]
    cost = cost_of("aten::_scaled_dot_product_cudnn_attention_backward", [query, query, keys, keys], BF16)
    assert cost.flops == 10 * ONE * 32
    assert cost_of("aten::_flash_attention_forward", [[16, 4, 8]] * 3, BF16).flops is None  # packed: no batch
