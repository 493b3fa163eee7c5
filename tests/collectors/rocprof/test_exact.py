"""Every real AMD file: counts and summed durations equal an independent count by sqlite3, csv or json."""

from __future__ import annotations

import csv
import gzip
import json
import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from profrun.errors import InputError
from tests.collectors.rocprof.kit import as_recorded, issue_codes, summed, totals
from tests.conftest import shared_data

pytestmark = pytest.mark.thorough

ROCPD = (
    "amd/rocpd-batched-gemm-mi300x/ck_bmm/37ca13315e70/28_results.db",
    "amd/rocpd-batched-gemm-mi300x/bmm/37ca13315e70/21_results.db",
)


def _sql(path: Path, query: str) -> list[tuple[Any, ...]]:
    con = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        return con.execute(query).fetchall()
    finally:
        con.close()


@pytest.mark.parametrize("name", ROCPD)
def test_rocpd_equals_the_databases_own_views(name: str, tmp_path: Path) -> None:
    path = shared_data(name)
    trace = as_recorded(path, tmp_path / "t")
    kernels = _sql(path, "SELECT count(*), sum(duration) FROM kernels")[0]
    regions = _sql(path, "SELECT count(*), sum(duration) FROM regions")[0]
    assert totals(trace) == {"kernel": kernels, "api": regions}

    by_name = _sql(path, "SELECT name, count(*), sum(duration) FROM kernels GROUP BY name ORDER BY name")
    ours = (
        "SELECT name, count(*), sum(dur_ns)::BIGINT FROM slices WHERE kind = 'kernel' "
        "GROUP BY name ORDER BY name"
    )
    assert trace.sql(ours).rows == by_name

    joined = _sql(
        path,
        "SELECT k.start, r.name, r.start FROM kernels k JOIN regions r USING (guid, stack_id) ORDER BY "
        "k.start",
    )
    launches = (
        "SELECT s.ts_ns, l.name, l.ts_ns FROM slices s JOIN slices l ON l.slice = s.launch ORDER BY s.ts_ns"
    )
    assert trace.sql(launches).rows == joined
    assert len(joined) == kernels[0]

    grids = _sql(
        path,
        "SELECT start, (grid_x + workgroup_x - 1) / workgroup_x, (grid_y + workgroup_y - 1) / workgroup_y, "
        "(grid_z + workgroup_z - 1) / workgroup_z, workgroup_x * workgroup_y * workgroup_z, lds_size, "
        "scratch_size, vgpr_count + accum_vgpr_count FROM kernels ORDER BY start",
    )
    ours = (
        "SELECT ts_ns, grid_x, grid_y, grid_z, block_x * block_y * block_z, smem, scratch, "
        "registers FROM slices JOIN kernels USING (slice) ORDER BY ts_ns"
    )
    assert trace.sql(ours).rows == grids


def test_grid_in_blocks_is_what_the_launch_was_given(tmp_path: Path) -> None:
    """The recorded arguments of hipLaunchKernel say {z=1, y=128, x=2}; the dispatch says 512 x 128 items "
    "of 256."""
    path = shared_data(ROCPD[0])
    stated = _sql(
        path,
        "SELECT E.stack_id, A.value FROM rocpd_arg A JOIN rocpd_event E ON E.id = A.event_id WHERE A.name = "
        "'numBlocks'",
    )
    blocks = {
        stack: tuple(int(re.search(rf"{axis}=(\d+)", text)[1]) for axis in "xyz")  # type: ignore[index]
        for stack, text in stated
    }
    trace = as_recorded(path, tmp_path / "t")
    rows = trace.sql("SELECT correlation, grid_x, grid_y, grid_z FROM slices JOIN kernels USING (slice)").rows
    compared = [(blocks[row[0]], tuple(row[1:])) for row in rows if row[0] in blocks]
    assert len(compared) == 150
    assert all(said == got for said, got in compared)


