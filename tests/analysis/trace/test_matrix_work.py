"""Matrix work, each piece once, and what of it is computed again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.matrix_work import is_matrix_like, matrix_work, stopped, unknown_like
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace

FLOPS = 2 * 8 * 16 * 32
"""Of one multiply of (8, 16) and (16, 32)."""


def op(name: str, ts: int, ns: int, sequence: int | None = None, shapes: str = "") -> Row:
    return ("op", name, ts, ns, "main", {"ops.shapes": shapes or None, "ops.sequence": sequence})


def mm(ts: int, sequence: int | None = None) -> Row:
    return op("aten::mm", ts, 10, sequence, "[[8,16],[16,32]]")


def found(rows: list[Row]) -> list[tuple[int, float, float]]:
    """(begin, FLOPs, part that the model needs) of every op that counts."""
    trace = memory_trace(rows)
    work = matrix_work(trace)
    starts = frame(trace).ts[work.slices]
    return list(zip(starts.tolist(), work.flops.tolist(), work.needed.tolist(), strict=True))


def test_an_ordinary_backward_is_needed() -> None:
    """A multiply of the forward is recorded by autograd, the two of its backward are not."""
    assert found(
        [
            mm(0, 7),
            op("autograd::engine::evaluate_function: MmBackward0", 100, 90, 7),
            op("MmBackward0", 110, 70, 7),
            op("aten::t", 111, 2),
            mm(120),
            mm(140),
        ]
    ) == [(0, FLOPS, 1), (120, FLOPS, 1), (140, FLOPS, 1)]


def test_reentrant_checkpointing_computes_the_forward_again() -> None:
    """The forward ran without autograd; inside of CheckpointFunctionBackward it runs again, recorded."""
    assert found(
        [
            op("CheckpointFunction", 0, 50, 3),
            mm(10),
            op("autograd::engine::evaluate_function: CheckpointFunctionBackward", 100, 300, 3),
            op("CheckpointFunctionBackward", 110, 280, 3),
            mm(120, 5),
            op("autograd::engine::evaluate_function: MmBackward0", 200, 90, 5),
            op("MmBackward0", 210, 70, 5),
            mm(220),
            mm(240),
        ]
    ) == [(10, FLOPS, 1), (120, FLOPS, 0), (220, FLOPS, 1), (240, FLOPS, 1)]


def test_checkpointing_by_hooks_computes_again_inside_of_the_node_that_needs_it() -> None:
    """MmBackward0 unpacks its inputs, so the forward runs again first: aten::matmul with its aten::mm.

    A second multiply was begun and left: all that it did is to detach its inputs.
    """
    assert found(
        [
            mm(0, 7),
            op("autograd::engine::evaluate_function: MmBackward0", 100, 190, 7),
            op("MmBackward0", 110, 170, 7),
            op("aten::matmul", 120, 40, 9),
            mm(125, 9),
            op("aten::resolve_conj", 126, 2),
            mm(170, 11),
            op("aten::detach", 171, 3),
            op("detach", 172, 1),
            op("aten::t", 200, 2),
            mm(210),
            mm(230),
        ]
    ) == [(0, FLOPS, 1), (125, FLOPS, 0), (170, 0, 0), (210, FLOPS, 1), (230, FLOPS, 1)]


def test_a_backward_for_a_second_derivative_is_not_computed_again() -> None:
    """With create_graph autograd records the backward: every op of the node has a sequence number."""
    assert found(
        [
            mm(0, 7),
            op("autograd::engine::evaluate_function: MmBackward0", 100, 90, 7),
            op("MmBackward0", 110, 70, 7),
            op("aten::t", 111, 2, 8),
            mm(120, 9),
            mm(140, 10),
        ]
    ) == [(0, FLOPS, 1), (120, FLOPS, 1), (140, FLOPS, 1)]


def test_a_fused_attention_backward_computes_one_of_five_products_again() -> None:
    shape = "[2,4,8,16]"
    forward = 2 * (2 * 2 * 4 * 8 * 8 * 16)
    rows = [
        op("aten::scaled_dot_product_attention", 0, 50, 4, f"[{shape},{shape},{shape}]"),
        op("autograd::engine::evaluate_function: ScaledDotProductFlashAttentionBackward0", 100, 90, 4),
        op("ScaledDotProductFlashAttentionBackward0", 110, 70, 4),
        op("aten::_scaled_dot_product_flash_attention_backward", 120, 40, None,
           f"[{shape},{shape},{shape},{shape},{shape}]"),
    ]  # fmt: skip
    (_, first, needed), (_, second, part) = found(rows)
    assert (first, needed, second, part) == (forward, 1, 2.5 * forward, 0.8)
    assert second * part == 2 * forward


def test_a_backward_without_sequence_numbers_tells_nothing() -> None:
    rows: list[Row] = [mm(0), op("MmBackward0", 110, 70), mm(120)]
    assert not matrix_work(memory_trace(rows)).told
    assert matrix_work(memory_trace([mm(0)])).told  # no backward: nothing can be computed again


def test_ops_that_multiply_by_their_names_and_are_not_counted() -> None:
    rows = [
        op("flash_attn::_flash_attn_forward", 0, 20),
        op("aten::linear", 100, 50, 1),
        mm(110, 2),  # counted: the linear round it is no other work
        op("vllm::moe_forward", 200, 50),
        op("_C::cutlass_scaled_mm", 210, 20),  # the inner one is told
        op("aten::mkldnn_convolution", 300, 20),
    ]
    trace = memory_trace(rows)
    names = [frame(trace).text(number) for number in unknown_like(trace)]
    assert names == ["flash_attn::_flash_attn_forward", "_C::cutlass_scaled_mm", "aten::mkldnn_convolution"]


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("aten::_grouped_mm", True), ("aten::_int_mm", True), ("quantized::linear", True),
        ("mkldnn::_linear_pointwise", True), ("AddmmBackward0", False), ("aten::layer_norm", False),
        ("aten::comm_split", False), ("aten::summary", False), ("aten::linalg_vector_norm", False),
    ],
)  # fmt: skip
def test_names_of_matrix_work(name: str, like: bool) -> None:
    assert is_matrix_like(name) == like


def test_no_op_is_stopped_that_is_not_computed_again() -> None:
    trace = memory_trace([mm(0, 7), op("aten::detach", 1, 3)])
    nothing = np.zeros(2, dtype=bool)
    assert not stopped(frame(trace), np.array([0]), nothing).any()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what ``checkpoint_program`` wrote."""
    out = tmp_path_factory.mktemp("checkpoint")
    program = Path(__file__).with_name("checkpoint_program.py")
    subprocess.run([sys.executable, str(program), str(out)], check=True, capture_output=True)
    return out


