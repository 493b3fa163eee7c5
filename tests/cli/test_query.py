"""``profrun query``: text, CSV, JSON and Parquet, and queries that are refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from tests.cli.running import Capture, call, start
from tests.support.memory import PEAK_KIB
from tests.tracekit import make_trace


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """Three kernels, one after another."""
    rows = [("kernel", "k", 10 * number, 5, "stream 7") for number in range(3)]
    make_trace(tmp_path / "t", rows)
    return tmp_path / "t"


def test_parquet_keeps_types_and_rows(kernels: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "it's here.parquet"
    sql = "SELECT name, ts_ns, NULL::BIGINT AS x FROM slices ORDER BY ts_ns"
    done = call(capsys, "query", kernels, sql, "--parquet", out)
    assert (done.code, done.out) == (0, "")
    assert "3 rows in" in done.err
    with duckdb.connect() as own:  # a test before this one may have left an unread result in the shared one
        found = own.sql("SELECT * FROM read_parquet($f)", params={"f": str(out)})
        assert found is not None
        assert found.fetchall() == [("k", 0, None), ("k", 10, None), ("k", 20, None)]
        assert [str(kind) for kind in found.types] == ["VARCHAR", "BIGINT", "BIGINT"]
    assert call(capsys, "query", kernels, sql, "--parquet", out, "--force", "--json").json["rows"] == 3


@pytest.mark.parametrize(
    ("sql", "code"), [("SELECT nothing FROM nowhere", 65), ("CREATE TABLE x (i INT)", 64)]
)
def test_what_gives_no_rows_is_no_file(
    sql: str, code: int, kernels: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert call(capsys, "query", kernels, sql, "--parquet", tmp_path / "x").code == code
    assert not (tmp_path / "x").exists()


def test_a_file_that_cannot_be_written_is_said(kernels: Path, tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, "query", kernels, "SELECT 1", "--parquet", tmp_path / "no" / "x.parquet")
    assert done.code == 65
    assert "No such file" in done.err


def test_decimals_and_what_lists_hold_are_numbers_in_json(trace: Path, capsys: Capture) -> None:
    sql = "SELECT 1.5::DECIMAL(9, 2) AS d, [1.5, 'inf'::DOUBLE] AS l, {'a': 2.5} AS s"
    assert call(capsys, "query", trace, sql, "--json").json["rows"] == [[1.5, [1.5, None], {"a": 2.5}]]


@pytest.mark.parametrize("what", ["/no/such/trace", "nosuch.json.gz"])
def test_a_path_that_is_not_there_is_called_a_path(what: str, capsys: Capture) -> None:
    done = call(capsys, "query", what, "SELECT 1")
    assert done.code == 64
    assert f"{what} is not there" in done.err


def test_query_as_text_csv_and_json(trace: Path, capsys: Capture) -> None:
    sql = "SELECT kind, count(*) AS n, max(dur_ns) AS longest, NULL AS x FROM slices GROUP BY 1 ORDER BY 1"
    assert call(capsys, "query", trace, sql).out.splitlines() == [
        "kind\tn\tlongest\tx",
        "api\t1\t5\t",
        "kernel\t2\t300\t",
        "step\t1\t1000\t",
    ]
    assert call(capsys, "query", trace, sql, "--csv").out == (
        "kind,n,longest,x\napi,1,5,\nkernel,2,300,\nstep,1,1000,\n"
    )
    assert call(capsys, "query", trace, sql, "--json").json == {
        "columns": ["kind", "n", "longest", "x"],
        "rows": [["api", 1, 5, None], ["kernel", 2, 300, None], ["step", 1, 1000, None]],
    }
    assert call(capsys, "query", trace, "SELECT 'nan'::DOUBLE AS x", "--json").json["rows"] == [[None]]


def test_on_a_terminal_it_is_a_table_that_fits(
    trace: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    sql = "SELECT kind, count(*) AS n, max(dur_ns) AS longest, NULL AS x FROM slices GROUP BY 1 ORDER BY 1"
    assert call(capsys, "query", trace, sql).out.splitlines() == [
        "kind    n  longest  x",
        "api     1        5  -",
        "kernel  2      300  -",
        "step    1     1000  -",
    ]
    long = "SELECT repeat('abc', 500) AS name, repeat('x', 200) AS other, 7 AS n"
    first, row = call(capsys, "query", trace, long).out.splitlines()
    assert (first.split(), len(row) <= 60, row[-1]) == (["name", "other", "n"], True, "7")
    assert row.count("...") == 2


def test_in_a_pipe_nothing_is_cut_or_padded_and_a_row_is_a_line(trace: Path, capsys: Capture) -> None:
    sql = r"SELECT repeat('n', 2000) AS name, 'a' || chr(9) || 'b' || chr(10) || 'c\' AS odd, 1.5 AS x"
    sql += " UNION ALL SELECT 'short', NULL, 2 ORDER BY x"
    assert call(capsys, "query", trace, sql).out == (
        f"name\todd\tx\n{'n' * 2000}\ta\\tb\\nc\\\\\t1.5\nshort\t\t2.0\n"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--csv", "--json"], "--csv and --json are two forms of one answer"),
        (["--csv", "--parquet", "x.parquet"], "--csv and --parquet are two forms of one answer"),
        (["--force"], "add --parquet FILE"),
    ],
)
def test_options_that_contradict_each_other_are_64(
    trace: Path, capsys: Capture, options: list[str], said: str
) -> None:
    done = call(capsys, "query", trace, "SELECT 1", *options)
    assert (done.code, done.out, said in done.err) == (64, "", True)


def test_a_file_is_replaced_only_by_force_and_only_by_an_answer(
    kernels: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "x.parquet"
    out.write_text("mine")
    done = call(capsys, "query", kernels, "SELECT 1", "--parquet", out)
    assert (done.code, out.read_text()) == (64, "mine")
    assert "replace it with --force" in done.err
    assert call(capsys, "query", kernels, "SELECT nothing", "--parquet", out, "--force").code == 65
    assert out.read_text() == "mine"
    assert call(capsys, "query", kernels, "SELECT 1", "--parquet", out, "--force").code == 0
    assert out.read_bytes()[:4] == b"PAR1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t", "x.parquet"]
    assert call(capsys, "query", kernels, "SELECT 1", "--parquet", tmp_path, "--force").code == 64


def test_a_wrong_query_is_65_and_the_engines_words(trace: Path, capsys: Capture) -> None:
    done = call(capsys, "query", trace, "SELECT nothing FROM nowhere")
    assert done.code == 65
    assert "nowhere" in done.err


@pytest.mark.parametrize("query", ["", " ;\n", "/* nothing */"])
@pytest.mark.parametrize("more", [(), ("--parquet", "x.parquet")])
def test_no_query_is_64(trace: Path, capsys: Capture, query: str, more: tuple[str, ...]) -> None:
    done = call(capsys, "query", trace, query, *more)
    assert (done.code, "there is no query" in done.err) == (64, True)


def test_a_query_is_refused_in_one_line_and_changes_nothing(
    kernels: Path, tmp_path: Path, capsys: Capture
) -> None:
    before = {path.name: path.read_bytes() for path in kernels.iterdir()}
    for sql, code in (
        ("FROM read_csv('/etc/passwd')", 64),
        (f"COPY (SELECT 1 AS a) TO '{kernels}/slices.parquet'", 64),
        (f"ATTACH '{tmp_path}/x.db'", 64),
        ("INSTALL httpfs", 64),
        ("FROM 'http://127.0.0.1:1/x.parquet'", 65),
        ("FROM '/etc/passwd.parquet'", 65),
    ):
        done = call(capsys, "query", kernels, sql)
        assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert {path.name: path.read_bytes() for path in kernels.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_a_table_on_a_terminal_is_cut_with_a_line_that_says_so(
    trace: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("profrun.cli.query.SHOWN_ROWS", 5)
    done = call(capsys, "query", trace, "FROM range(1000000000)")
    assert done.out.splitlines() == ["range", *(f"    {number}" for number in range(5))]
    assert "only the first 5 rows are shown; add LIMIT" in done.err


@pytest.mark.thorough
def test_a_long_answer_is_streamed(trace: Path, tmp_path: Path) -> None:
    peaks = []
    for rows in (1_000, 600_000):
        code = (
            "import sys; from profrun.cli import run;"
            f" code = run(['query', sys.argv[1], 'FROM range({rows})', '--csv']); sys.stdout.flush();"
            f" sys.stderr.write(str({PEAK_KIB})); sys.exit(code)"
        )
        done = subprocess.run([sys.executable, "-c", code, trace], capture_output=True, text=True, check=True)
        assert done.stdout.count("\n") == rows + 1
        peaks.append(int(done.stderr))
    assert peaks[1] < peaks[0] + 30_000  # KiB; 600,000 rows as Python objects take 60,000


@pytest.mark.thorough
def test_ctrl_c_ends_a_query_that_the_engine_does_not_interrupt(trace: Path, tmp_path: Path) -> None:
    sql = "SELECT count(*) FROM range(10000000000000) a(i) WHERE hash(i) = 7"
    with start("query", trace, sql, cwd=tmp_path, env={"TMPDIR": str(tmp_path)}) as child:
        status = Path(f"/proc/{child.pid}/task")
        deadline = time.monotonic() + 120
        while len(list(status.iterdir())) < 2 or _cpu_seconds(child.pid) < 3:
            assert time.monotonic() < deadline
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert (child.returncode, err.strip()) == (1, "profrun: interrupted")
    assert not list(tmp_path.glob("profrun-*"))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
