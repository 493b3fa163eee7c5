"""Call trees: paths are folded, parts add up to the whole, and work of unknown origin is one path."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from profrun.analysis.trace import call_tree
from profrun.analysis.trace.call_tree import ALONE, REST, CallTree, call_trees
from profrun.analysis.trace.steps import steps
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace, step
from tests.conftest import ROOT

H200 = ROOT / "tests/data/h200/transformer/baseline-torch-r1/rank0/pt.trace.json.gz"
LAUNCH = "cudaLaunchKernel"


def two_steps() -> Trace:
    return memory_trace(
        [
            step(0, 0, 1000),
            step(1, 1000, 1000),
            ("op", "aten::linear", 10, 100, "main"), ("op", "aten::mm", 20, 60, "main"),          # 2, 3
            ("op", "aten::linear", 1010, 120, "main"), ("op", "aten::mm", 1020, 70, "main"),      # 4, 5
            ("op", "aten::mm", 300, 30, "main"),                                                  # 6
            ("op", "aten::before", -50, 20, "main"),                                              # 7
            ("api", LAUNCH, 500, 5, "main"),                                                      # 8
            ("kernel", "gemm", 2000, 7, "stream 7", {"launch": 3}),
            ("kernel", "gemm", 2010, 8, "stream 7", {"launch": 5}),
            ("kernel", "bias", 2020, 1, "stream 7", {"launch": 4}),
            ("kernel", "gemm", 2030, 16, "stream 7", {"launch": 6}),
            ("kernel", "alone", 2050, 32, "stream 7", {"launch": 8}),
        ]
    )  # fmt: skip


def paths(tree: CallTree) -> dict[str, tuple[int, int, int, int, int]]:
    """Path -> calls, GPU ns and own GPU ns, host ns and own host ns."""
    names: list[str] = []
    found = {}
    for node in tree.nodes:
        names.append(f"{names[node.parent]}/{node.name}" if node.parent >= 0 else node.name)
        found[names[-1]] = (node.calls, node.gpu_ns, node.own_gpu_ns, node.host_ns, node.own_host_ns)
    return found


def test_calls_of_one_path_are_one_node() -> None:
    (tree,) = call_trees(two_steps())
    assert (tree.by, tree.steps, tree.gpu_ns, tree.host_ns) == ("calls", 2, 64, 250)
    assert paths(tree) == {
        "aten::linear": (2, 16, 0, 220, 90),
        "aten::linear/aten::mm": (2, 15, 0, 130, 130),
        "aten::linear/aten::mm/gemm": (2, 15, 15, 0, 0),
        "aten::linear/bias": (1, 1, 1, 0, 0),
        "aten::mm": (1, 16, 0, 30, 30),
        "aten::mm/gemm": (1, 16, 16, 0, 0),
        ALONE: (0, 32, 0, 0, 0),
        f"{ALONE}/alone": (1, 32, 32, 0, 0),
    }


def test_small_paths_are_one_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_tree, "LEAST", 0.24)
    (tree,) = call_trees(two_steps())
    assert paths(tree) == {
        "aten::linear": (2, 16, 0, 220, 90),
        "aten::linear/aten::mm": (2, 15, 0, 130, 130),
        "aten::mm": (1, 16, 0, 30, 30),
        "aten::mm/gemm": (1, 16, 16, 0, 0),
        ALONE: (0, 32, 0, 0, 0),
        f"{ALONE}/alone": (1, 32, 32, 0, 0),
        f"aten::linear/{REST}": (0, 1, 1, 0, 0),
        f"aten::linear/aten::mm/{REST}": (0, 15, 15, 0, 0),
    }


def test_python_frames_and_modules_are_trees_of_their_own() -> None:
    rows = [
        step(0, 0, 1000),
        ("python", "train.py(7): fit", 10, 400, "main"),
        ("python", "<built-in method mm of type object at 0x7f01>", 20, 50, "main"),
        ("range", "nn.Module: h.0 (Block)", 15, 100, "main"),
        ("op", "aten::mm", 30, 10, "main"),                                                       # 4
        ("kernel", "gemm", 2000, 7, "stream 7", {"launch": 4}),
    ]  # fmt: skip
    modules, calls, python = call_trees(memory_trace(rows))
    assert [tree.by for tree in (modules, calls, python)] == ["modules", "calls", "python"]
    assert {tree.gpu_ns for tree in (modules, calls, python)} == {7}
    assert list(paths(modules)) == ["h.0 (Block)", "(outside of all modules)"]
    assert "nn.Module: h.* (Block)/aten::mm/gemm" in paths(calls)
    assert "train.py(7): fit/<built-in method mm of type object>/gemm" in paths(python)


def test_parts_add_up_to_the_work_of_the_steps_on_a_real_trace(tmp_path: Path) -> None:
    normalize([H200], tmp_path / "t")
    with Trace(tmp_path / "t") as trace:
        trees = call_trees(trace)
        work = sum(one.kernel_ns + one.memcpy_ns + one.memset_ns + one.comm_ns for one in steps(trace))
    assert [tree.gpu_ns for tree in trees] == [work] * len(trees) != []
    for tree in trees:
        below: dict[int, int] = defaultdict(int)
        for node in tree.nodes:
            below[node.parent] += node.gpu_ns
        assert below[-1] == tree.gpu_ns
        assert all(below[at] + node.own_gpu_ns == node.gpu_ns for at, node in enumerate(tree.nodes))
