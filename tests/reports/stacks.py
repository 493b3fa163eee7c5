"""Stacks of GPU work by hand, for the files that are made of them."""

from __future__ import annotations

from profrun.analysis.trace.gpu_stacks import GpuStack, GpuStacks, StackFrame, StackProcess
from profrun.contract.denominator import STEP
from profrun.contract.line_names import Line

FORWARD, LOSS = Line("/me/lib/model.py", 212, "forward"), Line("/me/train.py", 9, "<module>")


def two_ranks() -> GpuStacks:
    """Rank 0: 30 ns of 3 gemms of a line and 7 ns of a copy; rank 1: 300 ns of the backward in a graph."""
    frames = (
        StackFrame("module", "mlp"),
        StackFrame("line", "forward", FORWARD),
        StackFrame("op", "aten::mm"),
        StackFrame("kernel", "gemm"),
        StackFrame("line", "<module>", LOSS),
        StackFrame("memcpy", "Memcpy HtoD"),
        StackFrame("python", "train.py(3): main", Line("train.py", 3, "main")),
    )
    stacks = (
        GpuStack(0, (0, 1, 2, 3), "kernel", False, False, 30, 3),
        GpuStack(0, (4, 5), "memcpy", None, False, 7, 1),
        GpuStack(1, (6, 3), "kernel", True, True, 300, 2),
    )
    processes = (StackProcess(0, "rank 0", 2), StackProcess(1, "rank 1", 1))
    return GpuStacks(frames, stacks, processes, STEP, 3, 337, 37)
