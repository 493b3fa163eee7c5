"""What kineto means, one rule a test: a few events, a question, the expected rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from profrun.collectors.normalize import normalize
from tests.collectors.torch.kineto import (
    AMD,
    api,
    document,
    gpu,
    issues,
    kernel,
    op,
    trace_of,
    trace_of_files,
)
from tests.conftest import first

pytestmark = pytest.mark.usefixtures("way")


def test_op_to_launch_to_kernel(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 0, 100, 1),
        api("cudaLaunchKernel", 10, 5, 11),
        kernel("gemm", 200, 50.5, 11),
    ]
    trace = trace_of(tmp_path, events)
    rows = trace.sql(
        "SELECT g.name, g.dur_ns, h.name, p.name, p.depth, h.depth FROM slices g "
        "JOIN slices h ON g.launch = h.slice JOIN slices p ON h.parent = p.slice"
    ).rows
    assert rows == [("gemm", 50500, "cudaLaunchKernel", "aten::mm", 0, 1)]
    assert issues(trace) == {}


def test_one_graph_launch_owns_many_kernels(tmp_path: Path) -> None:
    events = [
        api("cudaGraphLaunch", 0, 5, 11),
        *(kernel("k", 10 * n, 5, 11, **{"graph id": 3, "graph node id": n}) for n in range(1, 5)),
    ]
    trace = trace_of(tmp_path, events)
    assert trace.sql("SELECT launch, count(*) FROM slices WHERE kind = 'kernel' GROUP BY 1").rows == [(0, 4)]
    assert trace.sql("SELECT graph, graph_node FROM kernels ORDER BY slice").rows == [
        (3, 1),
        (3, 2),
        (3, 3),
        (3, 4),
    ]


def test_kernels_without_a_launch_are_kept_and_counted(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 0, 9, 1),
        kernel("before the window", 1, 5, 5),
        kernel("named by its op", 20, 5, 6, **{"External id": 1}),
    ]
    trace = trace_of(tmp_path, events)
    assert issues(trace) == {"kernel_without_launch": 1, "launch_by_external_id": 1}
    found = trace.sql(
        "SELECT g.name, h.name FROM slices g LEFT JOIN slices h ON g.launch = h.slice "
        "WHERE g.kind = 'kernel' ORDER BY g.ts_ns"
    ).rows
    assert found == [("before the window", None), ("named by its op", "aten::mm")]


def test_container_pids_do_not_collide_with_device_numbers(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 0, 9, 1) | {"pid": 0, "tid": 7},  # process 0, thread 7; the kernel: device 0, stream 7
        kernel("k", 3, 4, 5),
    ]
    trace = trace_of(tmp_path, events)
    assert trace.sql("SELECT kind, native_id, device FROM tracks ORDER BY track").rows == [
        ("thread", 7, None),
        ("stream", 7, 0),
    ]


def test_annotations_steps_and_their_gpu_copies(tmp_path: Path) -> None:
    host = {"ph": "X", "pid": 100, "tid": 10, "args": {}}
    events = [
        host | {"cat": "user_annotation", "name": "ProfilerStep#3", "ts": 0, "dur": 50},
        host | {"cat": "user_annotation", "name": "profrun.step#4", "ts": 60, "dur": 50},
        host | {"cat": "user_annotation", "name": "forward", "ts": 1, "dur": 40},
        host | {"cat": "python_function", "name": "train.py(3): main", "ts": 2, "dur": 30},
        host | {"cat": "overhead", "name": "Instrumentation", "ts": 3, "dur": 1, "pid": -1, "tid": 0},
        gpu("gpu_user_annotation", "ProfilerStep#3", 5, 40, 0),
        gpu("cuda_sync", "Stream Sync", 46, 2, 9),
        {
            "ph": "X",
            "cat": "Trace",
            "name": "PyTorch Profiler (0)",
            "pid": "Spans",
            "tid": "P",
            "ts": 0,
            "dur": 99,
        },
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 99},
    ]
    trace = trace_of(tmp_path, events)
    assert trace.sql(
        "SELECT s.kind, s.name, t.kind FROM slices s JOIN tracks t USING (track) ORDER BY t.kind, s.ts_ns"
    ).rows == [
        ("range", "ProfilerStep#3", "stream"),
        ("sync", "Stream Sync", "stream"),
        ("step", "ProfilerStep#3", "thread"),
        ("range", "forward", "thread"),
        ("python", "train.py(3): main", "thread"),
        ("overhead", "Instrumentation", "thread"),
        ("step", "profrun.step#4", "thread"),
    ]
    assert issues(trace) == {}


def test_several_ranks_share_one_axis_and_never_a_process(tmp_path: Path) -> None:
    events = [op("aten::mm", 1, 9, 1), api("cudaLaunchKernel", 2, 3, 5), kernel("k", 20, 4, 5)]
    ranks = [
        document(events, distributedInfo={"rank": 1, "world_size": 2}, baseTimeNanoseconds=2 * 10**18),
        document(events, distributedInfo={"rank": 0, "world_size": 2}, baseTimeNanoseconds=2 * 10**18 + 500),
    ]
    trace = trace_of_files(tmp_path, ranks)
    assert trace.sql("SELECT process, pid, rank FROM processes ORDER BY 1").rows == [(0, 100, 1), (1, 100, 0)]
    assert trace.meta["epoch_ns"] == 2 * 10**18
    found = trace.sql(
        "SELECT p.rank, k.ts_ns, l.ts_ns FROM slices k JOIN tracks t ON t.track = k.track "
        "JOIN processes p USING (process) JOIN slices l ON l.slice = k.launch ORDER BY 1"
    ).rows
    assert found == [(0, 20500, 2500), (1, 20000, 2000)]
    assert issues(trace) == {}


def test_ranks_without_rank_or_clock_are_said(tmp_path: Path) -> None:
    bare = {"schemaVersion": 1, "traceEvents": [op("aten::mm", 1, 9, 1)]}
    trace = trace_of_files(tmp_path, [bare, bare])
    assert issues(trace) == {"ranks_by_order": 2, "clocks_not_aligned": 2}
    assert trace.sql("SELECT rank FROM processes ORDER BY 1").rows == [(0,), (1,)]
    assert (trace.meta["epoch_ns"], trace.meta["clock"]) == (None, "session")


@pytest.mark.parametrize(
    ("ts", "expected"),
    first(
        4,
        [
            ("8796093022207.999", 8796093022207999),  # the last fraction below 2**43 us, through float64
            ("8796093022209.001", 8796093022209001),  # beyond: read as text
            ("1712195495406752.797", 1712195495406752797),  # absolute, 2024
            ("-3.5", -3500),
            ("7516230579286.904", 7516230579286904),
            ("1712195495406752", 1712195495406752000),
            ('"12.5"', 12500),
        ],
    ),
)
def test_times_are_exact(ts: str, expected: int, tmp_path: Path) -> None:
    event = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": %s, "dur": 0.001}' % ts  # noqa: UP031
    (tmp_path / "t.json").write_text('{"schemaVersion": 1, "traceEvents": [%s]}' % event)  # noqa: UP031
    from profrun.collectors.normalize import normalize
    from profrun.traces.trace import Trace

    normalize([tmp_path / "t.json"], tmp_path / "trace")
    assert Trace(tmp_path / "trace").sql("SELECT ts_ns, dur_ns FROM slices").rows == [(expected, 1)]


@pytest.mark.parametrize(
    ("launch", "grid", "block", "expected"),
    first(
        3,
        [
            ("hipLaunchKernel", [8, 2, 1], [256, 1, 1], (8, 2, 1, 256, 1, 1)),
            ("hipExtModuleLaunchKernel", [17921, 3, 1], [256, 2, 1], (71, 2, 1, 256, 2, 1)),
            # swapped, in work-items
            ("hipLaunchKernel", [256, 1, 1], [524288, 1, 1], (2048, 1, 1, 256, 1, 1)),
            ("hipExtModuleLaunchKernel", [17920, 1, 1], [256, 1, 1], (70, 1, 1, 256, 1, 1)),
            ("hipModuleLaunchKernel", [8, 2, 1], [256, 1, 1], (8, 2, 1, 256, 1, 1)),
        ],
    ),
)
def test_amd_grids_are_in_blocks(
    launch: str, grid: list[int], block: list[int], expected: tuple[int, ...], tmp_path: Path
) -> None:
    events = [
        api(launch, 0, 5, 3, **{"shared memory": 512}),
        kernel("Cijk_x.kd", 10, 5, 3, grid=grid, block=block),
    ]
    trace = trace_of(tmp_path, events, deviceProperties=[AMD], roctracer_version=4.1, cupti_version=None)
    rows = trace.sql("SELECT grid_x, grid_y, grid_z, block_x, block_y, block_z FROM kernels").rows
    assert rows == [expected]
    assert trace.sql("SELECT name FROM slices WHERE kind = 'kernel'").scalar() == "Cijk_x"
    assert trace.sql("SELECT smem_dynamic, smem, registers FROM kernels").rows == [(512, None, None)]
    assert trace.meta["vendor"] == "amd"


@pytest.mark.parametrize(
    ("devices", "listed", "extra", "expected", "guessed"),
    [
        ([2], 1, {}, [0], False),  # one GPU announced: node 2 is it
        ([4, 5], 2, {}, [0, 1], False),
        ([0, 1], 8, {}, [0, 1], False),  # node 0 is a CPU: ordinals
        ([2], 8, {"rocprofiler-sdk_version": 1.0}, [2], False),
        ([2], 8, {}, [0], True),
    ],
)
def test_amd_node_numbers_become_ordinals(
    devices: list[int],
    listed: int,
    extra: dict[str, float],
    expected: list[int],
    guessed: bool,
    tmp_path: Path,
) -> None:
    events = [api("hipLaunchKernel", 0, 5, 3), *(kernel("k", 10, 5, 3, device=d, stream=0) for d in devices)]
    properties = [AMD | {"id": number} for number in range(listed)]
    trace = trace_of(tmp_path, events, deviceProperties=properties, cupti_version=None, **extra)
    used = trace.sql(
        "SELECT DISTINCT d.ordinal FROM slices s JOIN tracks t USING (track) JOIN devices d USING (device) "
        "WHERE s.kind = 'kernel' ORDER BY 1"
    ).rows
    assert [row[0] for row in used] == expected
    assert ("device_numbers_guessed" in issues(trace)) == guessed


def test_copies_say_direction_kinds_and_bytes(tmp_path: Path) -> None:
    events = [
        gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 1, 1, 0, bytes=4096),
        gpu("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 3, 1, 0, bytes="17"),
        gpu("gpu_memcpy", "Memcpy PtoP (Device -> Device)", 5, 1, 0),
        gpu("gpu_memcpy", "CopyHostToDevice", 7, 1, 0),
        gpu("gpu_memset", "Memset (Device)", 9, 1, 0, bytes=512),
    ]
    trace = trace_of(tmp_path, events)
    assert trace.sql("SELECT direction, bytes, src_kind, dst_kind FROM copies ORDER BY slice").rows == [
        ("HtoD", 4096, "pinned", "device"),
        ("DtoH", 17, "device", "pageable"),
        ("PtoP", None, "device", "device"),
        ("HtoD", None, None, None),
        ("memset", 512, None, "device"),
    ]


def test_collectives_from_metadata_or_else_from_the_name(tmp_path: Path) -> None:
    nccl: dict[str, Any] = {
        "Collective name": "_allgather_base",
        "In msg nelems": 10,
        "Out msg nelems": 80,
        "dtype": "BFloat16",
        "Process Group Name": "0",
        "Group size": 8,
        "Comms Id": 10159970886766084423,
    }
    events = [
        kernel("ncclDevKernel_Generic(args)", 0, 5, 1, **nccl),
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 10, 5, 2),
        kernel("rccl_main_kernel", 20, 5, 3),
        kernel("gemm", 30, 5, 4),
    ]
    trace = trace_of(tmp_path, events)
    assert trace.sql(
        'SELECT op, dtype, in_elements, out_elements, "group", group_size, bytes '
        "FROM collectives ORDER BY slice"
    ).rows == [
        ("allgather_base", "BFloat16", 10, 80, "0", 8, 160),
        ("allreduce", None, None, None, None, None, None),
        ("unknown", None, None, None, None, None, None),
    ]


def test_backward_ops_know_their_forward(tmp_path: Path) -> None:
    shapes: dict[str, Any] = {"Input Dims": [[2, 2]], "Input type": ["float"]}
    flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 100}
    events = [
        op("aten::mul", 5, 9, 1, **shapes, **{"Sequence number": 3}),
        op("MulBackward0", 50, 9, 2, tid=11, **{"Sequence number": 3}),
        flow | {"ph": "s", "tid": 10, "ts": 5},
        flow | {"ph": "f", "bp": "e", "tid": 11, "ts": 50},
    ]
    trace = trace_of(tmp_path, events)
    assert trace.sql(
        "SELECT b.name, f.name, o.sequence, fo.shapes FROM ops o JOIN slices b USING (slice) "
        "JOIN slices f ON f.slice = o.backward_of JOIN ops fo ON fo.slice = f.slice"
    ).rows == [("MulBackward0", "aten::mul", 3, "[[2,2]]")]


def test_the_allocators_samples_become_counters(tmp_path: Path) -> None:
    def sample(ts: int, device: int, total: int) -> dict[str, object]:
        args = {"Device Type": int(device >= 0), "Device Id": device, "Total Allocated": total, "Bytes": 4}
        return {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 100,
            "tid": 10,
            "ts": ts,
            "args": args | {"Total Reserved": 2 * total},
        }

    trace = trace_of(tmp_path, [op("a", 0, 9, 1), sample(1, 0, 100), sample(2, -1, 7)])
    assert trace.sql(
        "SELECT t.device, c.name, c.ts_ns, c.value FROM counters c JOIN tracks t USING (track) ORDER BY ALL"
    ).rows == [
        (0, "memory allocated", 1000, 100.0),
        (0, "memory change", 1000, 4.0),
        (0, "memory reserved", 1000, 200.0),
        (None, "memory allocated", 2000, 7.0),
        (None, "memory change", 2000, 4.0),
        (None, "memory reserved", 2000, 14.0),
    ]
    assert issues(trace) == {}


def test_overlaps_of_one_stream_are_kept_and_counted(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, [kernel("a", 0, 10, 1), kernel("b", 9, 10, 2), kernel("c", 19, 1, 3)])
    assert issues(trace) == {"kernel_without_launch": 3, "stream_overlap": 1, "no_host_process": 1}
    assert trace.sql("SELECT sum(dur_ns) FROM slices").scalar() == 21000


def test_counters_of_profiled_ranges_become_metrics(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 0, 50, 1),
        gpu("cuda_profiler_range", "gemm", 10.5, 20, 0, **{"smsp__inst.sum": 7, "dram__bytes.sum": 1.5}),
    ]
    for event in events[1:]:
        event["args"] = {key: value for key, value in event["args"].items() if "__" in key}
    trace = trace_of(tmp_path, events)
    assert trace.sql(
        "SELECT s.kind, s.ts_ns, m.name, m.value, m.unit FROM metrics m JOIN slices s USING (slice) "
        "ORDER BY m.name"
    ).rows == [
        ("range", 10500, "dram__bytes.sum", 1.5, "1"),
        ("range", 10500, "smsp__inst.sum", 7.0, "1"),
    ]
    assert trace.meta["replayed"] is True


@pytest.mark.parametrize("ts", ["", "soon", "NaN"])
def test_counters_of_a_range_without_a_time_are_left_out_with_it(tmp_path: Path, ts: str) -> None:
    ranges = [gpu("cuda_profiler_range", "gemm", 10.5, 20, number, **{"inst.sum": 7}) for number in (0, 1)]
    for one in ranges:
        one["args"] = {"inst.sum": 7}
    ranges[0]["ts"] = ts
    trace = trace_of(tmp_path, [op("aten::mm", 0, 50, 1), *ranges])
    assert trace.sql("SELECT name, value FROM metrics").rows == [("inst.sum", 7.0)]
    assert issues(trace)["no_timestamp"] == 1


def test_ids_beyond_int64_are_missing_and_counted(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, [api("cudaLaunchKernel", 1, 2, 2**64 - 1), kernel("k", 4, 2, 2**64 - 1)])
    assert trace.sql("SELECT kind, correlation FROM slices ORDER BY ALL").rows == [
        ("api", None),
        ("kernel", None),
    ]
    assert issues(trace) == {"unreadable_value": 2, "kernel_without_launch": 1}


def test_of_two_names_a_thread_has_the_one_that_says_more(tmp_path: Path) -> None:
    def name(label: str, key: str = "thread_name", tid: int = 10) -> dict[str, object]:
        return {"ph": "M", "name": key, "pid": 100, "tid": tid, "ts": 0, "args": {"name": label}}

    events = [
        *(name("python3", "process_name", 0), name("thread 10 (pt_autograd_0)"), name("thread 10 (python3)")),
        *(name("thread 11 (python3)", tid=11), op("a", 0, 9, 1), op("b", 0, 9, 2, tid=11)),
    ]
    trace = trace_of(tmp_path, events)
    assert trace.sql("SELECT native_id, name FROM tracks ORDER BY ALL").rows == [
        (10, "thread 10 (pt_autograd_0)"),
        (11, "thread 11 (python3)"),
    ]


def test_samples_of_the_allocator_that_come_late_are_all_there(tmp_path: Path) -> None:
    args = {"Device Type": 1, "Device Id": 0, "Bytes": 8, "Total Allocated": 8}
    sample = {"ph": "i", "name": "[memory]", "pid": 100, "tid": 10, "ts": 5, "args": args}
    early = [op("a" * 500, number, 1, number + 1) for number in range(4000)]  # more than a look at the head
    trace = trace_of(tmp_path, [*early, sample])
    assert trace.sql("SELECT name, value FROM counters ORDER BY ALL").rows == [
        ("memory allocated", 8.0),
        ("memory change", 8.0),
    ]


def test_one_rank_that_needs_repairs_changes_nothing_for_the_others(tmp_path: Path) -> None:
    files = [
        document([op("a", 1, 2, 3), kernel("k", 2, 2, 3)], distributedInfo={"rank": 0, "world_size": 2}),
        document(
            [op("b", 1, 2, 3, **{"Sequence number": 2**70})], distributedInfo={"rank": 1, "world_size": 2}
        ),
    ]
    trace = trace_of_files(tmp_path, files)
    found = "SELECT p.rank, s.name FROM slices s JOIN tracks USING (track) JOIN processes p USING (process)"
    assert trace.sql(f"{found} ORDER BY ALL").rows == [(0, "a"), (0, "k"), (1, "b")]
    assert issues(trace)["unreadable_value"] == 1


class _Counting:
    """A connection that counts statements; one of ``executemany`` counts for each of its rows."""

    def __init__(self, con: Any) -> None:
        self._con = con
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)

    def execute(self, *args: Any) -> Any:
        self.count += 1
        return self._con.execute(*args)

    def executemany(self, query: str, rows: list[Any]) -> Any:
        self.count += len(rows)
        return self._con.executemany(query, rows)


def test_more_ranks_with_more_threads_cost_few_more_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A statement for each thread of each rank took most of the time of 512 ranks."""
    made: list[_Counting] = []
    real = duckdb.connect

    def connect(*args: Any, **more: Any) -> _Counting:
        made.append(_Counting(real(*args, **more)))
        return made[-1]

    monkeypatch.setattr("profrun.traces.writer.duckdb.connect", connect)
    for count in (4, 24):
        events = [op("aten::mm", 10 * tid, 5, tid, tid) for tid in range(1, 41)]
        ranks = [document(events, distributedInfo={"rank": rank}) for rank in range(count)]
        paths = [tmp_path / f"{count}-{rank}.json" for rank in range(count)]
        for path, rank in zip(paths, ranks, strict=True):
            path.write_text(json.dumps(rank))
        normalize(paths, tmp_path / f"trace{count}")
    few, many = (one.count for one in made)
    # 20 files and 800 threads more: the slow way reads each file by statements of its own
    assert many - few < (100 if way == "compiled" else 200)
