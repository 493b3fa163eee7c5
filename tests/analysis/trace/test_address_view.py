"""The table of addresses for queries: parts of a slice add up to 1."""

from __future__ import annotations

from profrun.analysis.trace.address_view import NAME, offer
from profrun.analysis.trace.addresses import addresses
from tests.analysis.kit import memory_trace
from tests.analysis.trace.test_addresses import COMPILED, A, B, behind


def test_a_row_for_each_slice_and_line() -> None:
    rows = [
        *COMPILED,
        ("api", "cudaLaunchKernel", 900, 5, "main"),
        ("kernel", "lost", 950, 7, "stream 7", {"launch": 5}),
    ]
    trace = memory_trace(rows, side={"generated": behind("triton_poi_fused_gelu_0:4", [B, A], [B])})
    found = addresses(trace)
    assert found is not None
    offer(trace, found)
    offer(trace, found)
    query = "SELECT slice, dur_ns, part, line, function, generated, unresolved FROM kernel_address"
    assert trace.sql(query).rows == [
        (4, 50, 0.5, A.line, A.function, "triton_poi_fused_gelu_0:4", None),
        (4, 50, 0.5, B.line, B.function, "triton_poi_fused_gelu_0:4", None),
        (6, 7, 1.0, None, None, None, "no line of the program is round their launch, or in its stack"),
    ]
    assert list(trace.stream("SELECT sum(dur_ns * part) FROM kernel_address").batches) == [[(57.0,)]]


def test_the_name_is_found_in_a_query() -> None:
    assert NAME.search("select * FROM Kernel_Address")
    assert not NAME.search("FROM kernel_addresses")
