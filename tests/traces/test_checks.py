"""Each invariant is broken once, and the check says which."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest

from profrun.errors import InputError, UnavailableError
from profrun.traces import checks
from profrun.traces.checks import problems
from profrun.traces.meta import TraceMeta
from profrun.traces.schema import TABLES
from profrun.traces.trace import Trace
from profrun.traces.writer import TraceWriter
from tests.tracekit import make_trace
from tests.traces import oracle
from tests.traces.sound import SIDE, SLICES

SOUND: list[tuple[Any, ...]] = [
    ("op", "add", 0, 100, "main", {"depth": 0, "ops.sequence": 1}),
    ("api", "launch", 10, 20, "main", {"parent": 0, "depth": 1, "correlation": 7}),
    ("kernel", "k", 50, 30, "stream 7", {"launch": 1, "correlation": 7, "kernels.grid_x": 1}),
    ("memcpy", "copy", 90, 5, "stream 7", {"copies.direction": "HtoD"}),
]


def test_a_sound_trace_has_no_problem(tmp_path: Path) -> None:
    with make_trace(tmp_path / "t", SOUND) as trace:
        assert problems(trace.tables, trace.meta) == []
        trace.check()


@pytest.mark.parametrize(
    ("place", "change", "said"),
    [
        (0, ("op", "add", 0, -1, "main", {"depth": 0, "ops.sequence": 1}), "end before they start"),
        (0, ("op", "", 0, 100, "main", {"depth": 0, "ops.sequence": 1}), "have an empty name"),
        (0, ("op", "add", 0, 100, "main", {"depth": 0}), "slices have no row in ops"),
        (0, ("thing", "add", 0, 100, "main", {}), "have a kind that the format does not know"),
        (0, ("kernel", "k", 0, 100, "main", {}), "on a track without a device"),
        (0, ("op", "add", 0, 25, "main", {"depth": 0, "ops.sequence": 1}), "not inside their parent"),
        (0, ("op", "add", 0, 100, "main", {"depth": 1, "ops.sequence": 1}), "depth other than 0"),
        (
            1,
            ("api", "launch", 10, 20, "main", {"parent": 9, "depth": 1}),
            "have a parent that is not in slices",
        ),
        (1, ("api", "launch", 10, 20, "main", {"parent": 0, "depth": 2}), "not one level below it"),
        (1, ("api", "launch", 10, 20, "main", {"launch": 0}), "host slices have a launch"),
        (2, ("kernel", "k", 50, 30, "stream 7", {"launch": 3}), "launches are no host slices"),
        (2, ("kernel", "k", 50, 30, "stream 7", {"kernels.grid_x": 0}), "a grid or block below 1"),
        (2, ("kernel", "k", 50, 30, "stream 7", {"kernels.est_occupancy": 7.0}), "occupancy outside 0 to 1"),
        (3, ("memcpy", "c", 90, 5, "stream 7", {"copies.direction": "memset"}), "memset as direction"),
        (3, ("memcpy", "c", 90, 5, "stream 7", {"copies.direction": "up"}), "have a direction that"),
        (
            3,
            ("memcpy", "c", 90, 5, "stream 7", {"ops.sequence": 1}),
            "rows of ops describe slices of another",
        ),
    ],
)
def test_each_broken_invariant_is_named(
    place: int, change: tuple[Any, ...], said: str, tmp_path: Path
) -> None:
    slices = [*SOUND[:place], change, *SOUND[place + 1 :]]
    with make_trace(tmp_path / "t", slices) as trace:
        found = problems(trace.tables, trace.meta)
        assert any(said in problem for problem in found), found
        with pytest.raises(InputError, match="breaks the trace format"):
            trace.check()


FRAME = {"stack": 0, "frame": 0, "file": "/me/train.py", "line": 9, "function": "main"}


@pytest.mark.parametrize(
    ("frames", "calls", "said"),
    [
        ([FRAME], [{"slice": 1, "stack": 0}], []),
        (
            [FRAME],
            [{"slice": 1, "stack": 1}],
            ["1 call_stacks name a stack that is not in stacks (first: 1)"],
        ),
        (
            [FRAME],
            [{"slice": 1, "stack": 0}] * 2,
            ["call_stacks has 2 rows but 1 distinct values of slice"],
        ),
        (
            [FRAME],
            [{"slice": 0, "stack": 0}],
            ["1 rows of call_stacks describe slices of another kind (first: 0)"],
        ),
        ([FRAME] * 2, [], ["1 stacks have a line below 1 or a frame below 0, or a frame twice (first: 0)"]),
        (
            [FRAME | {"line": 0}],
            [],
            ["1 stacks have a line below 1 or a frame below 0, or a frame twice (first: 0)"],
        ),
        ([FRAME], [{"slice": 9, "stack": 0}], ["1 rows of call_stacks have a slice that is not in slices"]),
    ],
)
def test_stacks_of_calls(
    frames: list[dict[str, Any]], calls: list[dict[str, Any]], said: list[str], tmp_path: Path
) -> None:
    with make_trace(tmp_path / "t", SOUND, side={"stacks": frames, "call_stacks": calls}) as trace:
        assert problems(trace.tables, trace.meta) == said


def test_ids_and_counts(tmp_path: Path) -> None:
    make_trace(tmp_path / "a", SOUND, side={"tracks": [{"track": 1, "kind": "thread", "process": 0}]}).close()
    with Trace(tmp_path / "a") as trace:
        assert problems(trace.tables, trace.meta) == ["tracks has 3 rows but 2 distinct values of track"]
    make_trace(tmp_path / "b", SOUND, side={"tracks": [{"track": 9, "kind": "thread", "process": 0}]}).close()
    with Trace(tmp_path / "b") as trace:
        assert problems(trace.tables, trace.meta) == [
            "ids of tracks run from 0 to 9 in 3 rows instead of being dense from 0"
        ]
    make_trace(tmp_path / "c", SOUND).close()
    meta = json.loads((tmp_path / "c" / "meta.json").read_text())
    meta["counts"]["slices"]["kernel"] = 5
    (tmp_path / "c" / "meta.json").write_text(json.dumps(meta))
    with Trace(tmp_path / "c") as trace:
        trace.meta["clock"] = None  # type: ignore[typeddict-item] # no file with it is opened
        assert [problem.split(" is ")[0] for problem in problems(trace.tables, trace.meta)] == [
            "meta.clock",
            "meta.counts.slices",
        ]


def test_files_that_break_the_format_leave_nothing(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t") as writer:
        writer.meta.update({"source": "synthetic", "collector": "torch"})
        writer.meta["files"] = [{"name": "a.json", "bytes": 5, "sha256": None}]
        writer.insert("processes", ("process", "pid", "rank"), [(3, 1, 0)])
        with pytest.raises(InputError, match=r"a\.json cannot become a trace: .*; record or export it again"):
            writer.finish(check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    with (
        pytest.raises(UnavailableError, match=r"no space left to write .*; free some space"),
        TraceWriter(tmp_path / "t"),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_out_must_not_exist(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    TraceWriter(tmp_path / "t").__exit__(None, None, None)  # an empty folder is fine
    (tmp_path / "t" / "x").touch()
    with pytest.raises(InputError, match="exists already"):
        TraceWriter(tmp_path / "t")


def test_a_damaged_table_or_a_wrong_query_is_one_clear_line(tmp_path: Path) -> None:
    make_trace(tmp_path / "t", SOUND).close()
    with Trace(tmp_path / "t") as trace, pytest.raises(InputError, match=r"query failed: .*nothing") as error:
        trace.sql("SELECT nothing FROM slices")
    assert "\n" not in str(error.value)
    table = tmp_path / "t" / "slices.parquet"
    table.write_bytes(table.read_bytes()[:100])
    with pytest.raises(InputError, match=r"slices\.parquet cannot be read: .*; normalize the source again"):
        Trace(tmp_path / "t")
    with pytest.raises(InputError, match=r"is not a trace: it has no meta\.json"):
        Trace(tmp_path)
    (tmp_path / "t" / "meta.json").write_text('{"format_version": "2.0"}')
    with pytest.raises(InputError, match=r"has trace format 2\.0, this profrun reads"):
        Trace(tmp_path / "t")


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
    chosen = random.Random(20).sample(changes(), 20)
    refused = [same(engine, change) for _, change in chosen]
    assert 4 < sum(refused) < 16, sum(refused)  # the changes are neither all fatal nor all harmless


@pytest.mark.thorough
def test_many_changes_are_refused_as_by_naive_sql(engine: tuple[duckdb.DuckDBPyConnection, Any]) -> None:
    for _, change in random.Random(4).sample(changes(), 150):
        same(engine, change)
