"""What the columns mean: one small recording, one question, the expected table."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from profrun.errors import InputError
from tests.collectors.rocprof.kit import GUID, Rocpd, issue_codes, trace_of


def test_a_step_with_a_range_calls_and_kernels(tmp_path: Path) -> None:
    """Markers and calls of a thread nest; the kernel belongs to the step through its launch."""
    db = Rocpd(tmp_path / "7_results.db")
    db.basics()
    db.region("MARKER_CORE_RANGE_API", "roctxRangePushA", 100, 900, 1, message="profrun.step#4")
    db.region("MARKER_CORE_RANGE_API", "roctxThreadRangeA", 200, 600, 2, message="forward")
    db.region("HIP_RUNTIME_API_EXT", "hipLaunchKernel", 300, 400, 3)
    db.region("HIP_RUNTIME_API_EXT", "hipGraphLaunch", 650, 700, 4)
    db.region("MARKER_CONTROL_API", "roctxProfilerPause", 800, 810, 5)
    db.kernel(1000, 1500, 3)
    db.kernel(1600, 1700, 4, dispatch=2)
    db.kernel(1700, 1900, 4, dispatch=3)
    db.kernel(50, 60, 77, dispatch=4)
    db.done()
    trace = trace_of(tmp_path / "7_results.db", tmp_path / "t")
    host = trace.sql(
        "SELECT s.kind, s.name, s.depth, p.name FROM slices s LEFT JOIN slices p ON p.slice = s.parent "
        "WHERE s.kind IN ('step', 'range', 'api') ORDER BY s.ts_ns"
    ).rows
    assert host == [
        ("step", "profrun.step#4", 0, None),
        ("range", "forward", 1, "profrun.step#4"),
        ("api", "hipLaunchKernel", 2, "forward"),
        ("api", "hipGraphLaunch", 1, "profrun.step#4"),
        ("api", "roctxProfilerPause", 1, "profrun.step#4"),
    ]
    kernels = trace.sql(
        "SELECT s.ts_ns, s.name, l.name FROM slices s LEFT JOIN slices l ON l.slice = s.launch "
        "WHERE s.kind = 'kernel' ORDER BY s.ts_ns"
    ).rows
    assert kernels == [
        (50, "gemm(float*)", None),
        (1000, "gemm(float*)", "hipLaunchKernel"),
        (1600, "gemm(float*)", "hipGraphLaunch"),
        (1700, "gemm(float*)", "hipGraphLaunch"),
    ]
    assert "no_launch" in issue_codes(trace)


def test_kernel_columns(tmp_path: Path) -> None:
    """100 x 8 x 3 work-items in groups of 64 x 4 x 1 are 2 x 2 x 3 blocks; agent 2 is the second GPU."""
    db = Rocpd(tmp_path / "k.db")
    db.basics()
    db.kernel(10, 20, 1)
    db.done()
    trace = trace_of(tmp_path / "k.db", tmp_path / "t")
    assert trace.sql("SELECT * EXCLUDE slice FROM kernels").dicts() == [
        {
            "grid_x": 2,
            "grid_y": 2,
            "grid_z": 3,
            "block_x": 64,
            "block_y": 4,
            "block_z": 1,
            "registers": 128,
            "smem_static": 1024,
            "smem_dynamic": 512,
            "smem": 1536,
            "scratch": 8,
            "est_occupancy": None,
            "graph": None,
            "graph_node": None,
        }
    ]
    assert trace.sql("SELECT ordinal, vendor, name, arch, sm_count, smem_per_sm FROM devices").rows == [
        (1, "amd", "AMD Instinct MI300X", "gfx942", 304, 65536)
    ]


def test_copies_have_bytes_directions_and_a_gpu(tmp_path: Path) -> None:
    db = Rocpd(tmp_path / "c.db")
    db.basics()
    ways = (
        ("HOST_TO_DEVICE", 0, 1),
        ("DEVICE_TO_HOST", 2, 0),
        ("DEVICE_TO_DEVICE", 1, 1),
        ("DEVICE_TO_DEVICE", 1, 2),
    )
    for number, (way, source, target) in enumerate(ways):
        event = db.event("MEMORY_COPY", number + 1)
        name = db.text(f"MEMORY_COPY_{way}")
        db.row(
            "rocpd_memory_copy",
            pid=7,
            start=10 * number,
            end=10 * number + 5,
            name_id=name,
            size=100 + number,
            src_agent_id=source,
            dst_agent_id=target,
            stream_id=3,
            event_id=event,
        )
    db.done()
    trace = trace_of(tmp_path / "c.db", tmp_path / "t")
    rows = trace.sql(
        "SELECT direction, bytes, src_kind, dst_kind, ordinal FROM slices JOIN copies USING (slice) "
        "JOIN tracks USING (track) JOIN devices USING (device) ORDER BY ts_ns"
    ).rows
    assert rows == [
        ("HtoD", 100, "host", "device", 0),
        ("DtoH", 101, "device", "host", 1),
        ("DtoD", 102, "device", "device", 0),
        ("PtoP", 103, "device", "device", 1),
    ]


def test_start_and_stop_ranges_without_a_thread_may_overlap(tmp_path: Path) -> None:
    db = Rocpd(tmp_path / "r.db")
    db.basics()
    db.region("MARKER_CORE_API", "roctxRangeStartA", 10, 50, 1, tid=0, message="one")
    db.region("MARKER_CORE_API", "roctxRangeStartA", 30, 80, 2, tid=0, message="two")
    db.done()
    trace = trace_of(tmp_path / "r.db", tmp_path / "t")
    rows = trace.sql(
        "SELECT s.name, t.kind, s.parent FROM slices s JOIN tracks t USING (track) ORDER BY 1"
    ).rows
    assert rows == [("one", "range", None), ("two", "range", None)]
    assert "crossing_slices" not in issue_codes(trace)


def test_a_mark_is_an_instant(tmp_path: Path) -> None:
    db = Rocpd(tmp_path / "m.db")
    db.basics()
    track = db.row("rocpd_track", pid=7, tid=7, name_id=db.text("roctxMarkA"))
    db.row("rocpd_sample", track_id=track, timestamp=42, event_id=db.event("MARKER_CORE_API", 1, "here"))
    db.row("rocpd_sample", track_id=track, timestamp=43, event_id=db.event("POWER", 2))
    db.done()
    trace = trace_of(tmp_path / "m.db", tmp_path / "t")
    assert trace.sql("SELECT kind, name, ts_ns, dur_ns FROM slices").rows == [("range", "here", 42, 0)]
    assert "samples_not_read" in issue_codes(trace)


def test_counters_are_summed_over_instances(tmp_path: Path) -> None:
    db = Rocpd(tmp_path / "p.db")
    db.basics()
    event = db.kernel(10, 20, 1, dispatch=9)
    pmc = db.row("rocpd_info_pmc", name="SQ_WAVES", units="")
    for value in (3.0, 4.5):
        db.row("rocpd_pmc_event", event_id=event, pmc_id=pmc, value=value)
    db.done()
    trace = trace_of(tmp_path / "p.db", tmp_path / "t")
    rows = trace.sql("SELECT s.name, m.name, value, unit FROM metrics m JOIN slices s USING (slice)").rows
    assert rows == [("gemm(float*)", "SQ_WAVES", 7.5, "1")]
    assert trace.meta["replayed"] is True


def test_memory_is_a_running_sum_per_gpu(tmp_path: Path) -> None:
    db = Rocpd(tmp_path / "a.db")
    db.basics()
    db.kernel(1, 2, 1)
    for op, level, end, address, size in (
        ("ALLOC", "REAL", 10, 4096, 1000),
        ("ALLOC", "REAL", 20, 8192, 24),
        ("FREE", "REAL", 30, 4096, 0),
        ("ALLOC", "SCRATCH", 35, 0, 64),
        ("FREE", "REAL", 40, 77, 0),
    ):
        db.row(
            "rocpd_memory_allocate",
            pid=7,
            agent_id=2,
            type=op,
            level=level,
            start=end - 1,
            end=end,
            address=address,
            size=size,
            event_id=db.event("MEMORY_ALLOCATION", end),
        )
    db.done()
    trace = trace_of(tmp_path / "a.db", tmp_path / "t")
    assert trace.sql("SELECT ts_ns, value, unit FROM counters ORDER BY ts_ns").rows == [
        (10, 1000.0, "byte"),
        (20, 1024.0, "byte"),
        (30, 24.0, "byte"),
    ]
    assert trace.sql("SELECT kind, name, dur_ns FROM slices WHERE kind = 'overhead'").rows == [
        ("overhead", "scratch memory alloc", 1)
    ]
    assert "allocation_unknown" in issue_codes(trace)


def test_ranks_and_blocking_are_all_that_is_read_of_an_environment(tmp_path: Path) -> None:
    paths = []
    for rank in (1, 0):
        db = Rocpd(tmp_path / f"{rank}.db", guid=f"{rank}{GUID[1:]}")
        db.basics(environment={"RANK": str(rank), "HIP_LAUNCH_BLOCKING": "1"})
        db.kernel(10 + rank, 20 + rank, 1)
        db.done()
        paths.append(tmp_path / f"{rank}.db")
    trace = trace_of(paths, tmp_path / "t")
    rows = trace.sql(
        "SELECT rank, ts_ns, host, p.name FROM processes p JOIN tracks t USING (process) JOIN slices USING "
        "(track) WHERE t.kind = 'stream' ORDER BY rank"
    ).rows
    assert rows == [(0, 10, None, "train"), (1, 11, None, "train")]
    assert trace.meta["launch_blocking"] is True
    assert "rank_guessed" not in issue_codes(trace)
    assert b"s3cret" not in b"".join(item.read_bytes() for item in (tmp_path / "t").iterdir())


def test_ranks_by_folder_where_nothing_else_says(tmp_path: Path) -> None:
    for rank in (0, 1):
        folder = tmp_path / "raw" / f"rank{rank}" / "host"
        folder.mkdir(parents=True)
        row = '"KERNEL_DISPATCH","Agent 1",1,1,5,1,"k",1,10,20,64,1,1,64,1,1\n'
        (folder / f"{90 - rank}_kernel_trace.csv").write_text(CSV + row)
    trace = trace_of(sorted((tmp_path / "raw").rglob("*.csv")), tmp_path / "t")
    assert trace.sql("SELECT rank, pid FROM processes ORDER BY rank").rows == [(0, 90), (1, 89)]
    assert "rank_guessed" not in issue_codes(trace)


def test_a_process_without_gpu_work_is_noted_and_left_out(tmp_path: Path) -> None:
    busy, idle = Rocpd(tmp_path / "b.db"), Rocpd(tmp_path / "i.db", guid=f"1{GUID[1:]}")
    for db in (busy, idle):
        db.basics()
        db.region("HIP_RUNTIME_API_EXT", "hipInit", 1, 2, 1)
    busy.kernel(10, 20, 1)
    busy.done()
    idle.done()
    trace = trace_of([tmp_path / "b.db", tmp_path / "i.db"], tmp_path / "t")
    assert trace.sql("SELECT count(*) FROM processes").scalar() == 1
    assert trace.sql("SELECT count(*) FROM slices WHERE kind = 'api'").scalar() == 1
    assert trace.sql("SELECT count FROM issues WHERE code = 'idle_processes'").scalar() == 1


def test_one_database_given_twice_counts_once(tmp_path: Path) -> None:
    db = Rocpd(tmp_path / "b.db")
    db.basics()
    db.kernel(10, 20, 1)
    db.done()
    (tmp_path / "copy.db").write_bytes((tmp_path / "b.db").read_bytes())
    trace = trace_of([tmp_path / "b.db", tmp_path / "copy.db"], tmp_path / "t")
    assert trace.sql("SELECT count(*) FROM slices").scalar() == 1
    assert "same_process_twice" in issue_codes(trace)


def test_plain_tables_with_a_guid_column(tmp_path: Path) -> None:
    """A merged database may hold several processes in tables without suffix: ids repeat, guids tell."""
    for guid in (GUID, f"1{GUID[1:]}"):
        db = Rocpd(tmp_path / f"{guid}.db", guid=guid, plain=True)
        db.basics()
        db.kernel(10, 20 + int(guid[0]), 1)
        db.done()
    merged = sqlite3.connect(tmp_path / f"{GUID}.db")
    merged.execute(f"ATTACH '{tmp_path}/1{GUID[1:]}.db' AS other")
    merged.commit()
    for (table,) in merged.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
        ddl = merged.execute("SELECT sql FROM main.sqlite_master WHERE name = ?", [table]).fetchone()[0]
        merged.execute(
            f'CREATE TABLE m_{table} AS SELECT * FROM main."{table}" UNION ALL SELECT * FROM other."{table}"'
        )
        assert ddl
        merged.execute(f'DROP TABLE main."{table}"')
        merged.execute(f'ALTER TABLE m_{table} RENAME TO "{table}"')
    merged.commit()
    merged.close()
    trace = trace_of(tmp_path / f"{GUID}.db", tmp_path / "t")
    assert trace.sql("SELECT dur_ns FROM slices ORDER BY 1").rows == [(10,), (11,)]
    assert trace.sql("SELECT count(*) FROM processes").scalar() == 2


@pytest.mark.parametrize("version", ["4.1.0", "2", "x", ""])
def test_unknown_majors_are_refused(version: str, tmp_path: Path) -> None:
    db = Rocpd(tmp_path / "v.db", version=version)
    db.basics()
    db.done()
    with pytest.raises(InputError, match="schema"):
        trace_of(tmp_path / "v.db", tmp_path / "t")


def test_bad_times_are_dropped_and_counted(tmp_path: Path) -> None:
    db = Rocpd(tmp_path / "t.db")
    db.basics()
    times = ((10, 20), (30, 29), (-5, 5), (10**18, 10**18 + 7), (50, 50))
    for number, (start, end) in enumerate(times):
        db.kernel(start, end, 1, dispatch=number)
    db.done()
    trace = trace_of(tmp_path / "t.db", tmp_path / "t")
    assert trace.sql("SELECT dur_ns FROM slices ORDER BY ts_ns").rows == [(10,), (0,), (7,)]
    rows = dict(trace.sql("SELECT code, count FROM issues WHERE code LIKE '%time' OR code LIKE 'ends%'").rows)
    assert rows == {"negative_time": 1, "ends_before_start": 1}
    assert trace.sql("SELECT max(slice) FROM slices").scalar() == 2


CSV = (
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Name","Correlation_Id",'
    '"Start_Timestamp","End_Timestamp","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X",'
    '"Grid_Size_Y","Grid_Size_Z"\n'
)


def test_agent_info_gives_ordinals(tmp_path: Path) -> None:
    """'Agent 4' is a logical node; the agent table says that it is the first GPU, and what it is."""
    (tmp_path / "12_kernel_trace.csv").write_text(
        CSV + '"KERNEL_DISPATCH","Agent 4",1,1,5,1,"k, ""q""",1,10,20,64,1,1,65,1,1\n'
        '"KERNEL_DISPATCH","GPU 1",1,1,5,2,"k2",1,30,40,64,1,1,64,1,1\n'
    )
    (tmp_path / "12_agent_info.csv").write_text(
        '"Node_Id","Logical_Node_Id","Agent_Type","Cu_Count","Wave_Front_Size","Name","Product_Name"\n'
        '0,0,"CPU",64,0,"EPYC","EPYC"\n4,4,"GPU",228,64,"gfx942","AMD Instinct MI300A"\n'
        '6,5,"GPU",228,64,"gfx942","AMD Instinct MI300A"\n'
    )
    trace = trace_of(tmp_path, tmp_path / "t")
    rows = trace.sql(
        "SELECT s.name, d.ordinal, d.name, d.sm_count FROM slices s JOIN tracks USING (track) "
        "JOIN devices d USING (device) ORDER BY s.ts_ns"
    ).rows
    assert rows == [('k, "q"', 0, "AMD Instinct MI300A", 228), ("k2", 1, "AMD Instinct MI300A", 228)]
    assert trace.sql("SELECT grid_x FROM kernels ORDER BY slice").rows == [(2,), (1,)]
    assert trace.sql("SELECT pid FROM processes").scalar() == 12
    assert "device_ordinal_guessed" not in issue_codes(trace)