def test_two_databases_are_two_processes_on_one_clock(tmp_path: Path) -> None:
    paths = [shared_data(name) for name in ROCPD]
    trace = as_recorded(paths, tmp_path / "t")
    assert trace.sql("SELECT pid FROM processes ORDER BY pid").rows == [(21,), (28,)]
    counts = [_sql(path, "SELECT count(*), sum(duration) FROM kernels")[0] for path in paths]
    assert totals(trace)["kernel"] == tuple(map(sum, zip(*counts, strict=True)))
    assert "clocks_not_aligned" not in issue_codes(trace)
    assert trace.meta["clock"] == "boottime"
    assert trace.meta["epoch_ns"] is None


def test_nothing_personal_is_imported(tmp_path: Path) -> None:
    path = shared_data(ROCPD[0])
    trace = as_recorded(path, tmp_path / "t")
    ((machine, host),) = _sql(path, "SELECT machine_id, hostname FROM rocpd_info_node")
    ((environment, command),) = _sql(path, "SELECT environment, command FROM rocpd_info_process")
    secrets = [
        machine,
        host,
        *(str(value) for value in json.loads(environment).values() if len(str(value)) > 8),
    ]
    secrets += [word for word in command.split()[1:] if len(word) > 4]
    everything = b"".join(item.read_bytes() for item in (tmp_path / "t").iterdir())
    texts = [
        str(row)
        for table in ("processes", "devices", "tracks", "issues")
        for row in trace.sql(f"FROM {table}").rows
    ]
    assert secrets
    for secret in secrets:
        assert secret.encode() not in everything
        assert not any(secret in text for text in texts)


