"""What each GPU slice is."""

from __future__ import annotations

from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.roles import ROLES, on_device, roles
from tests.analysis.kit import memory_trace


def test_the_role_of_each_slice() -> None:
    listed = {"collectives.op": "allreduce"}
    rows = [
        ("op", "aten::mm", 0, 9, "main", "-"),
        ("kernel", "gemm", 10, 5, "stream 7", "compute"),
        ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 20, 5, "stream 7", "comm"),
        ("kernel", "my_own_reduction", 30, 5, "stream 7", "comm"),
        ("kernel", "__amd_rocclr_copyBuffer", 40, 5, "stream 7", "memcpy"),
        ("kernel", "__amd_rocclr_fillBufferAligned", 50, 5, "stream 7", "memset"),
        ("memcpy", "Memcpy HtoD", 60, 5, "stream 7", "memcpy"),
        ("memset", "Memset", 70, 5, "stream 7", "memset"),
    ]
    trace = memory_trace([(*row[:5], listed if row[1] == "my_own_reduction" else {}) for row in rows])
    assert [ROLES[code] if code >= 0 else "-" for code in roles(trace)] == [row[5] for row in rows]


def test_slices_of_one_device() -> None:
    trace = memory_trace([("kernel", "a", 0, 5, "stream 7"), ("kernel", "b", 0, 5, "r1:stream 7")], ranks=2)
    source = frame(trace)
    assert on_device(source, source.of("kernel"), 1).tolist() == [1]
