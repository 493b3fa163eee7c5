"""Damaged and odd files: one clear line, or a trace whose issues say what was repaired. Never a traceback."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profrun.errors import InputError
from profrun.traces.trace import Trace
from tests.collectors.rocprof.kit import Rocpd, issue_codes, totals, trace_of
from tests.conftest import examples, first, shared_data

HEADER = (
    "Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,"
    "Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z\n"
)
ROW = "KERNEL_DISPATCH,Agent 1,1,5,1,k,1,{start},{stop},64,1,1,64,1,1\n"


def _csv(folder: Path, text: str | bytes) -> Path:
    path = folder / "9_kernel_trace.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_header_without_rows_is_a_process_without_gpu_work(tmp_path: Path) -> None:
    trace = trace_of(_csv(tmp_path, HEADER), tmp_path / "t")
    assert totals(trace) == {}
    assert "no_records" in issue_codes(trace)


@pytest.mark.parametrize(
    ("row", "code"),
    first(
        4,
        [
            (ROW.format(start="abc", stop=2), "csv_row_not_read"),
            (ROW.format(start=9, stop=2), "ends_before_start"),
            (ROW.format(start=-9, stop=2), "negative_time"),
            (ROW.format(start=5, stop=7).replace(",k,", ",,"), "no_name"),
            (ROW.format(start="nan", stop=2), "csv_row_not_read"),
            (ROW.format(start=2**63, stop=2**63 + 1), "csv_row_not_read"),
            ("...\n", "csv_row_not_read"),
            ("KERNEL_DISPATCH,Agent 1,1,5,1,k,1,12\n", "csv_row_not_read"),
        ],
    ),
)
def test_one_bad_row_does_not_spoil_the_others(row: str, code: str, tmp_path: Path) -> None:
    text = (
        HEADER + ROW.format(start=10, stop=20) + row + ROW.format(start=30, stop=45).replace(",1,k", ",2,k")
    )
    trace = trace_of(_csv(tmp_path, text), tmp_path / "t")
    assert trace.sql("SELECT count(*) FROM slices WHERE ts_ns IN (10, 30)").scalar() == 2
    assert code in issue_codes(trace)


def test_windows_ends_a_mark_at_the_start_quotes_and_gzip(tmp_path: Path) -> None:
    text = (HEADER + ROW.format(start=10, stop=20)).replace("\n", "\r\n")
    path = _csv(tmp_path, gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    assert totals(trace_of(path, tmp_path / "t")) == {"kernel": (1, 10)}


def test_invalid_utf8_in_a_name_costs_at_most_its_row(tmp_path: Path) -> None:
    text = (HEADER + ROW + ROW).format(start=10, stop=20).encode()
    text = text.replace(b",1,k,1,10", b",1,\xff\xfe,1,10", 1)
    trace = trace_of(_csv(tmp_path, text), tmp_path / "t")
    assert totals(trace)["kernel"][0] >= 1


def test_header_in_any_case_and_order(tmp_path: Path) -> None:
    names = HEADER.strip().split(",")
    values = ROW.format(start=10, stop=20).strip().split(",")
    pairs = sorted(zip(names, values, strict=True), key=lambda pair: pair[0][::-1])
    text = (
        ",".join(f'"{name.upper()}"' for name, _ in pairs)
        + "\n"
        + ",".join(f'"{v}"' for _, v in pairs)
        + "\n"
    )
    trace = trace_of(_csv(tmp_path, text), tmp_path / "t")
    assert trace.sql("SELECT name, dur_ns FROM slices").rows == [("k", 10)]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("db") / "7_results.db"
    db = Rocpd(path)
    db.basics()
    for number in range(40):
        db.region("HIP_RUNTIME_API_EXT", "hipLaunchKernel", 100 * number, 100 * number + 50, number + 1)
        db.kernel(100 * number + 60, 100 * number + 90, number + 1, dispatch=number)
    db.done()
    return path


@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.9])
def test_a_cut_database_is_refused_or_says_so(part: float, database: Path, tmp_path: Path) -> None:
    data = database.read_bytes()
    path = tmp_path / "cut.db"
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(InputError) as caught:
        trace_of(path, tmp_path / "t")
    assert "\n" not in str(caught.value)


def test_a_database_that_is_no_profile(tmp_path: Path) -> None:
    con = sqlite3.connect(tmp_path / "x.db")
    con.execute("CREATE TABLE people (name TEXT)")
    con.commit()
    con.close()
    with pytest.raises(InputError, match="people"):
        trace_of(tmp_path / "x.db", tmp_path / "t")


def test_text_where_a_number_must_be(tmp_path: Path) -> None:
    db = Rocpd(tmp_path / "x.db")
    db.basics()
    db.kernel(10, 20, 1)
    db.kernel(30, 40, 2, dispatch=2, queue_id="later")
    db.done()
    with pytest.raises(InputError, match="damaged or not what it says"):
        trace_of(tmp_path / "x.db", tmp_path / "t")


def test_rows_of_other_tables_may_be_missing(database: Path, tmp_path: Path) -> None:
    """The tool's own views lose a dispatch whose symbol, event or thread is missing; we keep it."""
    path = tmp_path / "holes.db"
    shutil.copyfile(database, path)
    con = sqlite3.connect(path)
    for table in ("rocpd_info_kernel_symbol", "rocpd_info_thread", "rocpd_info_agent", "rocpd_event"):
        name = con.execute("SELECT name FROM sqlite_master WHERE name LIKE ?", [f"{table}_0%"]).fetchone()[0]
        con.execute(f'DELETE FROM "{name}"')
    con.commit()
    con.close()
    trace = trace_of(path, tmp_path / "t")
    assert totals(trace) == {"api": (40, 2000), "kernel": (40, 1200)}
    assert "no_name" in issue_codes(trace)


