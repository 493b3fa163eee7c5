"""The table ``kernel_address`` for queries: ``offer``.

It has a row for each GPU slice and each line behind it. ``part`` is the part of the slice's time that the
line has; the parts of a slice add up to 1, so ``sum(dur_ns * part)`` counts no time twice. A slice without
an address is one row with the reason in ``unresolved``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.addresses import UNRESOLVED, Addresses
from profrun.traces.trace import registered

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

NAME = re.compile(r"\bkernel_address\b", re.IGNORECASE)
"""Finds the name of the table in a query."""
_ADDRESS = """
CREATE TABLE profrun_address (
    address BIGINT, part DOUBLE, file VARCHAR, line INTEGER, function VARCHAR, module VARCHAR,
    backward BOOLEAN, via VARCHAR, generated VARCHAR, replayed BOOLEAN, unresolved VARCHAR
)
"""
_KERNEL_ADDRESS = """
CREATE TABLE kernel_address AS
SELECT s.slice, s.kind, s.name, s.ts_ns, s.dur_ns, a.* EXCLUDE (address)
FROM profrun_mapped m JOIN slices s USING (slice) JOIN profrun_address a USING (address)
ORDER BY s.ts_ns, s.slice, a.file, a.line
"""


def offer(trace: Trace, found: Addresses) -> None:
    """Make the table in the database of a trace, where it is not there yet.

    Args:
        found: the addresses of its GPU slices.
    """
    connection = trace.tables
    if connection.execute("FROM duckdb_tables() WHERE table_name = 'kernel_address'").fetchone():
        return
    connection.execute(_ADDRESS)
    rows = [
        (
            *(number, 1.0 / len(one.lines), line.file, line.line, line.function, one.module, one.backward),
            *(one.via, one.kernel, one.replayed, None),
        )
        for number, one in enumerate(found.table)
        for line in one.lines
    ]
    reasons = [(-1 - number, 1.0, *[None] * 8, text) for number, text in enumerate(UNRESOLVED.values())]
    connection.executemany(f"INSERT INTO profrun_address VALUES ({', '.join('?' * 11)})", [*rows, *reasons])
    address = np.where(found.of >= 0, found.of, -1 - found.why.astype(np.int64))
    columns = {"slice": found.gpu.astype(np.int64), "address": address.astype(np.int64)}
    with registered(connection, "profrun_mapped", columns):
        connection.execute(_KERNEL_ADDRESS)
