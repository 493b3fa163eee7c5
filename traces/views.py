"""Named SQL views that the cli, the reports and users all ask. Each has a doc line (docs/trace-format.md)."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb


@dataclass(frozen=True)
class View:
    """A named view: what a row is, and its SQL over the tables and earlier views."""

    name: str
    row: str
    sql: str


VIEWS: tuple[View, ...] = (
    View(
        "gpu_slices",
        "kernel, memcpy or memset, with its device and process",
        "SELECT s.*, t.device, t.process, t.native_id AS stream FROM slices s JOIN tracks t USING (track) "
        "WHERE s.kind IN ('kernel', 'memcpy', 'memset')",
    ),
)


def create_views(con: duckdb.DuckDBPyConnection) -> None:
    """Create every named view, in order, on a connection that has the tables."""
    for view in VIEWS:
        con.execute(f'CREATE VIEW "{view.name}" AS {view.sql}')
