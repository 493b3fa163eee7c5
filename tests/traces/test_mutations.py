"""A sound trace is changed in one place at a time: the check refuses what naive SQL refuses, the writer too.

Trace.check() and the writer ask the same code (``checks.problems``), so that no trace can pass one and fail
the other; here each is held against rules written a second time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest

from profrun.errors import InputError
from profrun.traces import checks
from profrun.traces.meta import TraceMeta
from profrun.traces.schema import TABLES
from profrun.traces.trace import Trace
from profrun.traces.writer import TraceWriter
from tests.tracekit import make_trace
from tests.traces import oracle

SLICES: list[tuple[Any, ...]] = [
    ("step", "profrun.step#0", 0, 200, "main", {"depth": 0}),
    ("op", "add", 0, 100, "main", {"parent": 0, "depth": 1, "ops.sequence": 1}),
    ("api", "launch", 10, 20, "main", {"parent": 1, "depth": 2, "correlation": 7}),
    ("kernel", "k", 50, 30, "stream 7", {"launch": 2, "kernels.grid_x": 1, "kernels.est_occupancy": 0.5}),
    ("memcpy", "copy", 90, 5, "stream 7", {"copies.direction": "HtoD", "copies.bytes": 4}),
    ("memset", "fill", 95, 5, "stream 7", {"copies.direction": "memset"}),
    ("kernel", "ncclDevKernel_AllReduce", 100, 5, "stream 7", {"collectives.op": "allreduce"}),
    ("op", "mul", 120, 0, "other", {"depth": 0, "ops.flops": 2}),
]
SIDE: dict[str, list[dict[str, Any]]] = {
    "tracks": [{"track": 3, "kind": "counter", "process": 0, "name": "memory"}],
    "counters": [{"track": 3, "ts_ns": 5, "name": "memory", "value": 1.0, "unit": "byte"}],
    "metrics": [{"slice": 3, "name": "cycles", "value": 10.0, "unit": "cycle"}],
    "issues": [{"code": "odd", "count": 1, "message": "something"}],
}
NUMBERS = ("NULL", "-1", "0", "1", "2", "3", "7", "8", "99", "2147483647", "9223372036854775807")
TEXTS = ("NULL", "''", "'kernel'", "'op'", "'api'", "'memset'", "'HtoD'", "'thread'", "'stream'", "'x'")
DOUBLES = ("NULL", "0.5", "-1", "2", "'nan'::DOUBLE", "'inf'::DOUBLE")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[duckdb.DuckDBPyConnection, Any]]:
    """The sound trace as tables that can be changed, and its meta."""
    folder = tmp_path_factory.mktemp("sound") / "t"
    con = duckdb.connect(":memory:")
    with make_trace(folder, SLICES, side=SIDE) as trace:
        for name in TABLES:
            con.execute(f"CREATE TABLE \"{name}\" AS FROM '{folder}/{name}.parquet'")
        yield con, trace.meta
    con.close()


def changes() -> list[tuple[str, str]]:
    """Every (table, change of one cell, of one row, or of one row's existence) that is tried."""
    found = []
    for table in TABLES.values():
        rows = range({"slices": len(SLICES), "tracks": 4}.get(table.name, 2))
        for column in table.columns:
            values = {"VARCHAR": TEXTS, "DOUBLE": DOUBLES, "BOOLEAN": ("NULL", "true")}.get(
                column.type, NUMBERS
            )
            for value in values:
                for row in rows:
                    found.append(
                        (
                            table.name,
                            f'UPDATE "{table.name}" SET "{column.name}" = {value} WHERE rowid = {row}',
                        )
                    )
        found += [(table.name, f'DELETE FROM "{table.name}" WHERE rowid = {row}') for row in rows]
        found.append((table.name, f'INSERT INTO "{table.name}" FROM "{table.name}" LIMIT 1'))
    return found


def same(engine: tuple[duckdb.DuckDBPyConnection, Any], change: str) -> bool:
    """Make one change, hold the check against the oracle, take the change back; was it refused?"""
    con, meta = engine
    con.execute("BEGIN")
    try:
        try:
            con.execute(change)
        except duckdb.ConversionException:  # the value does not fit into the column
            return False
        counts = {
            "rows": {name: con.execute(f'SELECT count(*) FROM "{name}"').fetchall()[0][0] for name in TABLES},
            "slices": dict(con.execute("SELECT kind, count(*) FROM slices GROUP BY kind").fetchall()),
        }
        said = checks.problems(con, cast("TraceMeta", {**meta, "counts": counts}))
        expected = oracle.broken(con)
        assert bool(said) == bool(expected), (change, said, expected)
        return bool(said)
    finally:
        con.execute("ROLLBACK")


def test_changes_are_refused_as_by_naive_sql(engine: tuple[duckdb.DuckDBPyConnection, Any]) -> None:
    assert not same(engine, "SELECT 1")
    chosen = random.Random(20).sample(changes(), 40)
    refused = [same(engine, change) for _, change in chosen]
    assert 8 < sum(refused) < 32, sum(refused)  # the changes are neither all fatal nor all harmless


@pytest.mark.thorough
def test_many_changes_are_refused_as_by_naive_sql(engine: tuple[duckdb.DuckDBPyConnection, Any]) -> None:
    for _, change in random.Random(4).sample(changes(), 700):
        same(engine, change)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE slices SET parent = 3 WHERE slice = 2",
        "UPDATE slices SET launch = 1 WHERE slice = 2",
        "UPDATE slices SET name = '' WHERE slice = 4",
        "UPDATE slices SET slice = 9 WHERE slice = 4",
        "DELETE FROM kernels WHERE slice = 6",
        "UPDATE copies SET direction = 'DtoH' WHERE slice = 5",
        "UPDATE slices SET depth = NULL WHERE slice = 1",
        "UPDATE tracks SET device = NULL WHERE kind = 'stream'",
        "ALTER TABLE slices ALTER track TYPE BIGINT",
    ],
)
def test_the_writer_refuses_what_the_check_of_the_folder_refuses(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its own check the writer writes the folder and Trace.check() refuses it; with it, nothing."""
    plain = TraceWriter.finish

    def changed(self: TraceWriter, *, check: bool = False) -> Path:
        self.con.execute(change)
        return plain(self, check=bool(ask))

    monkeypatch.setattr(TraceWriter, "finish", changed)
    ask: list[bool] = []
    with make_trace(tmp_path / "a", SLICES, side=SIDE) as trace, pytest.raises(InputError) as refused:
        trace.check()
    ask.append(True)
    with pytest.raises(RuntimeError) as raised:
        make_trace(tmp_path / "b", SLICES, side=SIDE)
    assert str(raised.value).partition("format: ")[2] == str(refused.value).partition("format: ")[2]
    assert not (tmp_path / "b").exists()


def test_the_writer_asks_the_files_and_not_what_was_staged(tmp_path: Path) -> None:
    """A delivered query may say anything: what counts is what stands in the file."""
    with TraceWriter(tmp_path / "t") as writer:
        writer.meta.update({"source": "synthetic", "collector": "torch"})
        writer.insert("processes", ("process", "pid", "rank"), [(0, 1, 0)])
        writer.deliver(
            "processes", "SELECT * REPLACE (process + random()::INTEGER + 1 AS process) FROM processes"
        )
        with pytest.raises(RuntimeError, match="ids of processes run from"):
            writer.finish(check=True)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("begin", [False, True])
def test_delivered_names_keep_the_order_and_any_number(tmp_path: Path, begin: bool) -> None:
    for few, count in (("few", 40), ("many", 20_000)):
        with TraceWriter(tmp_path / few) as writer:
            writer.meta.update({"source": "synthetic", "collector": "torch"})
            writer.insert("processes", ("process", "pid", "rank"), [(0, 1, 0)])
            writer.insert("tracks", ("track", "kind", "process"), [(0, "thread", 0)])
            writer.con.execute(
                "CREATE TABLE texts AS SELECT i AS label, 'name ' || (i % 9999) AS name "
                f"FROM range({count}) t(i)"
            )
            name = writer.names("texts", f"(i % {count})")
            writer.deliver(
                "slices",
                f"SELECT i AS slice, 'range' AS kind, {name} AS name, i AS ts_ns, 0::BIGINT AS dur_ns, "
                "0 AS track, NULL::BIGINT AS parent, 0 AS depth, NULL::BIGINT AS correlation, "
                "NULL::BIGINT AS launch FROM range(400000) t(i)",
                begin=begin,
            )
            writer.finish(check=True)
        with Trace(tmp_path / few) as trace:
            trace.check()
            wrong = trace.sql(
                f"SELECT count(*) FROM (SELECT *, row_number() OVER () - 1 AS row FROM slices) "
                f"WHERE slice <> row OR name <> 'name ' || (slice % {count} % 9999)"
            ).scalar()
            assert wrong == 0


@pytest.mark.parametrize("kinds", [("thread", "stream", "stream", "thread"), ("thread", "stream") * 40])
def test_rows_of_threads_and_others_come_in_the_order_of_tracks(
    tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    with TraceWriter(tmp_path / "t") as writer:
        for track, kind in enumerate(kinds):
            writer.insert("tracks", ("track", "kind", "process"), [(track, kind, 0)])
        for name, thread in (("calls", True), ("others", False)):
            tracks = [track for track, kind in enumerate(kinds) if (kind == "thread") is thread]
            writer.con.execute(
                f"CREATE TABLE {name} AS SELECT track, ts FROM (SELECT unnest({tracks}) AS track), "
                "range(1000) t(ts) ORDER BY track, ts"
            )
        query = writer.by_track("SELECT track, ts FROM calls", "SELECT track, ts FROM others", "track, ts")
        found = writer.con.execute(query).fetchall()
    assert found == [(track, ts) for track in range(len(kinds)) for ts in range(1000)]