def test_type_relative_agents_say_their_ordinal(tmp_path: Path) -> None:
    (tmp_path / "12_kernel_trace.csv").write_text(
        CSV + '"KERNEL_DISPATCH","GPU 3",1,1,5,1,"k",1,10,20,64,1,1,64,1,1\n'
    )
    trace = trace_of(tmp_path / "12_kernel_trace.csv", tmp_path / "t")
    assert trace.sql("SELECT ordinal FROM devices").rows == [(3,)]
    assert "device_ordinal_guessed" not in issue_codes(trace)


def test_rccl_kernels_are_collectives(tmp_path: Path) -> None:
    """The generic kernel says nothing: the RCCL call round its launch does."""
    db = Rocpd(tmp_path / "n.db")
    db.basics()
    names = (
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_AllGather_RING_LL(x)",
    )
    for number, name in enumerate(names):
        db.row("rocpd_info_kernel_symbol", id=10 + number, display_name=name, kernel_name=name)
    db.region("RCCL_API", "ncclAllReduce", 100, 200, 1)
    db.region("HIP_RUNTIME_API_EXT", "hipExtLaunchKernel", 120, 150, 2)
    db.kernel(300, 400, 2, kernel_id=10)
    db.kernel(500, 600, 99, dispatch=2, kernel_id=11)
    db.kernel(700, 800, 98, dispatch=3, kernel_id=10)
    db.done()
    trace = trace_of(tmp_path / "n.db", tmp_path / "t")
    rows = trace.sql("SELECT s.ts_ns, op FROM collectives JOIN slices s USING (slice) ORDER BY 1").rows
    assert rows == [(300, "allreduce"), (500, "allgather"), (700, "unknown")]