def test_results_json_equals_json(tmp_path: Path) -> None:
    path = shared_data("amd/rocprofv3-json-mi350-aorta/908_results.json.gz")
    with gzip.open(path, "rt") as file:
        run = json.load(file)["rocprofiler-sdk-tool"][0]
    rows = run["buffer_records"]["kernel_dispatch"]
    trace = as_recorded(path, tmp_path / "t")
    expected = summed((row["start_timestamp"], row["end_timestamp"]) for row in rows)
    assert totals(trace) == {"kernel": expected}

    names = {item["kernel_id"]: item["formatted_kernel_name"] for item in run["kernel_symbols"]}
    wanted = Counter(re.sub(r"\.kd$", "", names[row["dispatch_info"]["kernel_id"]]) for row in rows)
    assert dict(trace.sql("SELECT name, count(*) FROM slices GROUP BY name").rows) == dict(wanted)

    queues = Counter(row["dispatch_info"]["queue_id"]["handle"] for row in rows)
    ours = "SELECT native_id, count(*) FROM slices JOIN tracks USING (track) GROUP BY native_id"
    assert dict(trace.sql(ours).rows) == dict(queues)

    first = min(rows, key=lambda row: row["dispatch_info"]["dispatch_id"])["dispatch_info"]
    blocks = [-(-first["grid_size"][axis] // first["workgroup_size"][axis]) for axis in "xyz"]
    ours = "SELECT grid_x, grid_y, grid_z FROM slices JOIN kernels USING (slice) ORDER BY ts_ns LIMIT 1"
    assert list(trace.sql(ours).rows[0]) == blocks
    assert trace.sql("SELECT ordinal, name, arch, sm_count FROM devices").rows == [
        (0, "AMD Instinct MI350X", "gfx950", 256)
    ]


CSV_KERNELS = (
    "amd/rocprofv3-csv-strix-halo-llamacpp/decode_kernel_trace.csv",
    "amd/rocprofv3-docs-samples-rocm7/kernel_trace_truncated.csv",
    "amd/rocprofv3-docs-samples-rocm6_3/kernel_trace.csv",
    "amd/rocprofv3-docs-samples-rocm7/kernel_trace.csv",
)
CSV_API = (
    "amd/rocprofv3-csv-strix-halo-llamacpp/decode_hip_api_trace.csv",
    "amd/rocprofv3-docs-samples-rocm6_3/hip_runtime_trace.csv",
    "amd/rocprofv3-docs-samples-rocm7/rccl_trace.csv",
    "amd/rocprofv3-docs-samples-rocm6_3/hip_compile_trace.csv",
    "amd/rocprofv3-docs-samples-rocm6_3/hsa_api_trace.csv",
    "amd/rocprofv3-docs-samples-rocm7/hip_compile_trace.csv",
    "amd/rocprofv3-docs-samples-rocm7/hip_runtime_trace.csv",
    "amd/rocprofv3-docs-samples-rocm7/hip_trace.csv",
    "amd/rocprofv3-docs-samples-rocm7/hsa_api_trace.csv",
    "amd/rocprofv3-docs-samples-rocm7/hsa_core_api_trace.csv",
    "amd/rocprofv3-docs-samples-rocm7/rocdecode_api_trace.csv",
    "amd/rocprofv3-docs-samples-rocm7/rocjpeg_api_trace.csv",
    "amd/rocprofv3-docs-samples-rocm7/rocpd-to-csv.csv",
)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [
            row
            for row in csv.DictReader(file)
            if (row.get("End_Timestamp") or row.get("EndNs") or "").isdigit()
        ]


@pytest.mark.parametrize("name", CSV_KERNELS)
def test_csv_kernels_equal_csv(name: str, tmp_path: Path) -> None:
    path = shared_data(name)
    rows = _rows(path)
    trace = as_recorded(path, tmp_path / "t")
    assert totals(trace) == {
        "kernel": summed((int(row["Start_Timestamp"]), int(row["End_Timestamp"])) for row in rows)
    }
    wanted = sorted(
        (
            int(row["Start_Timestamp"]),
            row["Kernel_Name"],
            *(-(-int(row[f"Grid_Size_{axis}"]) // int(row[f"Workgroup_Size_{axis}"])) for axis in "XYZ"),
            int(row.get("LDS_Block_Size") or row["Group_Segment_Size"]),
        )
        for row in rows
    )
    ours = (
        "SELECT ts_ns, name, grid_x, grid_y, grid_z, smem FROM slices JOIN kernels USING (slice) ORDER BY ALL"
    )
    assert trace.sql(ours).rows == wanted


@pytest.mark.parametrize("name", CSV_API)
def test_csv_calls_equal_csv(name: str, tmp_path: Path) -> None:
    path = shared_data(name)
    rows = _rows(path)
    trace = as_recorded(path, tmp_path / "t")
    spans = summed((int(row["Start_Timestamp"]), int(row["End_Timestamp"])) for row in rows)
    assert totals(trace) == {"api": spans}
    assert dict(trace.sql("SELECT name, count(*) FROM slices GROUP BY name").rows) == dict(
        Counter(row["Function"] for row in rows)
    )


def test_csv_family_links_launches_and_says_what_is_missing(tmp_path: Path) -> None:
    """Kernels and calls of one prefix are one process; a graph launch is one call for many kernels."""
    folder = "amd/rocprofv3-csv-strix-halo-llamacpp"
    kernels, calls = (
        shared_data(f"{folder}/decode_kernel_trace.csv"),
        shared_data(f"{folder}/decode_hip_api_trace.csv"),
    )
    trace = as_recorded([kernels, calls], tmp_path / "t")
    ids = {row["Correlation_Id"] for row in _rows(calls)}
    linked = sum(row["Correlation_Id"] in ids for row in _rows(kernels))
    assert trace.sql("SELECT count(launch) FROM slices WHERE kind = 'kernel'").scalar() == linked > 0
    assert trace.sql("SELECT count(*) FROM processes").scalar() == 1
    assert {"no_launch", "device_ordinal_guessed"} <= issue_codes(trace)


@pytest.mark.parametrize(
    "name",
    [
        "amd/rocprofv3-csv-strix-halo-llamacpp/decode_stall_counter_collection.csv",
        "amd/rocprofv3-docs-samples-rocm7/counter_collection.csv",
        "amd/rocprofv3-csv-strix-halo-llamacpp/decode_fetch_counter_collection.csv",
        "amd/rocprofv3-docs-samples-rocm6_3/counter_collection.csv",
    ],
)
def test_csv_counters_equal_csv(name: str, tmp_path: Path) -> None:
    path = shared_data(name)
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["Counter_Value"] or "") != ""]
    trace = as_recorded(path, tmp_path / "t")
    ours = "SELECT count(*), sum(value) FROM metrics WHERE name NOT IN ('Grid_Size', 'Workgroup_Size')"
    ((count, total),) = trace.sql(ours).rows
    assert count == len(rows)
    assert total == pytest.approx(sum(float(row["Counter_Value"]) for row in rows), rel=1e-12)
    assert totals(trace)["kernel"][0] == len({row["Dispatch_Id"] for row in rows})
    assert trace.meta["replayed"] is True


def test_markers_are_ranges_on_their_threads(tmp_path: Path) -> None:
    """A start/stop range has thread 0 and its own lane; push/pop ranges nest on their thread."""
    path = shared_data("amd/rocprofv3-docs-samples-rocm7/marker_api_trace.csv")
    trace = as_recorded(path, tmp_path / "t")
    ours = (
        "SELECT s.name, t.kind, s.dur_ns FROM slices s JOIN tracks t USING (track) "
        "ORDER BY s.ts_ns, s.dur_ns DESC"
    )
    wanted = [
        (
            row["Function"],
            "thread" if int(row["Thread_Id"]) else "range",
            int(row["End_Timestamp"]) - int(row["Start_Timestamp"]),
        )
        for row in sorted(
            _rows(path), key=lambda row: (int(row["Start_Timestamp"]), -int(row["End_Timestamp"]))
        )
    ]
    assert trace.sql(ours).rows == wanted
    assert {kind for _, kind, _ in wanted} == {"thread", "range"}


@pytest.mark.parametrize("folder", ["rocprofv3-docs-samples-rocm6_3", "rocprofv3-docs-samples-rocm7"])
def test_csv_copies_have_no_size(folder: str, tmp_path: Path) -> None:
    path = shared_data(f"amd/{folder}/memory_copy_trace.csv")
    trace = as_recorded(path, tmp_path / "t")
    rows = _rows(path)
    spans = summed((int(row["Start_Timestamp"]), int(row["End_Timestamp"])) for row in rows)
    assert totals(trace) == {"memcpy": spans}
    assert trace.sql("SELECT count(bytes) FROM copies").scalar() == 0
    ways = Counter(
        {"MEMORY_COPY_HOST_TO_DEVICE": "HtoD", "MEMORY_COPY_DEVICE_TO_HOST": "DtoH"}[row["Direction"]]
        for row in rows
    )
    assert dict(trace.sql("SELECT direction, count(*) FROM copies GROUP BY direction").rows) == dict(ways)
    assert "no_bytes" in issue_codes(trace)


def test_allocations_become_a_running_counter(tmp_path: Path) -> None:
    path = shared_data("amd/rocprofv3-docs-samples-rocm7/memory_allocation_trace.csv")
    live: dict[str, int] = {}
    wanted = []
    for row in sorted(_rows(path), key=lambda row: int(row["End_Timestamp"])):
        live[row["Address"]] = 0 if row["Operation"].endswith("FREE") else int(row["Allocation_Size"])
        wanted.append((int(row["End_Timestamp"]), float(sum(live.values())), "byte"))
    trace = as_recorded(path, tmp_path / "t")
    assert trace.sql("SELECT ts_ns, value, unit FROM counters ORDER BY ts_ns").rows == wanted


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("finite-difference", "results.db"),
        ("seismic-stencils", "results.csv"),
        ("finite-difference", "results.csv"),
        ("seismic-stencils", "results.db"),
    ],
)
def test_v1_kernels(folder: str, file: str, tmp_path: Path) -> None:
    path = shared_data(f"amd/rocprofv1-hpctraining/{folder}/{file}")
    table = shared_data(f"amd/rocprofv1-hpctraining/{folder}/results.csv")
    rows = _rows(table)
    trace = as_recorded(path, tmp_path / "t")
    assert totals(trace) == {"kernel": summed((int(row["BeginNs"]), int(row["EndNs"])) for row in rows)}
    clean = Counter(re.sub(r"(\.kd)?( \[clone \.kd\])?$", "", row["KernelName"]) for row in rows)
    assert dict(trace.sql("SELECT name, count(*) FROM slices GROUP BY name").rows) == dict(clean)
    items = trace.sql("SELECT sum(value) FROM metrics WHERE name = 'Grid_Size'").scalar()
    assert items == sum(int(row["grd"]) for row in rows)
    assert trace.sql("SELECT count(grid_x) FROM kernels").scalar() == 0


