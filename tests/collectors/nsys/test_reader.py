"""One trap of the format a test: a few rows, the question, the expected answer."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest

from profrun.errors import InputError
from tests.collectors.nsys.exports import (
    KERNEL,
    MEMCPY,
    RUNTIME,
    gpid,
    gtid,
    issues,
    make_export,
    trace_of,
)
from tests.conftest import first


def kernel(start: int, end: int, *, pid: int = 7, corr: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "start": start,
        "end": end,
        "deviceId": 0,
        "contextId": 1,
        "streamId": 7,
        "correlationId": corr,
        "globalPid": gpid(pid),
        "demangledName": 0,
        **more,
    }


def call(start: int, end: int, *, pid: int = 7, tid: int = 7, corr: int | None = None, name: int = 1) -> Any:
    return {
        "start": start,
        "end": end,
        "eventClass": 0,
        "globalTid": gtid(pid, tid),
        "correlationId": corr,
        "nameId": name,
        "returnValue": 0,
    }


def push_pop(start: int, end: int | None, text: str, *, tid: int = 7, **more: Any) -> dict[str, Any]:
    return {"start": start, "end": end, "eventType": 59, "globalTid": gtid(7, tid), "text": text, **more}


def test_correlation_ids_are_per_process(tmp_path: Path) -> None:
    tables = {
        KERNEL: [kernel(100, 200, pid=7, corr=5), kernel(110, 220, pid=8, corr=5)],
        RUNTIME: [call(10, 20, pid=7, corr=5), call(30, 40, pid=8, tid=8, corr=5)],
    }
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["gemm", "cudaLaunchKernel_v7000"]))
    rows = trace.sql(
        "SELECT k.ts_ns, a.ts_ns, a.name FROM slices k JOIN slices a ON a.slice = k.launch "
        "WHERE k.kind = 'kernel' ORDER BY 1"
    ).rows
    assert rows == [(100, 10, "cudaLaunchKernel"), (110, 30, "cudaLaunchKernel")]
    assert trace.sql("SELECT pid, rank FROM processes ORDER BY 1").rows == [(7, 0), (8, 1)]
    assert issues(trace)["rank-guessed"] == 2


def test_kernels_before_the_window_have_no_launch_and_are_counted(tmp_path: Path) -> None:
    tables = {
        KERNEL: [kernel(100, 200, corr=3), kernel(200, 300, corr=9)],
        RUNTIME: [call(150, 160, corr=9)],
    }
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k", "cudaLaunchKernel"]))
    assert trace.sql("SELECT correlation, launch IS NULL FROM slices WHERE kind = 'kernel'").rows == [
        (3, True),
        (9, False),
    ]
    assert issues(trace)["kernel-without-launch"] == 1


def test_backtrace_rows_do_not_double_the_api(tmp_path: Path) -> None:
    twice = call(10, 22, corr=1, name=2) | {"eventClass": 67}
    tables = {RUNTIME: [call(10, 20, corr=1), twice, call(30, 40, corr=2)]}
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["", "cudaMalloc_v3020", "cudaMalloc"]))
    assert trace.sql("SELECT name, dur_ns FROM slices WHERE kind = 'api' ORDER BY ts_ns").rows == [
        ("cudaMalloc", 10),
        ("cudaMalloc", 10),
    ]
    assert issues(trace)["backtrace-duplicates"] == 1


@pytest.mark.parametrize(
    ("written", "shown"),
    first(
        3,
        [
            ("cudaMemcpyAsync_v3020_ptsz", "cudaMemcpyAsync"),
            ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2"),
            ("cudaGetDeviceProperties_v2_v12000", "cudaGetDeviceProperties_v2"),
            ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
            ("cudaLaunchKernel_ptds", "cudaLaunchKernel"),
        ],
    ),
)
def test_api_names_lose_their_version_but_not_the_drivers_v2(
    tmp_path: Path, written: str, shown: str
) -> None:
    trace = trace_of(tmp_path, make_export(tmp_path / "x", {RUNTIME: [call(1, 2)]}, ["", written]))
    assert trace.sql("SELECT name FROM slices").scalar() == shown


def test_nvtx_nests_with_the_api_of_its_thread_and_steps_are_steps(tmp_path: Path) -> None:
    nvtx: list[dict[str, Any]] = [
        push_pop(0, 100, "profrun.step#3"),
        push_pop(10, 90, "nn.Module: block (Block)"),
        push_pop(10, 90, "forward", tid=8),
        {"start": 5, "end": 95, "eventType": 59, "globalTid": gtid(7, 7), "textId": 0, "domainId": 1},
    ]
    tables = {"NVTX_EVENTS": nvtx, RUNTIME: [call(20, 30, corr=1)]}
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["NCCL thing", "cudaLaunchKernel"]))
    rows = trace.sql(
        "SELECT s.name, s.kind, s.depth, p.name FROM slices s LEFT JOIN slices p ON p.slice = s.parent "
        "ORDER BY s.track, s.ts_ns, s.dur_ns DESC"
    ).rows
    assert rows == [
        ("profrun.step#3", "step", 0, None),
        ("NCCL thing", "range", 1, "profrun.step#3"),
        ("nn.Module: block (Block)", "range", 2, "NCCL thing"),
        ("cudaLaunchKernel", "api", 3, "nn.Module: block (Block)"),
        ("forward", "range", 0, None),
    ]


def test_start_end_ranges_lie_on_a_lane_of_their_own_and_may_overlap(tmp_path: Path) -> None:
    nvtx: list[dict[str, Any]] = [
        {"start": 0, "end": 50, "eventType": 60, "globalTid": gtid(7, 7), "text": "a", "rangeId": 1},
        {"start": 25, "end": 75, "eventType": 60, "globalTid": gtid(7, 8), "text": "b", "rangeId": 2},
        {"start": 30, "end": None, "eventType": 34, "globalTid": gtid(7, 7), "text": "mark"},
    ]
    trace = trace_of(tmp_path, make_export(tmp_path / "x", {"NVTX_EVENTS": nvtx}))
    rows = trace.sql(
        "SELECT s.name, t.kind, s.ts_ns, s.dur_ns, s.depth FROM slices s JOIN tracks t USING (track)"
    )
    assert sorted(rows.rows) == [
        ("a", "range", 0, 50, None),
        ("b", "range", 25, 50, None),
        ("mark", "thread", 30, 0, 0),
    ]


def test_ranges_open_at_the_end_are_cut_and_never_steps(tmp_path: Path) -> None:
    nvtx = [push_pop(0, 10, "step 0"), push_pop(20, None, "step 1"), push_pop(22, None, "forward")]
    tables = {"NVTX_EVENTS": nvtx, KERNEL: [kernel(25, 40)]}
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k"]))
    rows = trace.sql("SELECT name, kind, dur_ns FROM slices WHERE kind <> 'kernel' ORDER BY ts_ns").rows
    assert rows == [("step 0", "step", 10), ("step 1", "range", 20), ("forward", "range", 18)]
    assert issues(trace)["range-unfinished"] == 2


def test_ranges_that_nsys_closed_at_its_own_end_were_open(tmp_path: Path) -> None:
    nvtx = [push_pop(0, 10, "step 0"), push_pop(20, 900, "step 1"), push_pop(22, 900, "forward")]
    tables = {"NVTX_EVENTS": nvtx, KERNEL: [kernel(25, 40)], "ANALYSIS_DETAILS": [{"duration": 900}]}
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k"]))
    rows = trace.sql("SELECT name, kind, dur_ns FROM slices WHERE kind <> 'kernel' ORDER BY ts_ns").rows
    assert rows == [("step 0", "step", 10), ("step 1", "range", 20), ("forward", "range", 18)]
    assert issues(trace)["range-unfinished"] == 2


@pytest.mark.parametrize(("calls", "dur_ns"), [([call(12, 15, corr=1)], 10), ([], 895)])
def test_the_run_that_nsys_closed_ends_with_the_last_record_else_with_the_recording(
    tmp_path: Path, calls: list[dict[str, Any]], dur_ns: int
) -> None:
    tables = {
        "NVTX_EVENTS": [push_pop(5, 900, "profrun.run")],
        RUNTIME: calls,
        "ANALYSIS_DETAILS": [{"duration": 900}],
    }
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k", "cudaLaunchKernel"]))
    assert trace.sql("SELECT name, ts_ns, dur_ns FROM steps").rows == [("profrun.run", 5, dur_ns)]
    assert issues(trace)["run-cut"] == 1


def test_a_run_that_was_still_going_on_is_a_step_that_ends_with_the_recording(tmp_path: Path) -> None:
    nvtx = [push_pop(5, None, "profrun.run"), push_pop(10, 20, "forward")]
    tables = {"NVTX_EVENTS": nvtx, RUNTIME: [call(12, 15, corr=1)], KERNEL: [kernel(25, 40, corr=1)]}
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k", "cudaLaunchKernel"]))
    assert trace.sql("SELECT step, name, ts_ns, dur_ns FROM steps").rows == [(0, "profrun.run", 5, 35)]
    assert trace.sql("SELECT step, kernels FROM step_breakdown").rows == [(0, 1)]
    assert issues(trace)["run-cut"] == 1
    assert "range-unfinished" not in issues(trace)


@pytest.mark.parametrize(
    ("stopped", "end"),
    [(None, 62), (900, 470), (300, 300)],
    ids=["the last record where nothing else is known", "the end of the program", "the recording was cut"],
)
def test_the_run_of_a_program_without_ranges_is_timed_from_outside(
    tmp_path: Path, stopped: int | None, end: int
) -> None:
    epoch = 1_700_000_000_000_000_000
    step = {"step": 0, "ts_ns": epoch - 30, "dur_ns": 500}  # it was started before nsys' time began
    values = {"pid": 7, "rank": 0, "how": "run", "steps": [step], "ranges_emitted": 0}
    (tmp_path / "steps.json").write_text(json.dumps(values))
    calls = [call(12, 15, corr=1), call(50, 60, pid=8, tid=8), call(61, 62, tid=9)]
    tables = {
        RUNTIME: calls,
        KERNEL: [kernel(25, 40, corr=1)],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": epoch}],
        "ANALYSIS_DETAILS": [{"duration": stopped}],
    }
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k", "cudaLaunchKernel"]))
    rows = trace.sql(
        "SELECT step, s.name, ts_ns, dur_ns, pid, native_id FROM steps s JOIN tracks USING (track) "
        "JOIN processes p ON p.process = s.process"
    ).rows
    assert rows == [(0, "profrun.run", 0, end, 7, 7)]
    assert trace.sql("SELECT step, kernels FROM step_breakdown").rows == [(0, 1)]
    assert issues(trace)["run-timed-outside"] == 1


def test_managed_migrations_are_not_copies_that_were_asked_for(tmp_path: Path) -> None:
    copy = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": gpid(7), "bytes": 64}
    copies = [
        copy | {"start": 0, "end": 5, "copyKind": 1, "srcKind": 1, "dstKind": 2, "correlationId": 4},
        copy
        | {
            "start": 1,
            "end": 9,
            "copyKind": 11,
            "srcKind": 7,
            "dstKind": 7,
            "correlationId": 0,
            "streamId": 0,
        },
    ]
    trace = trace_of(
        tmp_path, make_export(tmp_path / "x", {MEMCPY: copies, RUNTIME: [call(0, 1, corr=4)]}, ["", "c"])
    )
    rows = trace.sql(
        "SELECT s.name, t.kind, c.direction, c.managed, c.src_kind, s.correlation FROM slices s "
        "JOIN copies c USING (slice) JOIN tracks t USING (track) ORDER BY s.ts_ns"
    ).rows
    assert rows == [
        ("Memcpy HtoD (Pinned -> Device)", "stream", "HtoD", False, "pinned", 4),
        ("Unified memory migration HtoD", "copy", "HtoD", True, None, None),
    ]
    assert issues(trace)["managed-migrations"] == 1


def test_an_ordinal_is_found_by_process_not_by_gpu_id(tmp_path: Path) -> None:
    tables = {
        KERNEL: [kernel(0, 1, pid=7), kernel(0, 1, pid=8)],
        "TARGET_INFO_GPU": [
            {"id": 0, "name": "A40", "cuDevice": 2, "smCount": 84, "computeMajor": 8, "computeMinor": 6},
            {"id": 1, "name": "A100", "cuDevice": 0, "smCount": 108, "computeMajor": 8, "computeMinor": 0},
        ],
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": 0, "cudaId": 0, "pid": 7}],
    }
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k"]))
    rows = trace.sql(
        "SELECT p.pid, d.ordinal, d.name, d.arch FROM devices d JOIN processes p USING (process)"
    ).rows
    assert sorted(rows) == [(7, 0, "A40", "sm_86"), (8, 0, "A100", "sm_80")]
    assert issues(trace)["gpu-guessed"] == 1


def test_a_gpu_that_nothing_names_is_unknown(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, make_export(tmp_path / "x", {KERNEL: [kernel(0, 1)]}, ["k"]))
    assert trace.sql("SELECT name FROM devices").scalar() == "unknown"
    assert issues(trace)["gpu-unknown"] == 1


def test_the_oldest_schema_has_no_meta_no_enums_no_processes(tmp_path: Path) -> None:
    row = {"start": 5, "end": 9, "deviceId": 0, "streamId": 7, "correlationId": 1, "shortName": 0}
    api = {"start": 1, "end": 2, "correlationId": 1, "globalTid": gtid(9, 9), "nameId": 1}
    trace = trace_of(
        tmp_path, make_export(tmp_path / "x", {KERNEL: [row], RUNTIME: [api]}, ["k", "cuLaunchKernel"])
    )
    assert trace.meta["tool_version"] is None
    assert trace.meta["epoch_ns"] is None
    assert trace.meta["clock"] == "session"
    assert trace.sql("SELECT name, launch IS NOT NULL FROM slices WHERE kind = 'kernel'").rows == [
        ("k", True)
    ]


def test_sessions_are_put_on_one_axis(tmp_path: Path) -> None:
    first = {
        KERNEL: [kernel(100, 200)],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_700_000_000_000_000_500}],
    }
    second = {
        KERNEL: [kernel(100, 200, pid=8)],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_700_000_000_000_000_000}],
    }
    trace = trace_of(
        tmp_path, make_export(tmp_path / "a", first, ["k"]), make_export(tmp_path / "b", second, ["k"])
    )
    assert trace.meta["epoch_ns"] == 1_700_000_000_000_000_000
    assert trace.sql(
        "SELECT p.rank, p.pid, s.ts_ns FROM slices s JOIN tracks t USING (track) JOIN processes p USING "
        "(process) "
        "ORDER BY 1"
    ).rows == [(0, 7, 600), (1, 8, 100)]


def test_ranks_come_from_the_hooks_files_beside_the_report(tmp_path: Path) -> None:
    for rank, pid in ((0, 8), (1, 7)):
        folder = tmp_path / "raw" / f"rank{rank}"
        folder.mkdir(parents=True)
        (folder / "steps.json").write_text(
            json.dumps({"rank": rank, "pid": pid, "ranges_emitted": 4, "steps": []})
        )
    tables = {KERNEL: [kernel(0, 1, pid=7), kernel(0, 1, pid=8)]}
    trace = trace_of(tmp_path, make_export(tmp_path / "raw" / "rank0" / "report.sqlite", tables, ["k"]))
    assert trace.sql("SELECT pid, rank FROM processes ORDER BY pid").rows == [(7, 1), (8, 0)]
    assert issues(trace)["ranges-lost"] == 4


def test_odd_times_are_repaired_and_said(tmp_path: Path) -> None:
    rows = [
        kernel(100, 90),
        kernel(10**18, 10**18 + 5),
        kernel(-50, -40),
        kernel(3, 3),
        kernel(7, 0) | {"end": None},
    ]
    trace = trace_of(tmp_path, make_export(tmp_path / "x", {KERNEL: rows}, ["k"]))
    assert trace.sql("SELECT ts_ns, dur_ns FROM slices ORDER BY ts_ns").rows == [
        (-50, 10),
        (3, 0),
        (7, 0),
        (100, 0),
        (10**18, 5),
    ]
    found = issues(trace)
    assert (found["negative-duration"], found["no-end"]) == (1, 1)


def test_rows_that_cannot_be_placed_are_counted(tmp_path: Path) -> None:
    tables = {RUNTIME: [call(1, 2), call(3, 4) | {"globalTid": None}, call(5, 6) | {"start": None}]}
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["", "cudaFree"]))
    assert trace.sql("SELECT count(*) FROM slices").scalar() == 1
    assert issues(trace)["record-unplaced"] == 2


def test_opaque_graphs_are_no_kernels(tmp_path: Path) -> None:
    graph = {k: v for k, v in kernel(0, 9, corr=1).items() if k != "demangledName"} | {"graphId": 4}
    trace = trace_of(
        tmp_path,
        make_export(tmp_path / "x", {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [graph], RUNTIME: [call(0, 1)]}),
    )
    assert trace.sql("SELECT name, kind FROM slices WHERE kind <> 'api'").rows == [("CUDA graph 4", "range")]
    assert issues(trace)["graph-opaque"] == 1


def test_graph_nodes_share_one_launch(tmp_path: Path) -> None:
    rows = [kernel(10 * n, 10 * n + 5, corr=1, graphNodeId=100 + n, graphId=4) for n in range(3)]
    tables = {KERNEL: rows, RUNTIME: [call(0, 1, corr=1)]}
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k", "cudaGraphLaunch_v10000"]))
    assert trace.sql(
        "SELECT count(*), count(DISTINCT s.launch), min(k.graph), max(k.graph_node) FROM slices s "
        "JOIN kernels k USING (slice)"
    ).rows == [(3, 1, 4, 102)]


def test_nccl_kernels_are_collectives(tmp_path: Path) -> None:
    names = [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
        "ncclKernel_ReduceScatter_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)",
        "gemm",
    ]
    rows = [kernel(10 * n, 10 * n + 5) | {"demangledName": n} for n in range(4)]
    trace = trace_of(tmp_path, make_export(tmp_path / "x", {KERNEL: rows}, names))
    assert trace.sql(
        "SELECT c.op, c.dtype FROM collectives c JOIN slices s USING (slice) ORDER BY s.ts_ns"
    ).rows == [("allreduce", "bf16"), ("reduce_scatter", "float"), ("send_recv", None)]


def test_gpu_metrics_become_counters(tmp_path: Path) -> None:
    tables = {
        KERNEL: [kernel(0, 9)],
        "GPU_METRICS": [{"timestamp": 5, "typeId": 256 << 8, "metricId": 3, "value": 42}],
        "TARGET_INFO_GPU_METRICS": [
            {"typeId": 256 << 8, "metricId": 3, "metricName": "SMs Active [Throughput %]"}
        ],
        "TARGET_INFO_GPU": [{"id": 0, "name": "H200", "cuDevice": 0}],
    }
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k"]))
    assert trace.sql(
        "SELECT c.ts_ns, c.name, c.value, c.unit, t.kind, t.device FROM counters c JOIN tracks t USING "
        "(track)"
    ).rows == [(5, "SMs Active [Throughput %]", 42.0, "%", "counter", 0)]


def test_secrets_stay_where_they_are(tmp_path: Path) -> None:
    secret = "hf_0123456789abcdef"
    tables = {
        KERNEL: [kernel(0, 9)],
        "META_DATA_CAPTURE": [
            {"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": f"HF_API_KEY={secret}"},
            {"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": "CUDA_LAUNCH_BLOCKING=1"},
        ],
        "ProcessStreams": [{"globalPid": gpid(7), "filenameId": 1, "contentId": 1}],
    }
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k", f"printed {secret}"]))
    assert trace.meta["launch_blocking"] is True
    held = b"".join(file.read_bytes() for file in sorted(trace.path.iterdir()))
    assert secret.encode() not in held
    for table in trace.meta["counts"]["rows"]:
        assert not [row for row in trace.sql(f'SELECT * FROM "{table}"').rows if secret in str(row)]


def test_shifted_exports_are_refused(tmp_path: Path) -> None:
    tables = {
        KERNEL: [kernel(0, 9)],
        "META_DATA_EXPORT": [{"name": "EXPORT_PARAM_TIME_NORMALIZE", "value": "true"}],
    }
    with pytest.raises(InputError, match="ts-normalize"):
        trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k"]))


@pytest.mark.parametrize("value", ["later", b"\xff\x00", 1.5e300])
def test_a_column_of_another_type_is_bad_input(tmp_path: Path, value: object) -> None:
    tables = {KERNEL: [kernel(0, 9), kernel(1, 2) | {"start": value}]}
    with pytest.raises(InputError):
        trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k"]))


def test_errors_of_calls_are_told_but_not_ready_is_normal(tmp_path: Path) -> None:
    tables = {RUNTIME: [call(1, 2) | {"returnValue": 600}, call(3, 4) | {"returnValue": 700}]}
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["", "cudaEventQuery_v3020"]))
    assert trace.sql("SELECT count, example FROM issues WHERE code = 'api-error'").rows == [
        (1, "cudaEventQuery returned 700")
    ]


def test_a_report_beside_its_own_export_is_not_read_twice(tmp_path: Path) -> None:
    export = make_export(tmp_path / "report.nsys-rep.sqlite", {KERNEL: [kernel(0, 9)]}, ["k"])
    report = tmp_path / "report.nsys-rep"
    report.write_bytes(b"NVIDIA Tegra Profiler Report 2024@2@3@38-0v0.")
    trace = trace_of(tmp_path, report, export)
    assert trace.meta["counts"]["slices"] == {"kernel": 1}
    assert issues(trace)["same-twice"] == 1


def test_two_exports_of_one_session_are_one_recording(tmp_path: Path) -> None:
    tables = {
        KERNEL: [kernel(0, 9)],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_700_000_000_000_000_007}],
    }
    paths = [make_export(tmp_path / name, tables, ["k"]) for name in ("a", "b")]
    trace = trace_of(tmp_path, *paths)
    assert trace.meta["counts"]["slices"] == {"kernel": 1}
    assert issues(trace)["same-twice"] == 1


def test_the_step_that_the_programs_end_closed_is_no_step(tmp_path: Path) -> None:
    steps = {"rank": 0, "pid": 7, "ranges_emitted": 3, "steps": [{"step": 0}, {"step": 1}]}
    (tmp_path / "steps.json").write_text(json.dumps(steps))
    nvtx = [push_pop(10 * n, 10 * n + 9, f"profrun.step#{n}") for n in range(3)]
    trace = trace_of(tmp_path, make_export(tmp_path / "report.sqlite", {"NVTX_EVENTS": nvtx}))
    assert trace.sql("SELECT name, kind FROM slices ORDER BY ts_ns").rows == [
        ("profrun.step#0", "step"),
        ("profrun.step#1", "step"),
        ("profrun.step#2", "range"),
    ]
    assert issues(trace)["step-unended"] == 1


def test_a_table_that_does_not_say_when_its_records_began(tmp_path: Path) -> None:
    api = {key: value for key, value in call(0, 5, corr=1).items() if key != "start"}
    tables = {KERNEL: [kernel(10, 20, corr=1)], RUNTIME: [api, api]}
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k", "cudaLaunchKernel"]))
    assert trace.sql("SELECT kind FROM slices").rows == [("kernel",)]
    assert issues(trace)["record-unplaced"] == 2


def test_bytes_where_text_must_be(tmp_path: Path) -> None:
    """SQLite keeps what was written, whatever the column's type."""
    tables = {
        KERNEL: [kernel(10, 20)],
        "META_DATA_EXPORT": [{"name": "EXPORT_PRODUCT_VERSION", "value": b"\xff\x00"}],
        "TARGET_INFO_SYSTEM_ENV": [{"name": "Hostname", "value": b"\xff"}],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": "now"}],
    }
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k"]))
    assert (trace.meta["tool_version"], trace.meta["epoch_ns"]) == (None, None)
    assert trace.sql("SELECT host FROM processes").scalar() is None