TOKENS, WIDTH = 32, 32
LINEAR = 2 * 2 * TOKENS * (3 + 1 + 4 + 4) * WIDTH * WIDTH  # two layers
SQUARE = 2 * 2 * 2 * TOKENS * WIDTH * WIDTH  # two layers of two multiplies
ATTENTION = 2 * 2 * (2 * 2 * 4 * 16 * 16 * 8)  # two layers, two products; batch 2, 4 heads, 16 rows, width 8


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "model", "hardware"),
    [
        ("Block-eval", 1, 1), ("Block-plain", 3, 3), ("Block-reentrant", 3, 4), ("Block-whole", 3, 4),
        ("Block-hooks", 3, 4 - 1 / 3),  # the last multiply of a layer is not needed again: 4 of 12
        ("Square-eval", 1, 1), ("Square-plain", 3, 3), ("Square-reentrant", 3, 4), ("Square-hooks", 3, 4),
        ("Square-whole", 3, 4), ("Square-twice", 7, 7),
    ],
)  # fmt: skip
def test_real_recordings_agree_with_torchs_counter_and_by_hand(
    recorded: Path, tmp_path: Path, name: str, model: float, hardware: float
) -> None:
    """Forward F, backward 2 F, and F again with checkpointing: without attention as torch's counter has it.

    Attention: 2 products forward, 5 in the fused backward, of which the model needs 4.
    """
    normalize([recorded / f"{name}.json"], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        work, source = matrix_work(trace), frame(trace)
        attention = source.named(work.slices, lambda text: "attention" in text)
        flops, needed = work.flops / 2, work.flops * work.needed / 2  # two steps
    assert work.told
    linear = LINEAR if name.startswith("Block") else SQUARE
    counted = json.loads((recorded / "counts.json").read_text())[name]
    assert flops[~attention].sum() == counted == pytest.approx(hardware * linear)
    assert needed[~attention].sum() == pytest.approx(model * linear)
    if name.startswith("Block"):
        again = ATTENTION if name.split("-")[1] in ("reentrant", "hooks", "whole") else 0
        backward = 0 if name == "Block-eval" else ATTENTION
        assert flops[attention].sum() == ATTENTION + 2.5 * backward + again
        assert needed[attention].sum() == pytest.approx(ATTENTION + 2 * backward)
