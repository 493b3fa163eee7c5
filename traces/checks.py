"""The invariants of the trace format, each one SQL query that must return no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.traces.schema import TABLES

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


def problems(trace: Trace) -> list[str]:
    """Every broken invariant as one sentence; empty when the trace is sound."""
    found: list[str] = []
    for table in TABLES.values():
        for column in table.columns:
            if column.required:
                missing = trace.sql(
                    f'SELECT count(*) FROM "{table.name}" WHERE "{column.name}" IS NULL'
                ).scalar()
                if missing:
                    found.append(f"{table.name}.{column.name} is NULL in {missing} rows")
    return found