def test_a_log_not_yet_merged_is_read(database: Path, tmp_path: Path) -> None:
    """A database with a write-ahead log beside it: the newest rows are in the log."""
    path = tmp_path / "wal.db"
    shutil.copyfile(database, path)
    con = sqlite3.connect(path)
    con.execute("PRAGMA journal_mode = WAL")
    name = con.execute("SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_region_%'").fetchone()[0]
    con.execute(f'DELETE FROM "{name}" WHERE id > 10')
    con.commit()
    try:
        assert totals(trace_of(path, tmp_path / "t"))["api"][0] == 10
    finally:
        con.close()


@pytest.mark.parametrize("at", first(1, [0.6, 0.2]))
def test_results_json_cut_off_keeps_whole_records(at: float, tmp_path: Path) -> None:
    whole = shared_data("amd/rocprofv3-json-mi350-aorta/908_results.json.gz")
    with gzip.open(whole) as file:
        data = file.read(int(37_000_000 * at))
    path = tmp_path / "cut_results.json"
    path.write_bytes(data)
    trace = trace_of(path, tmp_path / "t")
    assert "truncated" in issue_codes(trace)
    kernels = totals(trace).get("kernel", (0, 0))[0]
    assert (kernels > 0) == (at > 0.3)
    assert kernels <= data.count(b'"kernel_id"')