def _tool_json(records: dict[str, object], **more: object) -> str:
    process = {
        "metadata": {"pid": 5, "command": ["/bin/app", "--key=s3cret"]},
        "agents": [{"id": {"handle": 900}, "type": 2, "name": "gfx90a", "logical_node_type_id": 1}],
        "strings": {
            "buffer_records": [
                {"kind": "NONE", "operations": []},
                {"kind": "HIP_API", "operations": ["none", "hipLaunchKernel"]},
                {"kind": "MEMORY_COPY", "operations": ["none", "MEMORY_COPY_DEVICE_TO_HOST"]},
                {"kind": "MARKER_CORE_API", "operations": ["roctxMarkA", "roctxRangePushA"]},
            ],
            "marker_api": [{"key": 3, "value": "forward"}],
        },
        "counters": [{"id": {"handle": 1}, "name": "SQ_WAVES"}],
        "kernel_symbols": [{"kernel_id": 8, "formatted_kernel_name": 0, "demangled_kernel_name": "k.kd"}],
        "buffer_records": records,
        **more,
    }
    return json.dumps({"rocprofiler-sdk-tool": [process]})


def _times(start: int, stop: int, corr: int, **more: Any) -> dict[str, Any]:
    return {
        "start_timestamp": start,
        "end_timestamp": stop,
        "correlation_id": {"internal": corr, "external": 0},
        "thread_id": 6,
        **more,
    }