def test_a_rank_that_nothing_states_is_marked(tmp_path: Path) -> None:
    one = make_export(tmp_path / "a", {KERNEL: [kernel(0, 1, pid=7)]}, ["k"])
    two = make_export(tmp_path / "b", {KERNEL: [kernel(0, 1, pid=8)]}, ["k"])
    trace = trace_of(tmp_path, one, two)
    assert trace.sql("SELECT rank, rank_guessed FROM processes ORDER BY 1").rows == [(0, True), (1, True)]
    assert issues(trace)["rank-guessed"] == 2


def test_the_number_of_a_gpu_on_its_host_is_its_place_on_the_bus(tmp_path: Path) -> None:
    """As nvidia-smi counts; the ids of nsys have another order, and ordinals are those of a process."""
    tables = {
        KERNEL: [kernel(0, 1, pid=7)],
        "TARGET_INFO_GPU": [
            {"id": 0, "name": "A100", "cuDevice": 1, "busLocation": "0000:c1:00.0"},
            {"id": 1, "name": "A100", "cuDevice": 0, "busLocation": "0000:41:00.0"},
            {"id": 2, "name": "A100", "cuDevice": 2, "busLocation": "0000:03:00.0"},
        ],
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": 0, "cudaId": 0, "pid": 7}],
    }
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, ["k"]))
    assert trace.sql("SELECT ordinal, host_ordinal FROM devices").rows == [(0, 2)]


