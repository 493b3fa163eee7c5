"""The documented tables between the parts of the kineto reader are those that are made, whoever parses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from profrun.collectors.torch import reader_issues, reader_tables
from profrun.collectors.torch.events import library
from profrun.collectors.torch.reader_handover import TABLES
from profrun.traces.writer import TraceWriter
from tests.collectors.torch.kineto import api, kernel, op, trace_of
from tests.conftest import ROOT, missing

EVENTS = [op("aten::mm", 0, 20, 1), api("cudaLaunchKernel", 5, 2, 7), kernel("gemm", 30, 9, 7)]


def columns(con: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """Columns of each of the reader's tables and views."""
    found: dict[str, set[str]] = {}
    query = "SELECT table_name, column_name FROM duckdb_columns() WHERE starts_with(table_name, 'k_')"
    for table, column in con.execute(query).fetchall():
        found.setdefault(table, set()).add(column)
    return found


@pytest.mark.parametrize("compiled", [True, False])
def test_the_tables_have_the_documented_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    if compiled and library() is None:
        missing("the compiled parser")
    monkeypatch.setenv("PROFRUN_COMPILED", "1" if compiled else "0")
    found: dict[str, set[str]] = {}
    placed, record = reader_tables.slices, reader_issues.record

    def before_slices(con: duckdb.DuckDBPyConnection, host_tracks: int) -> tuple[int, str | None]:
        found.update(columns(con))
        return placed(con, host_tracks)

    def at_the_end(writer: TraceWriter, *rest: Any) -> None:
        found.update(columns(writer.con))
        record(writer, *rest)

    monkeypatch.setattr(reader_tables, "slices", before_slices)
    monkeypatch.setattr(reader_issues, "record", at_the_end)
    trace_of(tmp_path, EVENTS).close()
    documented = {table: set(names.split(", ")) for table, names in TABLES.items()}
    assert {table: found.get(table) for table in documented} == documented


def test_every_table_of_several_modules_is_documented() -> None:
    users: dict[str, set[str]] = {}
    for path in (ROOT / "collectors/torch").glob("*.py"):
        for table in set(re.findall(r"\bk_[a-z_]+\b", path.read_text())):
            users.setdefault(table, set()).add(path.stem)
    shared = {table for table, modules in users.items() if len(modules - {"reader_handover"}) > 1}
    assert shared == TABLES.keys()