def test_results_json_sections(tmp_path: Path) -> None:
    info = {
        "agent_id": {"handle": 900},
        "queue_id": {"handle": 2**64 - 1},
        "kernel_id": 8,
        "dispatch_id": 1,
        "workgroup_size": {"x": 64, "y": 1, "z": 1},
        "grid_size": {"x": 130, "y": 1, "z": 1},
    }
    text = _tool_json(
        {
            "kernel_dispatch": [_times(500, 900, 7, dispatch_info=info, stream_id={"handle": 4})],
            "hip_api": [_times(100, 200, 7, kind=1, operation=1)],
            "marker_api": [_times(50, 300, 3, kind=3, operation=1), _times(310, 310, 4, kind=3, operation=0)],
            "memory_copy": [
                _times(
                    950,
                    960,
                    8,
                    kind=2,
                    operation=1,
                    bytes=64,
                    src_agent_id={"handle": 900},
                    stream_id={"handle": 4},
                )
            ],
            "ompt": [],
            "page_migration": [{"a": 1}],
        },
        callback_records={
            "counter_collection": [
                {
                    "dispatch_data": _times(500, 900, 7, dispatch_info=info),
                    "records": [
                        {"counter_id": {"handle": 1}, "value": 2.0},
                        {"counter_id": {"handle": 1}, "value": 3},
                    ],
                }
            ]
        },
    )
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "5_results.json").write_text(text)
    trace = trace_of(tmp_path / "raw", tmp_path / "t")
    rows = trace.sql(
        "SELECT s.kind, s.name, l.name FROM slices s LEFT JOIN slices l ON l.slice = s.launch ORDER BY "
        "s.ts_ns"
    ).rows
    assert rows == [
        ("range", "forward", None),
        ("api", "hipLaunchKernel", None),
        ("api", "roctxMarkA", None),
        ("kernel", "k", "hipLaunchKernel"),
        ("memcpy", "MEMORY_COPY_DEVICE_TO_HOST", None),
    ]
    assert trace.sql("SELECT grid_x FROM kernels").rows == [(3,)]
    assert trace.sql("SELECT name, value FROM metrics").rows == [("SQ_WAVES", 5.0)]
    assert trace.sql("SELECT direction, bytes FROM copies").rows == [("DtoH", 64)]
    assert trace.sql("SELECT ordinal, arch FROM devices").rows == [(1, "gfx90a")]
    assert "records_not_read" in issue_codes(trace)
    assert b"s3cret" not in b"".join(item.read_bytes() for item in (tmp_path / "t").iterdir())


