"""Host time and GPU time under ranges and modules: a small trace, the question, the table."""

from __future__ import annotations

from profrun.analysis.trace.ranges import ranges
from tests.analysis.kit import memory_trace, step

LAUNCH = "cudaLaunchKernel"


def test_gpu_time_under_ranges_and_modules_through_launches() -> None:
    trace = memory_trace(
        [
            step(0, 0, 100), ("range", "nn.Module: layers.0 (Linear)", 10, 30, "main"),
            ("op", "aten::mm", 12, 20, "main"), ("api", LAUNCH, 15, 5, "main"),
            ("api", LAUNCH, 60, 5, "main"),
            ("kernel", "gemm", 200, 40, "stream 7", {"launch": 3}),
            ("kernel", "add", 240, 7, "stream 7", {"launch": 4}),
            # a GPU copy of the range: no work
            ("range", "nn.Module: layers.0 (Linear)", 201, 40, "stream 7"),
        ]
    )  # fmt: skip
    rows = {row.name: row for row in ranges(trace)}
    assert (
        rows["profrun.step#0"].gpu_ns,
        rows["profrun.step#0"].gpu_slices,
        rows["profrun.step#0"].kind,
    ) == (47, 2, "step")
    module = rows["nn.Module: layers.0 (Linear)"]
    assert (module.calls, module.host_ns, module.gpu_ns, module.module, module.module_class) == (
        1, 30, 40, "layers.0", "Linear")  # fmt: skip


def test_a_range_inside_itself_is_counted_once() -> None:
    trace = memory_trace(
        [
            ("range", "block", 0, 100, "main"), ("range", "block", 10, 50, "main"),
            ("api", LAUNCH, 20, 5, "main"),
            ("kernel", "k", 40, 9, "stream 7", {"launch": 2}),
        ]
    )  # fmt: skip
    (row,) = ranges(trace)
    assert (row.calls, row.host_ns, row.gpu_ns, row.gpu_slices) == (2, 100, 9, 1)