@pytest.mark.parametrize("file", ["results.db", "results.json"])
def test_v1_trace(file: str, tmp_path: Path) -> None:
    """Database and JSON of one run give the same slices and the same launches."""
    path = shared_data(f"amd/rocprofv1-rocm-blogs/HIP_trace/{file}")
    database = shared_data("amd/rocprofv1-rocm-blogs/HIP_trace/results.db")
    wanted = {
        kind: _sql(database, f"SELECT count(*), sum(EndNs - BeginNs) FROM {table}")[0]
        for kind, table in (("api", "HIP"), ("kernel", "OPS"), ("memcpy", "COPY"))
    }
    trace = as_recorded(path, tmp_path / "t")
    assert totals(trace) == wanted
    pairs = _sql(
        database,
        "SELECT g.BeginNs, h.BeginNs FROM (SELECT * FROM OPS UNION ALL SELECT * FROM COPY) g JOIN HIP h "
        'USING ("Index") '
        "ORDER BY 1",
    )
    ours = "SELECT s.ts_ns, l.ts_ns FROM slices s JOIN slices l ON l.slice = s.launch ORDER BY 1"
    assert trace.sql(ours).rows == pairs
    if file == "results.db":
        assert trace.sql("SELECT grid_x, block_x FROM kernels").rows == [(1, 256)]


