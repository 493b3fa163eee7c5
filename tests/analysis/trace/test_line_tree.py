"""The tree by line: modules, lines, generated kernels; its parts add up to all GPU work of the steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.trace import line_tree as module
from profrun.analysis.trace.addresses import UNRESOLVED, addresses
from profrun.analysis.trace.call_tree import REST
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.line_table import OUTSIDE, place_table
from profrun.analysis.trace.line_tree import NO_ADDRESS, LineTree, line_tree, module_parts
from profrun.analysis.trace.steps import steps
from profrun.contract.line_names import line_name
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace
from tests.analysis.trace.test_addresses import GENERATED, A, B, behind
from tests.reports.mapped_run import mapped_run

LINE_A, LINE_B = "/me/model.py:3 forward", "/me/train.py:9 <module>"
LAUNCH = "cudaLaunchKernel"
ROWS: list[tuple[Any, ...]] = [
    ("step", "ProfilerStep#0", 0, 1000, "main"),
    ("range", line_name(B), 10, 900, "main"),
    ("range", "nn.Module: h.0.mlp (MLP)", 20, 100, "main"),
    ("range", line_name(A), 30, 80, "main"),
    ("op", "aten::mm", 35, 20, "main", {"ops.sequence": 7}),
    ("api", LAUNCH, 40, 5, "main"),  # 5: forward of A
    ("range", "nn.Module: h.1.mlp (MLP)", 130, 100, "main"),
    ("range", line_name(A), 140, 30, "main"),
    ("api", LAUNCH, 150, 5, "main"),  # 8: A again, in another block
    ("range", line_name(GENERATED), 180, 30, "main"),
    ("api", "cuLaunchKernel", 190, 5, "main"),  # 10: made of A and B
    ("api", LAUNCH, 400, 5, "main"),  # 11: B alone, in no module
    ("op", "autograd::engine::evaluate_function: MmBackward0", 500, 80, "autograd"),
    ("op", "MmBackward0", 510, 50, "autograd", {"ops.sequence": 7, "ops.backward_of": 4}),
    ("api", LAUNCH, 520, 5, "autograd"),  # 14: backward of A
    ("api", LAUNCH, 950, 5, "main"),  # 15: in no line
    ("kernel", "gemm", 1100, 100, "stream 7", {"launch": 5}),
    ("kernel", "gemm", 1200, 101, "stream 7", {"launch": 8}),
    ("kernel", "fused", 1400, 51, "stream 7", {"launch": 10}),
    ("kernel", "adam", 1500, 30, "stream 7", {"launch": 11}),
    ("kernel", "gemm", 1600, 200, "stream 7", {"launch": 14}),
    ("kernel", "other", 1900, 10, "stream 7", {"launch": 15}),
]
SIDE = {"generated": behind("fused:4", [A], [B])}


def tree_of(trace: Trace) -> LineTree:
    found = addresses(trace)
    assert found is not None
    tree = line_tree(frame(trace), found)
    assert tree is not None
    return tree


def paths(tree: LineTree) -> dict[str, tuple[int, ...]]:
    """Path -> launches, GPU ns, own GPU ns, ns of the backward."""
    names: list[str] = []
    found: dict[str, tuple[int, ...]] = {}
    for node in tree.nodes:
        names.append(f"{names[node.parent]} > {node.name}" if node.parent >= 0 else node.name)
        mark = " (backward)" if node.own_gpu_ns and node.backward_ns else ""
        found[names[-1] + mark] = (node.launches, node.gpu_ns, node.own_gpu_ns, node.backward_ns)
    return found


def test_each_kernel_lies_below_its_module_and_its_line() -> None:
    tree = tree_of(memory_trace(ROWS, side=SIDE))
    mlp = "h.* > mlp"
    assert paths(tree) == {
        "h.*": (4, 452, 0, 200),
        mlp: (4, 452, 0, 200),
        f"{mlp} > {LINE_A}": (4, 427, 0, 200),
        f"{mlp} > {LINE_A} > gemm": (2, 201, 201, 0),
        f"{mlp} > {LINE_A} > gemm (backward)": (1, 200, 200, 200),
        f"{mlp} > {LINE_A} > fused:4": (1, 26, 0, 0),
        f"{mlp} > {LINE_A} > fused:4 > fused": (1, 26, 26, 0),
        f"{mlp} > {LINE_B}": (1, 25, 0, 0),
        f"{mlp} > {LINE_B} > fused:4": (1, 25, 0, 0),
        f"{mlp} > {LINE_B} > fused:4 > fused": (1, 25, 25, 0),
        OUTSIDE: (1, 30, 0, 0),
        f"{OUTSIDE} > {LINE_B}": (1, 30, 0, 0),
        f"{OUTSIDE} > {LINE_B} > adam": (1, 30, 30, 0),
        NO_ADDRESS: (1, 10, 0, 0),
        f"{NO_ADDRESS} > {UNRESOLVED['no-line']}": (1, 10, 0, 0),
        f"{NO_ADDRESS} > {UNRESOLVED['no-line']} > other": (1, 10, 10, 0),
    }
    assert [node.line for node in tree.nodes if node.line] == [A, B, B]


def test_work_counts_a_launch_once_however_many_lines_share_it() -> None:
    tree = tree_of(memory_trace(ROWS, side=SIDE))
    assert {(one.name, one.backward): (one.launches, [ns for _, ns in one.parts]) for one in tree.work} == {
        ("gemm", False): (2, [201]),
        ("gemm", True): (1, [200]),
        ("fused", False): (1, [26, 25]),
        ("adam", False): (1, [30]),
        ("other", None): (1, [10]),
    }
    assert all(tree.nodes[node].name == one.name for one in tree.work for node, _ in one.parts)


def adds_up(tree: LineTree) -> None:
    below: dict[int, int] = defaultdict(int)
    for at, node in enumerate(tree.nodes):
        assert node.parent < at
        below[node.parent] += node.gpu_ns
    assert below[-1] == tree.gpu_ns
    assert all(below[at] + node.own_gpu_ns == node.gpu_ns for at, node in enumerate(tree.nodes))
    own: dict[int, int] = defaultdict(int)
    for one in tree.work:
        for at, ns in one.parts:
            own[at] += ns
    assert own == {at: node.own_gpu_ns for at, node in enumerate(tree.nodes) if node.own_gpu_ns}


def test_small_paths_are_one_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tree_of(memory_trace(ROWS, side=SIDE))
    monkeypatch.setattr(module, "LEAST", 0.055)
    cut = tree_of(memory_trace(ROWS, side=SIDE))
    found = paths(cut)
    assert found["h.* > mlp > " + REST] == (1, 25, 25, 0)
    assert found[f"{OUTSIDE} > {LINE_B} > adam"] == (1, 30, 30, 0)
    assert found[REST] == (1, 10, 10, 0)
    assert NO_ADDRESS not in found
    assert [(one.name, one.launches) for one in cut.work] == [(one.name, one.launches) for one in whole.work]
    for tree in (whole, cut):
        adds_up(tree)
    monkeypatch.setattr(module, "NODES", 2)
    few = tree_of(memory_trace(ROWS, side=SIDE))
    assert [node.name for node in few.nodes] == ["h.*", "mlp", REST, REST]
    adds_up(few)


def test_a_program_adds_up_to_the_work_of_its_steps_and_agrees_with_the_tables(tmp_path: Path) -> None:
    run, _ = mapped_run(tmp_path)
    with Trace(run.trial("002-default-mapping-r1").trace) as trace:
        tree = tree_of(trace)
        found = addresses(trace)
        assert found is not None
        work = sum(one.kernel_ns + one.memcpy_ns + one.memset_ns + one.comm_ns for one in steps(trace))
        table = place_table(frame(trace), found, "line")
    assert tree.gpu_ns == work == table.gpu_ns
    adds_up(tree)
    of_line: dict[object, int] = defaultdict(int)
    for node in tree.nodes:
        if node.line is not None:
            of_line[node.line] += node.gpu_ns
    assert of_line == {row.place: row.gpu_ns for row in table.rows}


def test_a_trace_without_gpu_work_has_no_tree() -> None:
    trace = memory_trace([("step", "ProfilerStep#0", 0, 9, "main"), ("range", line_name(A), 1, 5, "main")])
    found = addresses(trace)
    assert found is not None
    assert line_tree(frame(trace), found) is None


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("layers.3.mlp", ["layers.*", "mlp"]),
        ("0.weight", ["*", "weight"]),
        ("blocks.1.2.conv1", ["blocks.*.*", "conv1"]),
        ("root", ["root"]),
    ],
)
def test_parts_of_the_name_of_a_module(path: str, parts: Sequence[str]) -> None:
    assert module_parts(path) == parts
