"""A trace reduced to a trial: drawings whose units, places and shares can be read off."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.compare import Trial, compare, read_trial
from profrun.analysis.compare.host_ops import is_wait
from tests.analysis.kit import memory_trace, step


def _one(rows: list[Any], **more: Any) -> Trial:
    return read_trial(memory_trace(rows, **more), label="t")


def test_a_step_is_as_long_as_its_gpu_work_and_starts_where_the_last_one_ended() -> None:
    rows = [
        step(1, 0, 100), ("api", "cudaLaunchKernel", 10, 5, "main"),
        step(2, 100, 100), ("api", "cudaLaunchKernel", 110, 5, "main"),
        ("kernel", "k", 20, 200, "stream 7", {"launch": 1}),  # ends at 220, in step 2's time
        ("kernel", "k", 220, 150, "stream 7", {"launch": 3}),  # ends at 370
    ]  # fmt: skip
    trial = _one(rows)
    assert [(unit.time_ns, unit.host_ns, unit.gpu_ns) for unit in trial.units] == [
        (220, 100, 200), (150, 100, 150),
    ]  # fmt: skip
    assert trial.times == [220, 150]
    assert trial.conditions.measure == "span"


def test_work_of_before_the_window_is_in_no_step() -> None:
    rows = [
        step(1, 0, 100), ("api", "cudaLaunchKernel", 10, 5, "main"),
        ("kernel", "old", 0, 30, "stream 7"), ("kernel", "k", 40, 20, "stream 7", {"launch": 1}),
    ]  # fmt: skip
    trial = _one(rows)
    assert [atom.name for atom in trial.atoms] == ["k"]
    assert (trial.conditions.outside_ns, trial.conditions.total_gpu_ns) == (30, 50)
    assert trial.outside == {"unknown": 30}


def test_places_modules_and_the_backward_of_a_module() -> None:
    rows = [
        step(1, 0, 1000),
        ("range", "nn.Module: blocks.0.mlp (MLP)", 10, 100, "main"),
        ("op", "aten::linear", 20, 50, "main"),
        ("op", "aten::mm", 25, 40, "main"),
        ("api", "cudaLaunchKernel", 30, 5, "main"),
        ("range", "backward", 200, 300, "main"),
        ("op", "autograd::engine::evaluate_function: MmBackward0", 210, 100, "autograd"),
        ("op", "MmBackward0", 215, 80, "autograd", {"ops.backward_of": 3}),
        ("api", "cudaLaunchKernel", 220, 5, "autograd"),
        ("op", "aten::add_", 320, 50, "autograd"),
        ("api", "cudaLaunchKernel", 330, 5, "autograd"),
        ("kernel", "forward_gemm", 40, 10, "stream 7", {"launch": 4}),
        ("kernel", "backward_gemm", 230, 10, "stream 7", {"launch": 8}),
        ("kernel", "add", 340, 10, "stream 7", {"launch": 10}),
    ]  # fmt: skip
    atoms = {atom.name: atom for atom in _one(rows).atoms}
    forward, backward, add = atoms["forward_gemm"], atoms["backward_gemm"], atoms["add"]
    assert forward.path == ("nn.Module: blocks.0.mlp (MLP)", "aten::linear", "aten::mm")
    assert (forward.kinds, forward.module, forward.backward) == ("roo", "blocks.0.mlp", False)
    assert (backward.module, backward.backward) == ("blocks.0.mlp", True)
    assert backward.path[0] == "backward"  # what the main thread was in
    assert (add.path, add.module) == (("backward", "aten::add_"), None)


def test_compiled_regions_are_no_places() -> None:
    rows = [
        step(1, 0, 1000), ("range", "forward", 0, 900, "main"),
        ("op", "Torch-Compiled Region: 0/0", 10, 800, "main"),
        ("range", "## Call CompiledFxGraph fxbdwh5rrl743ged6isuqdr6fidnbenbj2u ##", 20, 700, "main"),
        ("op", "aten::mm", 30, 100, "main"), ("api", "cudaLaunchKernel", 40, 10, "main"),
        ("kernel", "k", 60, 10, "stream 7", {"launch": 5}),
    ]  # fmt: skip
    (atom,) = _one(rows).atoms
    assert atom.path == ("forward", "aten::mm")


def _recording(name: str, count: int, ns: int) -> list[Any]:
    rows: list[Any] = []
    for number in range(count):
        rows += [
            ("api", "cudaLaunchKernel", 100 * number, 10, "main"),
            ("kernel", name, 100 * number + 20, ns, "stream 7", {"launch": 2 * number}),
        ]
    return rows


def test_recordings_without_steps_are_compared_only_when_they_hold_the_same_kernels() -> None:
    a = _one(_recording("k", 5, 50))
    assert (a.conditions.measure, len(a.units)) == ("recording", 1)
    same = compare([a], [_one(_recording("k", 5, 60))])
    assert same.ratio == pytest.approx((400 + 20 + 60) / (400 + 20 + 50))
    # Fewer kernels in the same time is less work, not faster.
    less = compare([a], [_one(_recording("k", 4, 50))], allow=["work"])
    assert {one.code for one in less.reasons if one.severity == "stop" and not one.allowed} == {"no_steps"}
    assert less.ratio is None


def test_copy_kernels_of_amd_count_like_copies_of_nvidia() -> None:
    def side(kind: str, name: str, more: dict[str, Any]) -> list[Any]:
        return [
            step(1, 0, 1000), ("op", "aten::copy_", 10, 100, "main"), ("api", "launch", 20, 10, "main"),
            (kind, name, 40, 30, "stream 7", {"launch": 2} | more),
        ]  # fmt: skip

    nvidia = _one(side("memcpy", "Memcpy DtoD (Device -> Device)", {"copies.direction": "DtoD"}))
    amd = _one(
        side("kernel", "__amd_rocclr_copyBuffer", {}),
        meta={"vendor": "amd"}, device={"vendor": "amd", "name": "AMD Instinct MI300X"},
    )  # fmt: skip
    found = compare([nvidia], [amd], by="category", allow=["work"])
    (row,) = found.rows
    assert (row.name, row.a_ns, row.b_ns) == ("memcpy", 30, 30)
    assert found.vendors is not None
    assert found.vendors.copies_ns == (30, 30)
    (kernel,) = found.kernels
    assert (kernel.status, kernel.by) == ("replaced", "op")


def test_matrix_work_counts_each_multiplication_once() -> None:
    """aten::linear holds aten::mm: one multiplication. Attention written out is its two products."""

    def op(name: str, ts: int, ns: int, shapes: str) -> Any:
        return ("op", name, ts, ns, "main", {"ops.shapes": shapes, "ops.dtypes": '["float","float"]'})

    rows = [
        step(1, 0, 1000),
        op("aten::linear", 0, 100, "[[8,16],[32,16]]"), op("aten::mm", 10, 50, "[[8,16],[16,32]]"),
        op("aten::scaled_dot_product_attention", 200, 300, "[[2,4,8,16],[2,4,8,16],[2,4,8,16]]"),
        op("aten::bmm", 210, 50, "[[8,8,16],[8,16,8]]"), op("aten::bmm", 300, 50, "[[8,8,8],[8,8,16]]"),
        op("aten::scaled_dot_product_attention", 600, 300, "[[2,4,8,16],[2,4,8,16],[2,4,8,16]]"),
        op("aten::_flash_attention_forward", 610, 50, "[[2,8,4,16],[2,8,4,16],[2,8,4,16]]"),
    ]  # fmt: skip
    work = _one(rows).work
    attention = 2 * (2 * 8 * 8 * 8 * 16)  # two products of 8 matrices
    assert work.matrix_flops == 2 * 8 * 16 * 32 + 2 * attention
    assert (work.tokens, work.unknown_ops) == (8, ())
    assert work.first == "the input [8, 16] of the step's first aten::linear"


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("cudaStreamSynchronize", True), ("cudaDeviceSynchronize", True), ("hipEventSynchronize", True),
        ("cudaMemcpy", True), ("cudaMemcpyAsync", False), ("hipMemcpyWithStream", True),
        ("cuMemcpyDtoH_v2", True), ("cuMemcpyDtoHAsync_v2", False), ("cudaFree", True),
        ("cudaFreeAsync", False),
        ("cudaLaunchKernel", False), ("cudaEventRecord", False), ("cuCtxSynchronize", True),
    ],
)  # fmt: skip
def test_calls_that_wait(name: str, *, waits: bool) -> None:
    assert is_wait(name) is waits


def test_parts_of_a_step_with_two_streams() -> None:
    """150 ns of kernels in 120 ns of GPU time: 30 of them beside others; 80 ns of the step have none."""

    def side(second: int) -> Trial:
        rows = [
            step(1, 0, 200), ("api", "cudaLaunchKernel", 0, 10, "main"),
            ("api", "cudaLaunchKernel", 20, 10, "main"), ("kernel", "k", 30, 100, "stream 7", {"launch": 1}),
            ("kernel", "k", 100, second, "stream 8", {"launch": 2}),
        ]  # fmt: skip
        return _one(rows)

    parts = {part.name: part for part in compare([side(50)], [side(70)]).parts}
    assert {name: (part.a_ns, part.b_ns) for name, part in parts.items()} == {
        "gpu": (150, 170), "concurrent": (-30, -30), "no own GPU work": (80, 60),
    }  # fmt: skip
    assert sum(part.a_ns for part in parts.values()) == 200


def test_rows_without_a_gpu_are_self_cpu_time_and_add_up_to_the_step() -> None:
    def side(inner: int) -> Trial:
        rows = [
            step(1, 0, 1000), ("range", "forward", 100, 800, "main"),
            ("op", "aten::linear", 200, 500, "main"), ("op", "aten::addmm", 250, inner, "main"),
        ]  # fmt: skip
        return _one(rows, meta={"vendor": "none", "job": {"work": {"batch": 8}}})

    found = compare([side(300)], [side(350)])
    assert found.sides[0].work.kernels == 0
    rows = {row.name: (row.a_ns, row.b_ns, row.basis) for row in found.rows}
    assert rows == {
        "(step)": (200, 200, "cpu"), "forward": (300, 300, "cpu"), "aten::linear": (200, 150, "cpu"),
        "aten::addmm": (300, 350, "cpu"),
    }  # fmt: skip
    assert found.total_delta_ns == 0
    assert found.unexplained_ns == 0
