"""Ranges, modules, calls, copies, collectives and kernels: a small trace, the question, the table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profrun.analysis.trace.collectives import bus_factor, collectives
from profrun.analysis.trace.copies import copies
from profrun.analysis.trace.kernels import categories, kernels
from profrun.analysis.trace.ops import operators
from profrun.analysis.trace.queue import launch_stats
from profrun.analysis.trace.ranges import ranges
from profrun.analysis.trace.runtime_calls import apis
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step

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


def test_torchs_rules_of_the_op_table() -> None:
    trace = memory_trace(
        [
            ("step", "ProfilerStep#1", 0, 100, "main"), ("step", "ProfilerStep#2", 100, 100, "main"),
            # the only child, same name: one call
            ("op", "aten::to", 10, 50, "main"), ("op", "aten::to", 12, 40, "main"),
            ("op", "aten::is_leaf", 70, 4, "main"),  # no row; its time stays with the step
            ("op", "aten::add", 110, 20, "main"), ("api", LAUNCH, 115, 5, "main"),
            ("kernel", "k", 150, 8, "stream 7", {"launch": 6}),
            ("api", "cudaStreamIsCapturing", 180, 2, "main"),
        ]
    )  # fmt: skip
    rows = {row.name: (row.kind, row.calls, row.self_cpu_ns, row.cpu_ns, row.self_device_ns, row.device_ns)
            for row in operators(trace)}  # fmt: skip
    assert rows == {
        "ProfilerStep*": ("step", 2, 100 - 50 + 100 - 20 - 2, 200, 0, 8),
        "aten::to": ("op", 1, 50, 50, 0, 0),
        "aten::add": ("op", 1, 15, 20, 8, 8),
        LAUNCH: ("api", 1, 5, 5, 0, 0),
        "cudaStreamIsCapturing": ("api", 1, 2, 2, 0, 0),
    }


def test_an_op_named_as_the_launch_owns_its_kernel() -> None:
    """Recordings without runtime calls: the tool names the op, and nobody knows when inside it."""
    rows = [
        ("op", "aten::linear", 0, 50, "main"), ("op", "aten::mm", 10, 20, "main"),
        ("kernel", "gemm", 100, 40, "stream 7", {"launch": 1}),
    ]  # fmt: skip
    trace = memory_trace(rows)
    found = {row.name: (row.self_device_ns, row.device_ns) for row in operators(trace)}
    assert found == {"aten::linear": (0, 40), "aten::mm": (40, 40)}
    query = "SELECT name, self_device_ns, device_ns FROM op_summary"
    assert {name: (own, total) for name, own, total in trace.sql(query).rows} == found
    stats = launch_stats(trace)
    assert (stats.latency, stats.unplaced) == (None, 1)


def test_calls_and_what_they_enqueued() -> None:
    rows: list[Row] = [
        ("api", "cudaGraphLaunch", 0, 10, "main"),
        ("api", LAUNCH, 10, 4, "main"),
        ("api", LAUNCH, 20, 8, "main"),
    ]
    rows += [("kernel", "k", 50 + place, 1, "stream 7", {"launch": 0}) for place in range(3)]
    rows += [("sync", "Stream Wait Event", 60, 1, "stream 7", {"launch": 1})]  # a wait is no work
    found = {row.name: row for row in apis(memory_trace(rows))}
    launch = found[LAUNCH]
    assert (launch.calls, launch.total_ns, launch.mean_ns, launch.p50_ns, launch.max_ns) == (
        2,
        12,
        6.0,
        6.0,
        8,
    )
    assert {name: row.gpu_slices for name, row in found.items()} == {"cudaGraphLaunch": 3, LAUNCH: 0}


def test_copies_by_direction_with_their_bandwidth() -> None:
    def copy(at: int, direction: str, size: int | None, dur: int) -> tuple[object, ...]:
        columns = {"copies.direction": direction, "copies.bytes": size, "copies.src_kind": "pinned"}
        return ("memcpy", "m", at, dur, "stream 7", columns)

    rows = copies(
        memory_trace([copy(0, "HtoD", 1000, 10), copy(20, "HtoD", 3000, 30), copy(60, "DtoH", None, 5)])
    )
    assert [(row.direction, row.calls, row.bytes, row.total_ns, row.gb_s) for row in rows] == [
        ("HtoD", 2, 4000, 40, 100.0), ("DtoH", 1, None, 5, None)]  # fmt: skip


def test_the_distribution_of_a_kernel() -> None:
    durs = [10, 20, 30, 40, 100]
    trace = memory_trace(
        [("kernel", "gemm", 1000 * place, dur, "stream 7") for place, dur in enumerate(durs)]
    )
    (row,) = kernels(trace)
    assert (row.calls, row.total_ns, row.mean_ns, row.p50_ns, row.min_ns, row.max_ns) == (
        5,
        200,
        40.0,
        30.0,
        10,
        100,
    )
    assert row.p99_ns == pytest.approx(40 + 0.96 * 60)
    assert row.stdev_ns == pytest.approx((sum((dur - 40) ** 2 for dur in durs) / 4) ** 0.5)
    assert row.share == 1.0


def test_categories_add_up_with_the_unknown_shown() -> None:
    rows = [
        ("kernel", "nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT", 0, 60, "stream 7"),
        ("kernel", "mine", 100, 40, "stream 7"),
    ]
    table = categories(kernels(memory_trace(rows)))
    assert [(row.category, row.total_ns, row.share) for row in table] == [
        ("gemm", 60, 0.6),
        ("unknown", 40, 0.4),
    ]


@pytest.mark.parametrize(
    ("op", "size", "factor"),
    [
        ("allreduce", 8, 1.75), ("_allgather_base", 4, 0.75), ("reduce_scatter", 2, 0.5),
        ("all_to_all", 8, 0.875),
        ("broadcast", 8, 1.0), ("allreduce", None, None), ("send", None, 1.0),
    ],
)  # fmt: skip
def test_bus_factors_are_those_of_nccl_tests(op: str, size: int | None, factor: float | None) -> None:
    assert bus_factor(op, size) == factor


def test_collectives_with_their_bandwidths() -> None:
    columns = {"collectives.op": "allreduce", "collectives.bytes": 1000, "collectives.group_size": 4,
               "collectives.dtype": "float", "collectives.group": "0"}  # fmt: skip
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    rows: list[Row] = [("kernel", name, 100 * at, dur, "stream 9", columns)
            for at, dur in enumerate((10, 30))]  # fmt: skip
    rows.append(("kernel", "ncclDevKernel_AllGather_RING_LL", 500, 5, "stream 9"))
    first, second = collectives(memory_trace(rows))
    assert (first.op, first.calls, first.mean_ns, first.alg_gb_s, first.bus_gb_s) == (
        "allreduce",
        2,
        20.0,
        50.0,
        75.0,
    )
    assert (second.op, second.bytes, second.alg_gb_s) == ("allgather", None, None)


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
