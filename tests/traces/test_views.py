"""The SQL views give the numbers that analysis computes on arrays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profrun.analysis.trace.kernels import kernels
from profrun.analysis.trace.ops import operators
from profrun.analysis.trace.ranges import ranges
from profrun.traces.trace import Trace


@pytest.mark.parametrize("name", ["h200/torch/train.json.gz", "h200/nsys/train.sqlite"])
def test_the_views_say_the_same(name: str, real: Callable[..., Trace]) -> None:
    from profrun.analysis.trace.gpu import devices
    from profrun.analysis.trace.steps import steps

    trace = real(name)
    found = [(row.step, row.kernels, row.kernel_ns, row.memcpy_ns, row.memset_ns) for row in steps(trace)]
    query = "SELECT step, kernels, kernel_ns, memcpy_ns, memset_ns FROM step_breakdown ORDER BY ts_ns"
    assert found == trace.sql(query).rows
    assert sum(row[1] for row in found) > 900
    busy = dict(trace.sql("SELECT device, sum(dur_ns)::BIGINT FROM gpu_busy GROUP BY device").rows)
    assert busy == {row.device: row.busy_ns for row in devices(trace)}
    ops = {row.name: (row.self_cpu_ns, row.self_device_ns) for row in operators(trace) if row.kind == "op"}
    rows = trace.sql("SELECT name, self_cpu_ns, self_device_ns FROM op_summary").rows
    assert ops == {name: (cpu, gpu) for name, cpu, gpu in rows}
    table = {row.name: (row.calls, row.total_ns, row.p99_ns) for row in kernels(trace)}
    rows = trace.sql("SELECT name, calls, total_ns, p99_ns FROM kernel_summary").rows
    assert table == {name: (calls, total, p99) for name, calls, total, p99 in rows}
    by_range = dict(trace.sql("SELECT range_name, sum(dur_ns)::BIGINT FROM range_kernels GROUP BY 1").rows)
    assert {row.name: row.gpu_ns for row in ranges(trace) if row.gpu_ns} == by_range


def test_work_of_a_step_is_the_same_under_torch_and_nsys(real: Callable[..., Trace]) -> None:
    query = "SELECT DISTINCT kernels FROM step_breakdown ORDER BY 1"
    assert (
        real("h200/torch/train.json.gz").sql(query).rows
        == real("h200/nsys/train.sqlite").sql(query).rows
        == [(313,)]
    )
