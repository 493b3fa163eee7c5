# ruff: noqa: E501
"""SQL from outside reads the trace and nothing else, and changes nothing: what is refused, and what is not."""

from __future__ import annotations

import contextlib

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.errors import ProfrunError, UsageError
from profrun.traces.statements import TABLE_FUNCTIONS, one_select
from profrun.traces.trace import Trace
from tests.conftest import examples
from tests.tracekit import make_trace

CANARY = "canary-of-another-file"
READS = (
    "FROM read_csv('{0}')", "FROM read_text('{0}')", "FROM read_blob('{0}')", "FROM glob('{1}/*')",
    "FROM sniff_csv('{0}')", "FROM '{0}'", "FROM read_json('{0}')", "FROM read_parquet('{0}')",
    "FROM parquet_metadata('{0}')", "FROM read_text('file://{0}')", "FROM read_text('{2}/../canary.csv')",
    "FROM read_text('{2}/slices.parquet/../../canary.csv')", "FROM read_text('/proc/self/environ')",
    "SELECT getenv('HOME')", "FROM query('FROM read_text(''{0}'')')", "FROM duckdb_secrets()",
    "FROM 'http://127.0.0.1:1/x.csv'", "FROM 's3://bucket/x.parquet'", "FROM sqlite_scan('{0}', 't')",
)  # fmt: skip
"""Statements that would read more than the trace. {0}: a file beside the trace, {1}: its folder, {2}: the trace."""
WRITES = (
    "COPY (SELECT 1 AS a) TO '{1}/out.csv'", "COPY (SELECT 1 AS a) TO '{2}/slices.parquet'",
    "ATTACH '{1}/x.db'", "ATTACH '{1}/x.db'; CREATE TABLE x.t (i INT)", "ATTACH ':memory:' AS m",
    "EXPORT DATABASE '{1}/out'", "IMPORT DATABASE '{1}'", "INSTALL httpfs", "LOAD httpfs", "FORCE INSTALL httpfs",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')", "CREATE PERSISTENT SECRET s (TYPE http)",
    "SET memory_limit = '90GB'", "SET enable_external_access = true", "RESET lock_configuration",
    "PRAGMA enable_profiling", "PRAGMA database_list", "CALL enable_logging()", "CHECKPOINT", "VACUUM",
    "DROP VIEW slices", "DELETE FROM issues", "CREATE TABLE t (i INT)", "PREPARE p AS SELECT 1", "EXECUTE p",
    "BEGIN", "USE memory", "SELECT 1; SELECT 2", "SELECT 1; COPY (SELECT 1) TO '{1}/out.csv'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{1}/out.csv'",
    "WITH x AS (COPY (SELECT 1 AS a) TO '{2}/slices.parquet' (USE_TMP_FILE false)) FROM x",
    "SELECT (WITH x AS (COPY (SELECT 1) TO '{1}/out.csv') FROM x)",
    "WITH x AS (INSERT INTO issues VALUES (1) RETURNING *) FROM x",
    "WITH x AS (COPY (SELECT 1 AS a) TO '{2}/slices.parquet' (USE_TMP_FILE false)) PIVOT x ON a USING sum(a)",
    "FROM enable_logging(storage='file', storage_path='{2}/slices.parquet')",
    "FROM query('FROM enable_' || 'logging(storage=''file'', storage_path=''{1}/log'')')",
    "PIVOT (FROM enable_logging(storage='file', storage_path='{1}/log')) ON 1 USING count(*)",
    "FROM json_execute_serialized_sql('{{}}')", "FROM checkpoint()", "FROM truncate_duckdb_logs()",
)  # fmt: skip
"""Statements that would change something, likewise."""
GOOD = (
    "SELECT count(*) FROM slices", "FROM slices", "VALUES (1)", "TABLE slices", "SHOW TABLES", "DESCRIBE slices",
    "SUMMARIZE slices", "WITH a AS (FROM slices) SELECT name FROM a", "SELECT 1 UNION ALL SELECT 2",
    "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < 3) FROM t",
    "SELECT name FROM slices WHERE name LIKE '%copy%' OR name = 'insert into delete'",
    'SELECT 1 AS "copy"', "FROM range(3)", "SELECT unnest([1, 2])", "FROM duckdb_views()",
    "SELECT table_name FROM information_schema.tables", "PIVOT (SELECT kind FROM slices) ON kind USING count(*)",
    "PIVOT (SELECT kind FROM slices) ON kind IN ('kernel') USING count(*)", "UNPIVOT (SELECT 1 AS a) ON a",
    "FROM kernel_summary", "FROM step_breakdown", "SELECT 1 -- ; SELECT 2",
)  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """One trace for all statements: what one of them changes must not go unseen by the next."""
    folder = tmp_path_factory.mktemp("statements")
    (folder / "canary.csv").write_text(f"{CANARY}\n1\n")
    return make_trace(
        folder / "t", [("step", "ProfilerStep#3", 0, 100, "main"), ("kernel", "k", 40, 30, "s")]
    )