def test_a_guessed_gpu_has_no_uuid_and_the_hook_says_which_it_is(tmp_path: Path) -> None:
    """nsys before 2025.1, and a process that saw GPU 1 of two as its first: ``cuDevice`` says GPU 0."""
    tables = {
        KERNEL: [kernel(0, 1, pid=7)],
        "TARGET_INFO_GPU": [
            {"id": 0, "name": "H200", "cuDevice": 0, "uuid": "606d", "busLocation": "0000:00:06.0"},
            {"id": 1, "name": "H200", "cuDevice": 1, "uuid": "6ea3", "busLocation": "0000:00:07.0"},
        ],
    }
    alone = tables | {"TARGET_INFO_GPU": tables["TARGET_INFO_GPU"][:1]}
    device = {"vendor": "nvidia", "ordinal": 0, "name": "H200", "uuid": "GPU-6ea3"}
    hook = {"rank": 0, "pid": 7, "steps": [], "device": device}
    for name, given, steps, expected in (
        ("guessed", tables, None, ("H200", None, None)),
        ("another process", tables, hook | {"pid": 8}, ("H200", None, None)),
        ("damaged", tables, hook | {"device": "H200"}, ("H200", None, None)),
        ("hook", tables, hook, ("H200", "6ea3", 1)),
        ("only one", alone, None, ("H200", "606d", 0)),
    ):
        folder = tmp_path / name
        folder.mkdir()
        if steps:
            (folder / "steps.json").write_text(json.dumps(steps))
        trace = trace_of(folder, make_export(folder / "x", given, ["k"]))
        assert trace.sql("SELECT name, uuid, host_ordinal FROM devices").rows == [expected], name


