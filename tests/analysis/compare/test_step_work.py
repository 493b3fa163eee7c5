"""How much work a step is, from recorded shapes."""

from __future__ import annotations

from typing import Any

from profrun.analysis.compare import read_trial
from tests.analysis.kit import memory_trace, step


def test_matrix_work_counts_each_multiplication_once() -> None:
    """aten::linear holds aten::mm: one multiplication. Attention written out is its two products."""

    def op(name: str, ts: int, ns: int, shapes: str) -> Any:
        return ("op", name, ts, ns, "main", {"ops.shapes": shapes, "ops.dtypes": '["float","float"]'})

    rows = [
        step(1, 0, 1000),
        op("aten::linear", 0, 100, "[[8,16],[32,16]]"),
        op("aten::mm", 10, 50, "[[8,16],[16,32]]"),
        op("aten::scaled_dot_product_attention", 200, 300, "[[2,4,8,16],[2,4,8,16],[2,4,8,16]]"),
        op("aten::bmm", 210, 50, "[[8,8,16],[8,16,8]]"),
        op("aten::bmm", 300, 50, "[[8,8,8],[8,8,16]]"),
        op("aten::scaled_dot_product_attention", 600, 300, "[[2,4,8,16],[2,4,8,16],[2,4,8,16]]"),
        op("aten::_flash_attention_forward", 610, 50, "[[2,8,4,16],[2,8,4,16],[2,8,4,16]]"),
    ]
    work = read_trial(memory_trace(rows)).work
    attention = 2 * (2 * 8 * 8 * 8 * 16)  # two products of 8 matrices
    assert work.matrix_flops == 2 * 8 * 16 * 32 + 2 * attention
    assert (work.tokens, work.unknown_ops) == (8, ())
    assert work.first == "the input [8, 16] of the step's first aten::linear"


def test_bytes_to_the_gpu_are_counted_per_step() -> None:
    """Two steps copy 300 bytes each; a copy back to the host is not counted."""
    up, down = ({"copies.direction": way, "copies.bytes": 300} for way in ("HtoD", "DtoH"))
    rows: list[Any] = []
    for number in (0, 1):
        at, first = number * 1000, len(rows)
        rows += [
            step(number + 1, at, 1000),
            ("api", "cudaMemcpyAsync", at + 10, 20, "main"),
            ("memcpy", "Memcpy HtoD", at + 40, 10, "stream 7", {"launch": first + 1, **up}),
            ("api", "cudaMemcpyAsync", at + 100, 20, "main"),
            (
                "memcpy",
                "Memcpy DtoH",
                at + 140,
                10,
                "stream 7",
                {"launch": first + 3, **down},
            ),
        ]
    work = read_trial(memory_trace(rows)).work
    assert (work.uploaded_bytes, work.collective_bytes) == (300, None)