def told(trace: Trace, sql: str) -> str:
    """The answer as text, or what was said against it; everything else is a bug and fails the test."""
    try:
        answer = trace.stream(sql)
        return repr([answer.columns, *answer.batches])
    except ProfrunError as error:
        return f"refused {error}"


def files(trace: Trace) -> dict[str, bytes]:
    """What lies in the folder of the trace and below it."""
    root = trace.path.parent
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def put(sql: str, trace: Trace) -> str:
    root = trace.path.parent
    return sql.format(root / "canary.csv", root, trace.path)


@pytest.mark.parametrize("sql", [*READS, *WRITES])
def test_what_reads_or_writes_another_file_is_refused(trace: Trace, sql: str) -> None:
    before = files(trace)
    said = told(trace, put(sql, trace))
    assert said.startswith("refused") or "'copy'" in said
    assert CANARY not in said
    assert files(trace) == before
    assert trace.stream("SELECT count(*) FROM slices").batches.__next__() == [(2,)]


@pytest.mark.parametrize("sql", GOOD)
def test_what_only_reads_the_trace_is_answered(trace: Trace, sql: str) -> None:
    assert not told(trace, sql).startswith("refused")


@pytest.mark.parametrize("sql", WRITES)
def test_a_statement_that_changes_something_is_no_select(trace: Trace, sql: str) -> None:
    with pytest.raises((UsageError, duckdb.Error)) as error:
        one_select(trace.con, put(sql, trace))
    assert CANARY not in str(error.value)


def test_every_table_function_that_is_let_through_exists_in_some_version(trace: Trace) -> None:
    sql = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type LIKE 'table%'"
    known = {row[0] for row in trace.sql(sql).rows}
    assert known >= TABLE_FUNCTIONS


def test_no_function_that_takes_text_reads_another_file(trace: Trace) -> None:
    sql = (
        "SELECT DISTINCT function_name, function_type, len(parameter_types) FROM duckdb_functions()"
        " WHERE function_type IN ('scalar', 'table', 'table_macro') AND parameter_types[1] IN ('VARCHAR', 'ANY')"
        " AND regexp_full_match(function_name, '[a-z_0-9]+') ORDER BY ALL"
    )
    before = files(trace)
    found = trace.sql(sql).rows
    assert len(found) > 100
    for name, kind, count in found:
        given_ = ", ".join([f"'{trace.path.parent}/canary.csv'"] * min(int(count), 3))
        text = told(trace, f"SELECT {name}({given_})" if kind == "scalar" else f"FROM {name}({given_})")
        assert CANARY not in text.replace(str(trace.path.parent), "")
    assert files(trace) == before


WORDS = st.sampled_from(
    [
        "SELECT",
        "FROM",
        "WITH",
        "x",
        "AS",
        "(",
        ")",
        "COPY",
        "TO",
        "INSERT",
        "INTO",
        "ATTACH",
        ";",
        ",",
        "*",
        "1",
        "'a'",
        "slices",
        "UNION",
        "ALL",
        "WHERE",
        "PIVOT",
        "ON",
        "USING",
        "SET",
        "=",
        "EXPLAIN",
        "read_text('{0}')",
        "read_blob('{0}')",
        "glob('{1}/*')",
        "'{1}/out.csv'",
        "'{2}/slices.parquet'",
        "query(",
        "enable_logging(",
        "storage='file'",
        "RETURNING",
        "--",
        "/*",
        "*/",
        "$$",
        "RECURSIVE",
        "LATERAL",
        "VALUES",
        "DELETE",
        "CALL",
    ]
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """One more, of one kernel, for the random statements."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "canary.csv").write_text(f"{CANARY}\n1\n")
    return make_trace(folder / "t", [("kernel", "k", 40, 30, "s")])


@given(words=st.lists(WORDS, min_size=1, max_size=14), part=st.sampled_from([*READS, *WRITES, *GOOD]))
@examples(15, 7000)
def test_random_statements_read_and_write_nothing_else(words: list[str], part: str, shared: Trace) -> None:
    before = files(shared)
    text = " ".join(words)
    for sql in (text, f"{text} {part}", f"WITH x AS ({part}) {text} FROM x"):
        with contextlib.suppress(KeyError, IndexError, ValueError):  # braces of the statement itself
            assert CANARY not in told(shared, put(sql, shared))
    assert files(shared) == before
