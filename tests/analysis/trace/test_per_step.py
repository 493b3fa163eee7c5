"""The part of each kernel and operator that lies in steps: work outside is not divided by their number."""

from __future__ import annotations

from profrun.analysis.trace.kernels import KernelWork
from profrun.analysis.trace.ops import OpWork
from profrun.analysis.trace.per_step import PerStep, per_step
from tests.analysis.kit import memory_trace, step


def test_work_outside_of_the_steps_is_left_out_and_autograds_thread_is_in_its_step() -> None:
    trace = memory_trace(
        [
            ("op", "aten::mm", 0, 50, "main"),                                          # set-up
            step(0, 100, 100), ("op", "aten::mm", 110, 20, "main"), ("op", "aten::mul", 150, 30, "autograd"),
            step(1, 200, 100), ("op", "aten::mm", 210, 40, "main"),
            ("kernel", "gemm", 500, 1000, "stream 7", {"launch": 0}),
            ("kernel", "gemm", 1500, 10, "stream 7", {"launch": 2}),
            ("kernel", "mul", 1600, 5, "stream 7", {"launch": 3}),
            ("kernel", "gemm", 1700, 20, "stream 7", {"launch": 5}),
        ]
    )  # fmt: skip
    sums, kernels, ops = per_step(trace)
    assert sums == PerStep(steps=2, step_ns=200, kernel_ns=35, self_cpu_ns=230, self_device_ns=35)
    assert {row.name: (row.total_ns, row.in_steps) for row in kernels} == {
        "gemm": (1030, KernelWork(2, 30)), "mul": (5, KernelWork(1, 5)),
    }  # fmt: skip
    found = {row.name: row.in_steps for row in ops if row.kind == "op"}
    assert found == {"aten::mm": OpWork(2, 60, 60, 30, 30), "aten::mul": OpWork(1, 30, 30, 5, 5)}


def test_without_steps_there_are_no_parts() -> None:
    sums, kernels, _ = per_step(memory_trace([("kernel", "gemm", 0, 10, "stream 7")]))
    assert (sums, [row.in_steps for row in kernels]) == (None, [None])