def test_v1_writes_one_run_in_three_forms(tmp_path: Path) -> None:
    """A trial leaves all of them; the records are counted once."""
    folder = "amd/rocprofv1-hpctraining/finite-difference"
    files = [shared_data(f"{folder}/{name}") for name in ("results.csv", "results.db", "results.stats.csv")]
    trace = as_recorded(files, tmp_path / "t")
    assert totals(trace)["kernel"][0] == 1004
    assert trace.meta["source"] == "rocprofv1-db"
    assert trace.sql("SELECT count FROM issues WHERE code = 'other_forms_left_out'").scalar() == 2


@pytest.mark.parametrize("file", ["matmul_result.rpd", "matmul_result_large.rpd"])
def test_rpd(file: str, tmp_path: Path) -> None:
    path = shared_data(f"amd/rpd/{file}")
    trace = as_recorded(path, tmp_path / "t")
    kinds = {
        "KernelExecution": "kernel",
        "CopyHostToDevice": "memcpy",
        "CopyDeviceToHost": "memcpy",
        "FillBuffer": "memset",
    }
    wanted: dict[str, tuple[int, int]] = {"api": _sql(path, "SELECT count(*), sum(end - start) FROM api")[0]}
    for kind, count, total in _sql(path, "SELECT opType, count(*), sum(end - start) FROM op GROUP BY opType"):
        had = wanted.get(kinds[kind], (0, 0))
        wanted[kinds[kind]] = (had[0] + count, had[1] + total)
    assert totals(trace) == wanted
    grids = _sql(
        path,
        "SELECT k.start, CASE a.apiName WHEN 'hipExtModuleLaunchKernel' THEN (k.gridX + k.workgroupX - 1) / "
        "k.workgroupX "
        "ELSE k.gridX END, k.gridY, k.workgroupX FROM kernel k JOIN rocpd_api_ops o ON o.op_id = k.id "
        "JOIN api a ON a.id = o.api_id ORDER BY k.start",
    )
    ours = "SELECT ts_ns, grid_x, grid_y, block_x FROM slices JOIN kernels USING (slice) ORDER BY ts_ns"
    assert trace.sql(ours).rows == grids
    assert (
        trace.sql("SELECT count(*) FROM counters").scalar()
        == _sql(path, "SELECT count(*) FROM rocpd_monitor")[0][0]
    )
    assert trace.sql("SELECT sum(bytes) FROM copies WHERE direction = 'HtoD'").scalar() in (
        _sql(path, "SELECT sum(size) FROM copyop WHERE kind = 1")[0][0],
    )