def test_rocprof_v2_file_plugin(tmp_path: Path) -> None:
    """No public recording was found; this is the documented header."""
    header = (
        "Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,"
        "Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID,SQ_WAVES\n"
    )
    rows = '0,2,1,50,51,1024,256,512,0,16,8,32,64,"gemm(float*, int) (.kd)",100,150,7,16\n'
    (tmp_path / "results_50.csv").write_text(header + rows)
    trace = trace_of(tmp_path / "results_50.csv", tmp_path / "t")
    assert trace.meta["source"] == "rocprofv2-csv"
    assert trace.sql("SELECT name, ts_ns, dur_ns FROM slices").rows == [("gemm(float*, int)", 100, 50)]
    assert dict(trace.sql("SELECT name, value FROM metrics").rows) == {
        "SQ_WAVES": 16.0,
        "Grid_Size": 1024.0,
        "Workgroup_Size": 256.0,
    }
    assert trace.sql("SELECT registers, smem FROM kernels").rows == [(24, 512)]
    assert trace.sql("SELECT pid FROM processes").scalar() == 50


def test_rocpd_convert_to_csv(tmp_path: Path) -> None:
    """`rocpd convert` writes other capitals, a leading Guid, and graph columns in new releases."""
    header = (
        "Guid,Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,"
        "Start_Timestamp,End_Timestamp,Duration,Lds_Block_Size,Scratch_Size,Vgpr_Count,Accum_Vgpr_Count,"
        "Sgpr_Count,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z,"
        "Graph_Exec_Id,Graph_Node_Id\n"
    )
    row = f'"{GUID}","KERNEL_DISPATCH","Agent 4",1,2,5,1,9,"k",3,10,20,10,256,16,8,4,32,64,2,1,128,3,1,6,2\n'
    (tmp_path / "8_kernel_trace.csv").write_text(header + row)
    trace = trace_of(tmp_path / "8_kernel_trace.csv", tmp_path / "t")
    columns = "grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, smem, scratch, graph, graph_node"
    assert trace.sql(f"SELECT {columns} FROM kernels").rows == [(2, 2, 1, 64, 2, 1, 12, 256, 16, 6, 2)]
    assert trace.sql("SELECT kind, native_id FROM tracks").rows == [("stream", 2)]
