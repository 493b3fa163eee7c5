"""The tree of modules: what belongs to whom, forward and backward, and that the parts add up."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profrun.analysis.trace.modules import ModuleNode, ModuleTree, OutsideRow, module_tree
from profrun.analysis.trace.ranges import ranges
from profrun.analysis.trace.steps import steps
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step
from tests.conftest import ROOT, first, unpack

LAUNCH = "cudaLaunchKernel"
ENGINE = "autograd::engine::evaluate_function: MmBackward0"


def shown(tree: ModuleTree) -> list[tuple[str, str, int, int, int, int, int]]:
    """The rows from the top: name, class, modules, calls, GPU ns forward, backward and own."""

    def rows(node: ModuleNode, depth: int) -> Iterator[tuple[str, str, int, int, int, int, int]]:
        yield (
            "  " * depth + node.name, node.module_class, node.modules, node.calls,
            node.forward_ns, node.backward_ns, node.own_ns,
        )  # fmt: skip
        for child in node.children:
            yield from rows(child, depth + 1)

    return [row for root in tree.roots for row in rows(root, 0)]


def tree_of(rows: list[Row]) -> ModuleTree:
    """The tree of a trace of these rows, which has modules."""
    tree = module_tree(memory_trace(rows))
    assert tree is not None
    return tree


def module(path: str, cls: str, ts: int, dur: int, track: str = "main") -> tuple[str, str, int, int, str]:
    return ("range", f"nn.Module: {path} ({cls})", ts, dur, track)


def test_two_blocks_forward_on_the_main_thread_and_backward_on_autograds() -> None:
    trace = memory_trace(
        [
            step(0, 0, 1000),
            module("root", "Net", 10, 300),
            module("h.0", "Block", 20, 100), ("op", "aten::mm", 30, 50, "main"),                  # 2, 3
            module("h.1", "Block", 130, 100), ("op", "aten::mm", 140, 50, "main"),                # 4, 5
            ("op", "aten::norm", 250, 20, "main"),                                                # 6
            ("op", "aten::loss", 320, 20, "main"),                                                # 7
            ("op", ENGINE, 400, 90, "autograd"),                                                  # 8
            ("op", "MmBackward0", 405, 50, "autograd", {"ops.backward_of": 5}),                   # 9
            ("op", "aten::add_", 460, 20, "autograd"),                                            # 10
            ("op", "MmBackward0", 500, 50, "autograd", {"ops.backward_of": 3}),                   # 11
            ("op", "LossBackward0", 560, 20, "autograd", {"ops.backward_of": 7}),                 # 12
            ("range", "Optimizer.step#SGD.step", 700, 90, "main"), ("api", LAUNCH, 710, 5, "main"),  # 13, 14
            ("kernel", "f0", 2000, 1, "stream 7", {"launch": 3}),
            ("kernel", "f1", 2010, 2, "stream 7", {"launch": 5}),
            ("kernel", "norm", 2020, 4, "stream 7", {"launch": 6}),
            ("kernel", "b1", 2030, 8, "stream 7", {"launch": 9}),
            ("kernel", "accumulate b1", 2040, 16, "stream 7", {"launch": 10}),
            ("kernel", "b0", 2050, 32, "stream 7", {"launch": 11}),
            ("kernel", "loss", 2100, 64, "stream 7", {"launch": 7}),
            ("kernel", "loss backward", 2200, 128, "stream 7", {"launch": 12}),
            ("kernel", "sgd", 2400, 256, "stream 7", {"launch": 14}),
        ]
    )  # fmt: skip
    tree = module_tree(trace)
    assert tree is not None
    assert shown(tree) == [
        # name, class, modules, calls, forward, backward, own
        ("root", "Net", 1, 1, 1 + 2 + 4, 8 + 16 + 32, 4),
        ("  h.*", "Block", 2, 2, 1 + 2, 8 + 16 + 32, 1 + 2 + 8 + 16 + 32),
    ]
    assert tree.outside == (
        OutsideRow("Optimizer.step#SGD.step", 256), OutsideRow("backward", 128), OutsideRow("", 64),
    )  # fmt: skip
    assert (tree.steps, tree.gpu_ns, tree.host_ns) == (1, 511, 1000)
    (block,) = tree.roots[0].children
    assert (block.host_forward_ns, block.host_backward_ns) == (200, 90 + 50)
    (row,) = (row for row in ranges(trace) if row.kind == "step")
    assert (row.gpu_ns, row.adopted_ns) == (1 + 2 + 4 + 64 + 256, 8 + 16 + 32 + 128)
    assert row.gpu_ns + row.adopted_ns == steps(trace)[0].kernel_ns, "backward is in the step it belongs to"


def test_ranges_round_the_backward_serve_without_sequences_and_recomputation_is_backward() -> None:
    tree = tree_of(
        [
            step(0, 0, 1000),
            module("root", "Net", 10, 300), module("a", "Linear", 20, 50), ("api", LAUNCH, 30, 5, "main"),
            ("range", "nn.Module: root (Net) backward", 400, 300, "autograd"),
            ("range", "nn.Module: a (Linear) backward", 410, 200, "autograd"),                    # 5
            module("a", "Linear", 420, 50, "autograd"), ("api", LAUNCH, 430, 5, "autograd"),      # 6, 7
            ("api", LAUNCH, 500, 5, "autograd"), ("api", LAUNCH, 650, 5, "autograd"),             # 8, 9
            ("kernel", "k", 2000, 1, "stream 7", {"launch": 3}),
            ("kernel", "again", 2010, 2, "stream 7", {"launch": 7}),
            ("kernel", "b", 2020, 4, "stream 7", {"launch": 8}),
            ("kernel", "b root", 2030, 8, "stream 7", {"launch": 9}),
        ]
    )  # fmt: skip
    assert shown(tree) == [("root", "Net", 1, 1, 1, 14, 8), ("  a", "Linear", 1, 1, 1, 6, 7)]
    assert tree.outside == ()


def test_a_recording_that_begins_inside_the_outer_module_has_the_same_tree() -> None:
    tree = tree_of(
        [
            module("a", "Linear", 20, 50), ("api", LAUNCH, 30, 5, "main"),      # its root was open already
            module("root", "Net", 110, 90),
            module("a", "Linear", 120, 50), ("api", LAUNCH, 130, 5, "main"),
            ("kernel", "k", 2000, 1, "stream 7", {"launch": 1}),
            ("kernel", "k", 2010, 2, "stream 7", {"launch": 4}),
        ]
    )  # fmt: skip
    assert shown(tree) == [("root", "Net", 1, 1, 3, 0, 0), ("  a", "Linear", 1, 2, 3, 0, 3)]


def test_calls_in_torchs_python_stacks_are_modules_too() -> None:
    tree = tree_of(
        [
            ("python", "nn.Module: Net_0", 0, 100, "main"),
            ("python", "nn.Module: Linear_0", 10, 20, "main"), ("api", LAUNCH, 12, 5, "main"),
            ("python", "nn.Module: Linear_1", 40, 20, "main"), ("api", LAUNCH, 42, 5, "main"),
            ("kernel", "k", 200, 3, "stream 7", {"launch": 2}),
            ("kernel", "k", 210, 4, "stream 7", {"launch": 4}),
        ]
    )  # fmt: skip
    assert shown(tree) == [("Net_0", "Net", 1, 1, 7, 0, 0), ("  Linear_*", "Linear", 2, 2, 7, 0, 7)]
    assert (tree.steps, tree.host_ns) == (0, 100)


def test_without_modules_there_is_no_tree() -> None:
    assert module_tree(memory_trace([step(0, 0, 10)])) is None


@pytest.mark.parametrize("name", ["h200/torch/transformer.json.gz"])
def test_backward_is_in_its_step_on_a_real_recording(name: str, real: Callable[..., Trace]) -> None:
    trace = real(name)
    rows = [row for row in ranges(trace) if row.kind == "step"]
    work = sum(row.kernel_ns + row.comm_ns + row.memcpy_ns + row.memset_ns for row in steps(trace))
    assert sum(row.gpu_ns + row.adopted_ns for row in rows) == work


@pytest.mark.parametrize("program", first(1, ("attention", "trainer", "gan", "small_kernels")))
def test_torch_and_nsys_give_each_module_the_same_work(program: str, tmp_path: Path) -> None:
    """torch's backward is found by sequence numbers, that of Nsight Systems by the ranges of the hook."""
    with tarfile.open(ROOT / f"tests/data/h200/programs/{program}.tar.xz") as packed:
        unpack(packed, tmp_path, packed.getmembers())
    found = []
    for tool, pattern in (("torch", "*.pt.trace.json.gz"), ("nsys", "*.sqlite")):
        recorded = next(tmp_path.glob(f"{program}/trials/*-{tool}-r1/raw/rank0/{pattern}"))
        normalize([recorded], tmp_path / tool)
        with Trace(tmp_path / tool) as trace:
            tree = module_tree(trace)
        assert tree is not None
        whole = sum(root.gpu_ns for root in tree.roots) + sum(row.gpu_ns for row in tree.outside)
        assert whole == tree.gpu_ns
        found.append({row[0]: [ns / tree.steps for ns in row[4:6]] for row in shown(tree)})
    torch, nsys = found
    assert torch.keys() == nsys.keys()
    most = max(sum(times) for times in torch.values())
    for name, times in torch.items():
        assert times == pytest.approx(nsys[name], rel=0.05, abs=0.01 * most), name