@pytest.mark.parametrize(
    "text",
    [
        '{"rocprofiler-sdk-tool": 5}',
        '{"rocprofiler-sdk-tool": [{"strings": {"buffer_records": [5]}}]}',
        '{"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": [{"dispatch_info": 3}]}}]}',
        '{"rocprofiler-sdk-tool": [{"kernel_symbols": [{"kernel_id": 1}}]}',
        '{"rocprofiler-sdk-tool": [{"metadata": {"pid": "x"}, "agents": {"a": 1}}]}',
        '{"rocprofiler-sdk-tool": []}',
        '{"rocprofiler-sdk-tool": ' + "[" * 100_000,
    ],
)
def test_json_of_another_shape(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x_results.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        trace_of(path, tmp_path / "t")
    assert "\n" not in str(caught.value)


MUTANTS = settings(
    examples(3, 500),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


def _survives(path: Path, folder: Path) -> None:
    """A trace that holds its invariants, or one line of InputError."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        trace_of(path, folder).close()
    except InputError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message


@MUTANTS
@given(seed=st.integers(0, 2**32))
def test_any_bytes_changed_in_a_database(seed: int, database: Path, tmp_path: Path) -> None:
    chance = random.Random(seed)
    data = bytearray(database.read_bytes())
    for _ in range(chance.randrange(1, 12)):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(1, 40)] = chance.randbytes(chance.randrange(0, 40))
    path = tmp_path / "mutant.db"
    path.write_bytes(data)
    _survives(path, tmp_path / "t")


@MUTANTS
@given(
    seed=st.integers(0, 2**32),
    which=st.sampled_from(["kernel_trace", "hip_api_trace", "stall_counter_collection"]),
)
def test_any_bytes_changed_in_a_csv(seed: int, which: str, tmp_path: Path) -> None:
    chance = random.Random(seed)
    source = shared_data(f"amd/rocprofv3-csv-strix-halo-llamacpp/decode_{which}.csv")
    data = bytearray(source.read_bytes()[:20_000])
    for _ in range(chance.randrange(1, 12)):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(1, 60)] = chance.choice(
            [b"", b'"', b",", b"\n", b"\0", b"\xff", b"99999999999999999999", b"-1", chance.randbytes(5)]
        )
    path = tmp_path / f"4_{which}.csv"
    path.write_bytes(data)
    _survives(path, tmp_path / "t")


@MUTANTS
@given(seed=st.integers(0, 2**32))
def test_any_bytes_changed_in_v1_json(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    data = bytearray(shared_data("amd/rocprofv1-rocm-blogs/HIP_trace/results.json").read_bytes()[:30_000])
    for _ in range(chance.randrange(1, 8)):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(1, 20)] = chance.choice(
            [b"", b'"', b"}", b"[", b"null", b"1e999", b"NaN", b"18446744073709551616", chance.randbytes(3)]
        )
    path = tmp_path / "results.json"
    path.write_bytes(data)
    _survives(path, tmp_path / "t")


def test_a_trace_says_how_it_was_read(database: Path, tmp_path: Path) -> None:
    trace = trace_of(database, tmp_path / "t")
    assert isinstance(trace, Trace)
    assert (trace.meta["source"], trace.meta["collector"], trace.meta["vendor"]) == (
        "rocpd",
        "rocprof",
        "amd",
    )
    assert trace.meta["extra"]["schema_version"] == "3.0.2"


def test_text_where_an_agent_has_a_number(tmp_path: Path) -> None:
    db = Rocpd(tmp_path / "x.db")
    db.basics()
    db.kernel(10, 20, 1)
    odd = json.dumps({"cu_count": "many", "mem_banks": [{"size_in_bytes": "x"}]})
    db.con.execute(f"UPDATE rocpd_info_agent{db.suffix} SET type_index = 'x', extdata = ?", [odd])
    db.done()
    trace = trace_of(tmp_path / "x.db", tmp_path / "t")
    assert trace.sql("SELECT ordinal, sm_count, memory_bytes FROM devices").rows == [(1, None, None)]
    assert "device_ordinal_guessed" in issue_codes(trace)


@pytest.mark.parametrize("odd", ["BeginNs", '"x\ny"'])
def test_a_table_without_times_has_its_dispatches_in_order(odd: str, tmp_path: Path) -> None:
    """The column of the start is gone, or a header cell with a line break hides it."""
    header = f"Index,KernelName,gpu-id,grd,wgr,{odd},DurationNs\n"
    rows = "1,second,0,64,64,5,1\n0,first,0,64,64,5,1\n0,again,0,64,64,5,1\n"
    (tmp_path / "results.csv").write_text(header + rows)
    trace = trace_of(tmp_path / "results.csv", tmp_path / "t")
    assert trace.sql("SELECT name FROM slices ORDER BY ts_ns").rows == [("first",), ("second",)]
