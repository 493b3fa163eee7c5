"""An open trace: its named views are there for whoever asks, and cost nothing until then."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.trace.summary import summarize
from profrun.errors import InputError
from profrun.traces.schema import FORMAT_VERSION
from profrun.traces.trace import Trace
from profrun.traces.views import VIEWS
from tests.tracekit import make_trace

ROWS = [
    ("step", "ProfilerStep#3", 0, 100, "main"),
    ("op", "aten::mm", 10, 20, "main"),
    ("kernel", "k", 40, 30, "stream 7", {"launch": 1}),
]
LISTED = "SELECT count(*) FROM duckdb_views() WHERE NOT internal AND view_name NOT IN ({})"


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return make_trace(tmp_path / "trace", ROWS)


def views(trace: Trace) -> int:
    from profrun.traces.schema import TABLES

    query = LISTED.format(", ".join(f"'{table.name}'" for table in TABLES.values()))
    return int(trace.tables.execute(query).fetchall()[0][0])


def test_summary_and_diagnosis_make_no_view(trace: Trace) -> None:
    summarize(trace)
    diagnose(trace)
    assert views(trace) == 0


@pytest.mark.parametrize("query", ["SELECT step FROM steps", 'SELECT "step" FROM "STEPS"',
                                   "FROM query('SELECT step FROM steps')"])  # fmt: skip
def test_a_query_that_names_a_view_has_it(trace: Trace, query: str) -> None:
    assert trace.sql(query).rows == [(3,)]
    assert views(trace) == len(VIEWS)


@pytest.mark.parametrize("query", ["SHOW TABLES", "SELECT table_name FROM information_schema.tables",
                                   "SELECT view_name FROM duckdb_views()"])  # fmt: skip
def test_a_list_of_what_is_there_has_the_views(trace: Trace, query: str) -> None:
    assert {view.name for view in VIEWS} <= {row[0] for row in trace.sql(query).rows}


def test_the_connection_has_the_views(trace: Trace) -> None:
    assert trace.con.cursor().execute("SELECT count(*) FROM kernel_summary").fetchall() == [(1,)]


def test_without_views_there_are_none(tmp_path: Path) -> None:
    make_trace(tmp_path / "trace", ROWS).close()
    with Trace(tmp_path / "trace", views=False) as plain:
        assert plain.sql("SHOW TABLES").rows
        assert views(plain) == 0


def test_a_file_that_is_missing_is_an_empty_table_only_where_it_was_one(trace: Trace) -> None:
    trace.close()
    (trace.path / "metrics.parquet").unlink()
    with Trace(trace.path) as again:
        assert again.sql("SELECT count(*) FROM metrics").scalar() == 0
    (trace.path / "slices.parquet").unlink()
    with pytest.raises(InputError, match=r"slices\.parquet is missing: the trace had 3 rows in it; copy"):
        Trace(trace.path)


def test_a_trace_of_an_older_minor_opens_with_the_new_columns_missing(tmp_path: Path) -> None:
    make_trace(tmp_path / "trace", ROWS[:1]).close()
    for table, column in (("processes", "rank_guessed"), ("devices", "host_ordinal")):
        file = tmp_path / "trace" / f"{table}.parquet"
        before = f"SELECT * EXCLUDE ({column}) FROM read_parquet('{file}')"
        with duckdb.connect() as con:
            con.execute(f"COPY ({before}) TO '{tmp_path}/old.parquet' (FORMAT parquet)")
        (tmp_path / "old.parquet").rename(file)
    meta = tmp_path / "trace" / "meta.json"
    meta.write_text(meta.read_text().replace(f'"{FORMAT_VERSION}"', '"1.0"'))
    with Trace(tmp_path / "trace") as trace:
        assert trace.sql("SELECT rank, rank_guessed FROM processes").rows == [(0, None)]
        assert trace.sql("SELECT ordinal, host_ordinal FROM devices").rows == [(0, None)]
        trace.check()
        assert summarize(trace).steps
