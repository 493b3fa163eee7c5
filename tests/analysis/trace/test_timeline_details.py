"""Texts beside slices: the grid of a kernel, the bytes of a copy, the shapes of an op."""

from __future__ import annotations

import pytest

from profrun.analysis.trace import timeline_details
from profrun.analysis.trace.timeline_details import MOST_CHARACTERS, details
from tests.analysis.kit import Row, memory_trace

GRID = {
    "kernels.grid_x": 4,
    "kernels.grid_y": 2,
    "kernels.grid_z": 1,
    "kernels.registers": 32,
    "kernels.smem": 1024,
}
BLOCK = {"kernels.block_x": 256, "kernels.block_y": 1, "kernels.block_z": 1}
COPY = {
    "copies.direction": "HtoD",
    "copies.bytes": 1536,
    "copies.src_kind": "pageable",
    "copies.dst_kind": "device",
}
ROWS: list[Row] = [
    ("op", "aten::mm", 0, 5, "main", {"ops.shapes": "[[2, 3], [3, 4]]"}),
    ("op", "aten::mm", 6, 5, "main", {"ops.shapes": "[[2, 3], [3, 4]]"}),
    ("op", "aten::mul", 12, 5, "main", {"ops.shapes": "x" * 1000}),
    ("kernel", "k", 20, 5, "stream 7", {**GRID, **BLOCK}),
    ("memcpy", "c", 30, 5, "stream 7", COPY),
    ("memset", "s", 40, 5, "stream 7", {"copies.direction": "memset"}),
    ("op", "aten::add", 50, 5, "main"),
]


def test_equal_texts_are_written_once() -> None:
    code, texts = details(memory_trace(ROWS))
    assert [texts[one] if one >= 0 else None for one in code[:2]] == ["input shapes [[2, 3], [3, 4]]"] * 2
    assert len(texts) == 5
    assert len(texts[code[2]]) == MOST_CHARACTERS + 3
    assert texts[code[3]] == (
        "grid 4 x 2 x 1, block 256 x 1 x 1, 32 registers per thread, 1 KiB of shared memory per block"
    )
    assert [texts[one] for one in code[4:6]] == ["HtoD, 1.5 KiB, pageable to device memory", "memset"]
    assert code[6] == -1


def test_a_table_of_too_many_texts_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_details, "MOST_TEXTS", 1)
    code, texts = details(memory_trace(ROWS))
    assert (code[:3].tolist(), len(texts)) == ([-1, -1, -1], 1)  # one kernel; two shapes and two copies
