"""What every AMD reader fills before a trace is built: one neutral shape for five tools' records.

A reader only says what the file holds (times in ns, ids as the tool wrote them, grids in the tool's unit);
``build.build`` turns that into the trace's tables, so that every rule about grids, devices, tracks, nesting
and launches is in one place. The tables are the writer's, which drops what is left of them: beyond its
memory limit they spill to disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from profrun.errors import InputError
from profrun.traces.nest import KIND_ORDER
from profrun.traces.schema import SLICE_KINDS
from profrun.traces.writer import TraceWriter

Column = np.ndarray[Any, Any]
"""Values of one column."""

MISSING = -(2**63)
"""Stands for NULL in integer columns on their way into DuckDB (numpy has no integer NULL)."""

_TABLES = {
    # names of host, gpu and overhead rows, which hold ids: a kernel name may have thousands of characters
    "amd_name": "id BIGINT, name VARCHAR",
    # host slices: API calls and ranges. prio: 0 HIP, 1 other APIs; the launch of a kernel is the lowest.
    "amd_host": "proc INTEGER, tid BIGINT, kind amd_kind, name BIGINT, start BIGINT, stop BIGINT, "
    "corr BIGINT, prio INTEGER",
    # kernels, copies and fills. Grid g* and block w* are in the tool's unit; unit says which:
    # 'items' (work-items), 'blocks', 'product' (only the products of the three dimensions: gx and wx).
    "amd_gpu": "proc INTEGER, what VARCHAR, agent BIGINT, queue BIGINT, stream BIGINT, name BIGINT, "
    "start BIGINT, stop BIGINT, corr BIGINT, dispatch BIGINT, unit VARCHAR, gx BIGINT, gy BIGINT, gz BIGINT, "
    "wx BIGINT, wy BIGINT, wz BIGINT, vgpr BIGINT, accum BIGINT, lds_static BIGINT, lds_total BIGINT, "
    "scratch BIGINT, graph BIGINT, graph_node BIGINT, direction VARCHAR, bytes BIGINT, src BIGINT, dst "
    "BIGINT",
    # hardware counters of a dispatch
    "amd_metric": "proc INTEGER, dispatch BIGINT, name VARCHAR, value DOUBLE, unit VARCHAR",
    # samples over time of one GPU (agent) or of the process (agent NULL)
    "amd_counter": "proc INTEGER, agent BIGINT, ts BIGINT, name VARCHAR, value DOUBLE, unit VARCHAR",
    # memory allocations: op 'alloc' or 'free'
    "amd_alloc": "proc INTEGER, agent BIGINT, op VARCHAR, address BIGINT, bytes BIGINT, stop BIGINT",
    # scratch memory and other work of the runtime, without a thread of its own
    "amd_overhead": "proc INTEGER, name BIGINT, start BIGINT, stop BIGINT",
    "amd_process": "proc INTEGER, pid BIGINT, rank INTEGER, host VARCHAR, name VARCHAR, node BIGINT, "
    "guessed BOOLEAN",
    # agents by the key that records use; ordinal NULL when no table has it
    "amd_agent": "proc INTEGER, agent BIGINT, gpu BOOLEAN, ordinal INTEGER, name VARCHAR, arch VARCHAR, "
    "cu INTEGER, wave INTEGER, threads INTEGER, lds BIGINT, memory BIGINT, uuid VARCHAR",
}


_KINDS = (*KIND_ORDER, *(kind for kind in SLICE_KINDS if kind not in KIND_ORDER))
"""Kinds of slices, outermost first: rows are sorted by them."""

_NAMED = ("amd_host", "amd_gpu", "amd_overhead")


class Staging:
    """The staging tables of one trace.

    Attributes:
        writer: the trace being written.
        con: its DuckDB connection.
        by_queue: the tracks of GPU work are queues, not streams.
    """

    def __init__(self, writer: TraceWriter) -> None:
        self.writer = writer
        self.con = writer.con
        self.by_queue = False
        self._next = 0
        self._names: dict[str, int] = {}
        self._name_ids = 0
        kinds = ", ".join(f"'{kind}'" for kind in _KINDS)
        self.con.execute(f"CREATE TYPE amd_kind AS ENUM ({kinds})")
        for name, columns in _TABLES.items():
            self.con.execute(f"CREATE TABLE {name} ({columns})")

    def process(
        self,
        pid: int,
        *,
        rank: int | None = None,
        host: str | None = None,
        name: str | None = None,
        node: int | None = None,
    ) -> int:
        """Register a process; returns its number. ``node``: same value, same host clock."""
        number = self._next
        self._next += 1
        self.con.execute(
            "INSERT INTO amd_process VALUES (?, ?, ?, ?, ?, ?, false)", [number, pid, rank, host, name, node]
        )
        return number

    def agent(self, proc: int, agent: int, gpu: bool, ordinal: int | None, **known: object) -> None:
        """Register a CPU or GPU agent under the key that records use; ``known``: columns of amd_agent."""
        values = {"proc": proc, "agent": agent, "gpu": gpu, "ordinal": ordinal, **known}
        marks = ", ".join("?" for _ in values)
        self.con.execute(
            f"INSERT INTO amd_agent ({', '.join(values)}) VALUES ({marks})", list(values.values())
        )

    def add(self, table: str, columns: Mapping[str, Sequence[Any] | Column], proc: int) -> None:
        """Append columns of equal length; integers may hold ``MISSING``, texts None, floats NaN for NULL."""
        arrays: dict[str, Column] = {}
        selects = [f"{proc} AS proc"]
        if "name" in columns and table in _NAMED:
            columns = {**columns, "name": [self._name(name) for name in columns["name"]]}
        for name, values in columns.items():
            array = values if isinstance(values, np.ndarray) else _array(name, values)
            if not len(array):
                return
            arrays[name] = array
            if array.dtype.kind == "i":
                selects.append(f"nullif({name}, {MISSING}) AS {name}")
            elif array.dtype.kind == "f":
                selects.append(f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END AS {name}")
            else:
                selects.append(name)
        self.con.register("amd_batch", arrays)
        self.con.execute(f"INSERT INTO {table} BY NAME SELECT {', '.join(selects)} FROM amd_batch")
        self.con.unregister("amd_batch")

    def insert(self, table: str, select: str, order: str | None = None) -> None:
        """Append the rows of a SELECT by column names; its ``name`` is text.

        ``order``: what to sort by, wanted where the SELECT joins or partitions: such rows come in the order
        of the engine's threads, and the ids of slices are numbers of rows.
        """
        con = self.con
        con.execute(f"CREATE TEMP TABLE amd_in AS {select}" + (f" ORDER BY {order}" if order else ""))
        self._flush_names()
        first = self.name_ids("SELECT count(DISTINCT name) FROM amd_in")
        con.execute(
            f"INSERT INTO amd_name SELECT {first} + row_number() OVER () - 1, name FROM "
            "(SELECT DISTINCT name FROM amd_in WHERE name IS NOT NULL)"
        )
        con.execute(
            f"INSERT INTO {table} BY NAME SELECT i.* EXCLUDE (name), n.id AS name FROM amd_in i "
            f"LEFT JOIN (SELECT id, name FROM amd_name WHERE id >= {first}) n ON n.name = i.name "
            "ORDER BY i.rowid"
        )
        con.execute("DROP TABLE amd_in")

    def name_ids(self, query: str) -> int:
        """Reserve as many ids of names as the query says; returns the first."""
        first = self._name_ids
        row = self.con.execute(query).fetchone()
        self._name_ids += int(row[0] or 0) if row else 0
        return first

    def _name(self, name: str | None) -> int | None:
        if name is None:
            return None
        if name not in self._names:
            self._names[name] = self._name_ids
            self._name_ids += 1
        return self._names[name]

    def _flush_names(self) -> None:
        """Hand names met in Python to DuckDB; they are known by their ids from then on."""
        names, self._names = self._names, {}
        if names:
            batch = {
                "id": np.array(list(names.values()), dtype=np.int64),
                "name": np.array(list(names), dtype=object),
            }
            self.con.register("amd_batch", batch)
            self.con.execute("INSERT INTO amd_name SELECT id, name FROM amd_batch")
            self.con.unregister("amd_batch")

    def names_done(self) -> None:
        """Call once all is staged: ``amd_name`` then holds every name."""
        self._flush_names()

    def drop(self, *kept: str) -> None:
        """Remove the staging tables but for some."""
        for name in _TABLES:
            if name not in kept:
                self.con.execute(f"DROP TABLE {name}")


def _array(name: str, values: Sequence[Any]) -> Column:
    """Integers, floats or texts as numpy has them; anything mixed is text or refused."""
    first = next((value for value in values if value is not None), None)
    try:
        if isinstance(first, float):
            return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        if first is None or isinstance(first, int):
            return np.array([MISSING if value is None else value for value in values], dtype=np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"column {name} holds values that are not numbers", why=str(error), fix="record the run again"
        ) from error
    return np.array(values, dtype=object)
