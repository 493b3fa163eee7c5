"""The documented tables between the parts of the nsys reader are those that are made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profrun.collectors.nsys import reader
from profrun.collectors.nsys.tables import DERIVED, STAGES
from profrun.traces.writer import TraceWriter
from tests.collectors.nsys.exports import KERNEL, RUNTIME, gpid, gtid, make_export, trace_of
from tests.conftest import ROOT


def test_the_tables_have_the_documented_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, set[str]] = {}
    real = reader._drop_staging

    def watched(writer: TraceWriter) -> None:
        query = "SELECT table_name, column_name FROM duckdb_columns() WHERE starts_with(table_name, 'n_')"
        for table, column in writer.con.execute(query).fetchall():
            found.setdefault(table, set()).add(column)
        real(writer)

    monkeypatch.setattr(reader, "_drop_staging", watched)
    call = {"start": 0, "end": 5, "globalTid": gtid(7, 8), "correlationId": 1, "nameId": 1}
    work = {"start": 9, "end": 12, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 1}
    rows = {RUNTIME: [call], KERNEL: [{**work, "globalPid": gpid(7), "demangledName": 2}]}
    trace_of(tmp_path, make_export(tmp_path / "x.sqlite", rows, ["", "cudaLaunchKernel", "gemm"])).close()
    documented = {table: set(names.split(", ")) for table, names in DERIVED.items()}
    assert {table: found.get(table) for table in documented} == documented


def test_every_table_of_several_modules_is_documented() -> None:
    users: dict[str, set[str]] = {}
    for path in (ROOT / "collectors/nsys").glob("*.py"):
        for table in set(re.findall(r"\bn_[a-z_]+\b", path.read_text())):
            users.setdefault(table, set()).add(path.stem)
    shared = {table for table, modules in users.items() if len(modules - {"tables"}) > 1}
    staged = {stage.name for stage in STAGES}
    assert (
        shared - staged - {"n_kind", "n_nest"} == DERIVED.keys()
    )  # n_kind is a type, n_nest is only dropped