@pytest.mark.parametrize("gpu", ["MI300X_A1", "MI100", "MI200", "MI300A_A1"])
def test_compute_wide(gpu: str, tmp_path: Path) -> None:
    path = shared_data(f"amd/rocprof-compute-vcopy/{gpu}/pmc_perf.csv")
    with path.open(newline="") as file:
        header, *rows = list(csv.reader(file))
    known = re.compile(
        r"(?i)^(Dispatch_ID|Kernel_Name|GPU_ID|Grid_Size|Workgroup_Size|LDS_Per_Workgroup|Scratch_Per_Workitem|Arch_VGPR|"
        r"Accum_VGPR|SGPR|wave_size|obj|sig|Correlation_ID|XCC_Index|Queue_ID|PID|TID|(Begin|End|Dispatch|Complete)Ns|"
        r"Start_Timestamp|End_Timestamp|DurationNs)(_\d+)?$"
    )
    columns = [number for number, name in enumerate(header) if not known.match(name)]
    values = [float(row[number]) for row in rows for number in columns if row[number] != ""]
    trace = as_recorded(path, tmp_path / "t")
    ours = "SELECT count(*), sum(value) FROM metrics WHERE name NOT IN ('Grid_Size', 'Workgroup_Size')"
    ((count, total),) = trace.sql(ours).rows
    assert count == len(values)
    assert total == pytest.approx(sum(values), rel=1e-12)
    assert totals(trace)["kernel"][0] == len(rows) == 3
    assert trace.meta["source"] == "rocprof-compute"


def test_compute_long(tmp_path: Path) -> None:
    path = shared_data("amd/rocprof-compute-vcopy/MI300X_A1_rocpd/pmc_perf.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    trace = as_recorded(path, tmp_path / "t")
    ours = "SELECT count(*), sum(value) FROM metrics WHERE name NOT IN ('Grid_Size', 'Workgroup_Size')"
    ((count, total),) = trace.sql(ours).rows
    assert count == len(rows)
    assert total == pytest.approx(sum(float(row["Counter_Value"]) for row in rows), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("amd/rocprofv3-docs-samples-rocm7/hip_api_stats.csv", "no records"),
        ("amd/rocprofv3-docs-samples-rocm7/pc_sampling_host_trap.csv", "no records"),
        ("amd/rocprofv1-hpctraining/finite-difference/results.stats.csv", "only totals"),
        ("amd/rocprof-compute-vcopy/MI100/sysinfo.csv", "no profile"),
    ],
)
def test_files_beside_a_trace_are_refused_with_the_reason(name: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=word):
        as_recorded(shared_data(name), tmp_path / "t")
