"""Random traces against plain Python: the same questions asked ns by ns and by recursion."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.trace.critical_path import critical_path
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.gpu import devices
from profrun.analysis.trace.idle import idle
from profrun.analysis.trace.op_tree import op_tree
from profrun.analysis.trace.ops import operators
from profrun.analysis.trace.steps import steps
from profrun.analysis.trace.summary import summarize
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step
from tests.conftest import examples

pytestmark = pytest.mark.thorough

NAMES = ("aten::mm", "aten::add", "aten::to", "block")
KERNELS = ("nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT", "mine", "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
FEW = settings(examples(12, 300), suppress_health_check=[HealthCheck.too_slow])


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Nested host slices on two threads, launches inside them, kernels on two streams; times under 200 ns."""
    found: list[Row] = []
    if draw(st.booleans()):
        found += [step(0, 0, 60), step(1, 60, 70)]

    def nest(track: str, start: int, end: int, depth: int) -> None:
        at = start
        while depth and end - at > 4 and draw(st.booleans()):
            size = draw(st.integers(2, end - at - 1))
            name = draw(st.sampled_from(NAMES))
            found.append(("range" if name == "block" else "op", name, at, size, track))
            if draw(st.booleans()):
                found.append(("api", "cudaLaunchKernel", at, 1, track))
                kernel = (
                    draw(st.integers(at, 180)),
                    draw(st.integers(0, 30)),
                    draw(st.sampled_from(KERNELS)),
                )
                stream = f"stream {draw(st.integers(7, 8))}"
                found.append(("kernel", kernel[2], kernel[0], kernel[1], stream, {"launch": len(found) - 1}))
            nest(track, at + 1, at + size, depth - 1)
            at += size

    nest("main", 0, 60, 3)
    nest("main", 60, 130, 3)
    nest("autograd", 0, 130, 2)
    return found


def host(trace: Trace) -> dict[int, dict[str, Any]]:
    query = "SELECT slice, kind, name, ts_ns, dur_ns, parent, launch, track FROM slices ORDER BY slice"
    return {row["slice"]: row for row in trace.sql(query).dicts()}


@FEW
@given(rows())
def test_self_time_and_gpu_time_of_every_op(made: list[Row]) -> None:
    trace = memory_trace(made)
    tree, every = op_tree(frame(trace)), host(trace)
    nodes = {key: row for key, row in every.items() if row["kind"] in ("op", "range", "step", "api")}
    for key, row in nodes.items():
        children = [child for child, other in nodes.items() if other["parent"] == key]
        assert tree.self_cpu[key] == row["dur_ns"] - sum(nodes[child]["dur_ns"] for child in children)
    owned = dict.fromkeys(nodes, 0)
    for row in every.values():
        at = every[row["launch"]]["parent"] if row["kind"] == "kernel" and row["launch"] is not None else None
        while at is not None and every[at]["kind"] != "op":
            at = every[at]["parent"]
        if at is not None:
            owned[at] += row["dur_ns"]

    def total(key: int) -> int:
        return owned[key] + sum(total(child) for child, other in nodes.items() if other["parent"] == key)

    assert [int(tree.device[key]) for key in nodes] == [total(key) for key in nodes]
    assert sum(row.self_device_ns for row in operators(trace)) == sum(owned.values())


@FEW
@given(rows())
def test_busy_idle_and_steps_ns_by_ns(made: list[Row]) -> None:
    trace = memory_trace(made)
    every = host(trace)
    kernels = [row for row in every.values() if row["kind"] == "kernel"]
    busy = {at for row in kernels for at in range(row["ts_ns"], row["ts_ns"] + row["dur_ns"])}
    for row in devices(trace):
        assert row.busy_ns == len(busy)
        assert row.busy_ns + row.idle_ns == row.span_ns
        assert row.compute_ns + row.comm_ns - row.overlap_comm_ns == row.busy_ns
        assert row.exposed_comm_ns == row.comm_ns - row.overlap_comm_ns
    for waits in idle(trace):
        parts = waits.host_wait_ns + waits.kernel_wait_ns + waits.other_ns + waits.unknown_ns
        assert parts == waits.idle_ns == waits.span_ns - waits.busy_ns
    for one in steps(trace):
        window = range(one.ts_ns, one.ts_ns + one.dur_ns)
        assert one.idle_ns == sum(at not in busy for at in window)
        mine = [row for row in kernels if every[row["launch"]]["ts_ns"] in window]
        assert (one.kernels, one.kernel_ns + one.comm_ns) == (
            len(mine),
            sum(waits["dur_ns"] for waits in mine),
        )
        assert sum(one.wall_ns.values()) == one.span_ns


@FEW
@given(rows())
def test_paths_summaries_and_findings_of_anything(made: list[Row]) -> None:
    trace = memory_trace(made)
    found = critical_path(trace)
    assert (found is None) == (not made)
    if found is not None:
        assert found.total_ns == sum(found.by_kind.values()) == found.end_ns - found.start_ns
        for left, right in zip(found.segments, found.segments[1:], strict=False):
            assert left.end_ns == right.start_ns
    summarize(trace).to_json()
    for finding in diagnose(trace):
        finding.to_json()