@pytest.mark.parametrize("parquet", [False, True])
def test_an_empty_name_is_a_missing_one(tmp_path: Path, parquet: bool) -> None:
    tables = {
        KERNEL: [kernel(100, 200, corr=5)],
        RUNTIME: [call(10, 20, corr=5)],
        "NVTX_EVENTS": [push_pop(5, 30, "")],
        "PROCESSES": [{"globalPid": gpid(7), "pid": 7, "name": ""}],
    }
    export = make_export(tmp_path / "x", tables, ["", ""])
    if parquet:
        folder = tmp_path / "parquet"
        folder.mkdir()
        with contextlib.closing(sqlite3.connect(export)) as con:
            for table in (*tables, "StringIds"):
                cursor = con.execute(f'SELECT * FROM "{table}"')
                names = [column[0] for column in cursor.description]
                rows = [dict(zip(names, row, strict=True)) for row in cursor]
                (folder / "rows.json").write_text(json.dumps(rows))
                duckdb.execute(f"COPY (FROM '{folder}/rows.json') TO '{folder}/{table}.parquet'")
        (folder / "rows.json").unlink()
        export = folder
    trace = trace_of(tmp_path, export)
    found = dict(trace.sql("SELECT kind, name FROM slices").rows)
    assert found == {"kernel": "unknown kernel", "api": "unknown API call", "range": "unnamed range"}
    assert trace.sql("SELECT name FROM processes").rows == [(None,)]
