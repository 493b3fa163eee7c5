"""GPU work by address: its rows add up to the work of the steps, and parts of a time add up to it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.trace.addressed_work import addressed_work, equal_parts
from profrun.analysis.trace.addresses import addresses
from profrun.analysis.trace.frame import frame
from profrun.contract.line_names import line_name
from tests.analysis.kit import memory_trace
from tests.analysis.trace.test_addresses import A, B


def test_a_row_for_each_address_and_name_of_work_that_steps_launched() -> None:
    trace = memory_trace(
        [
            ("step", "ProfilerStep#0", 0, 1000, "main"),
            ("range", line_name(A), 10, 50, "main"),
            ("range", line_name(B), 100, 50, "main"),
            ("api", "cudaLaunchKernel", 20, 5, "main"),  # 3: in A
            ("api", "cudaMemcpyAsync", 110, 5, "main"),  # 4: in B
            ("api", "cudaLaunchKernel", 200, 5, "main"),  # 5: in no line
            ("api", "cudaLaunchKernel", 2000, 5, "main"),  # 6: after the step
            ("kernel", "gemm", 300, 7, "stream 7", {"launch": 3}),
            ("kernel", "gemm", 310, 8, "stream 7", {"launch": 3}),
            ("memcpy", "copy", 320, 16, "stream 7", {"launch": 4}),
            ("kernel", "gemm", 340, 32, "stream 7", {"launch": 5}),
            ("kernel", "gemm", 2100, 64, "stream 7", {"launch": 6}),
        ]
    )
    found = addresses(trace)
    assert found is not None
    work = addressed_work(frame(trace), found)
    assert [
        (one.address and one.address.lines, one.why, one.name, one.kind, one.ns, one.launches)
        for one in work.rows
    ] == [
        ((A,), None, "gemm", "kernel", 15, 2),
        ((B,), None, "copy", "memcpy", 16, 1),
        (None, "no-line", "gemm", "kernel", 32, 1),
    ]
    assert (work.steps, work.gpu_ns) == (1, 63)


@given(st.integers(0, 2**53), st.integers(1, 50))
def test_equal_parts_add_up_and_differ_by_one_ns_at_most(ns: int, count: int) -> None:
    parts = equal_parts(ns, count)
    assert (len(parts), sum(parts)) == (count, ns)
    assert max(parts) - min(parts) <= 1
