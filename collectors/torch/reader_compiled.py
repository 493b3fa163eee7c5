"""Bring the events of kineto files into DuckDB with the compiled parser: the fast way.

Threads parse the pieces of the file (``reader_workers``), the calling thread gives their columns to DuckDB.
The parser is strict: a file in which it refuses anything (damage, a number with an exponent, an id above
int64, args that are no object) is left to ``reader_stage``, which repairs and counts. Times are exact:
decimals become int64 ns without a float in between.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from profrun.collectors.reading import Progress
from profrun.collectors.torch.events import MISSING, Refused
from profrun.collectors.torch.reader_cut import EventFile
from profrun.collectors.torch.reader_stage import COLLECTIVE, FILE_BITS, GPU, MEMORY, OTHER, OWNER
from profrun.collectors.torch.reader_workers import TABLES, TEXTS, TRIPLES, Columns, Numbers, parsed

if TYPE_CHECKING:
    import duckdb

HEAP = 1 << 17
"""Rows of a table that are given to DuckDB at once: 10 MB at most."""


def create(con: duckdb.DuckDBPyConnection) -> None:
    """Make the empty staging tables c_core, c_gpu, c_op and c_other."""
    for table, names in TABLES.items():
        beside = ", owner INTEGER, tie BIGINT, linked BOOLEAN" if table == "core" else ""
        columns = ", ".join(f"{name} {_type(name)}" for name in names)
        con.execute(f'CREATE TABLE c_{table} ("row" BIGINT, {columns}{beside})')


def drop(con: duckdb.DuckDBPyConnection) -> None:
    """Remove what ``create`` made."""
    for table in TABLES:
        con.execute(f"DROP TABLE c_{table}")


def gather(con: duckdb.DuckDBPyConnection, numbers: Numbers) -> None:
    """Offer the staged events as the tables that ``reader_handover`` lists."""
    texts = list(numbers.texts)
    con.execute("CREATE TABLE k_text (number INTEGER, text VARCHAR)")
    con.register("c_part", {"number": np.arange(len(texts)), "text": np.array(texts, dtype=object)})
    con.execute("INSERT INTO k_text SELECT number, text FROM c_part")
    con.unregister("c_part")
    con.execute(
        'CREATE VIEW k_core AS SELECT "row", owner, name, ts, dur, tie, '
        "CASE WHEN linked AND tie <> 0 THEN tie END AS corr FROM c_core"
    )
    con.execute("CREATE VIEW k_op AS FROM c_op")
    con.execute(f"CREATE VIEW k_gpu AS SELECT {_chosen(GPU)} FROM c_gpu c")
    con.execute(f"CREATE TABLE k_coll AS SELECT {_chosen(COLLECTIVE)} FROM c_coll c {_texts(COLLECTIVE)}")
    src = f'"row" >> {FILE_BITS} AS src'
    con.execute(f"CREATE VIEW k_memory AS SELECT {_chosen(MEMORY)}, {src} FROM c_memory c")
    con.execute(f"CREATE TABLE k_other AS SELECT {_chosen(OTHER)}, {src} FROM c_other c {_texts(OTHER)}")
    # All at once: the files of hundreds of ranks have ten thousands of owners.
    labels = np.array(list(numbers.owners), dtype=np.int64).reshape(-1, 1 + len(OWNER))
    names = ("src", *OWNER)
    columns = dict(zip(names, labels.T.copy(), strict=True))
    con.register("c_owner", {"owner": np.arange(len(labels)), **columns})
    values = (
        f"t_{name}.text AS {name}" if name in TEXTS else f"nullif(c.{name}, {MISSING}) AS {name}"
        for name in OWNER
    )
    con.execute(
        f"CREATE TABLE k_owner AS SELECT c.owner::INTEGER AS owner, c.src::INTEGER AS src, "
        f"{', '.join(values)}, e.events, e.first FROM c_owner c "
        "JOIN (SELECT owner, count(*) AS events, min(ts) AS first FROM k_core GROUP BY owner) e "
        f"ON e.owner = c.owner {_texts(OWNER)}"
    )
    con.unregister("c_owner")


def _chosen(columns: Sequence[str]) -> str:
    """Select list: texts instead of their numbers, lists instead of three columns."""
    values = ['"row"']
    for name in columns:
        flat = TRIPLES.get(name)
        if flat:
            values.append(f"CASE WHEN {flat[0]} IS NOT NULL THEN [{', '.join(flat)}] END AS {name}")
        else:
            values.append(f"t_{name}.text AS {name}" if name in TEXTS else f"c.{name}")
    return ", ".join(values)


def _texts(columns: Sequence[str]) -> str:
    return " ".join(
        f"LEFT JOIN k_text t_{name} ON t_{name}.number = c.{name}" for name in columns if name in TEXTS
    )


def _type(name: str) -> str:
    return "INTEGER" if name in TEXTS else "DOUBLE" if name == "occupancy" else "BIGINT"


class Heaps:
    """What waits for DuckDB, of each staging table; several small files are one statement.

    Args:
        con: connection with the tables of ``create``.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._heaps = {table: _Heap(con, table) for table in TABLES}

    def add(self, part: dict[str, Columns]) -> None:
        """Keep the rows of each table, or give DuckDB those of a table that are many."""
        for table, columns in part.items():
            self._heaps[table].add(columns)

    def flush(self) -> None:
        """Give DuckDB what waits."""
        for heap in self._heaps.values():
            heap.flush()


def stage(
    heaps: Heaps, numbers: Numbers, src: int, path: Path, compressed: bool, progress: Progress
) -> EventFile | None:
    """Read one file for the staging tables.

    Args:
        heaps: take its rows; ``flush`` them behind the last file.
        numbers: texts and owners of the recording so far.
        src: the file's number.
        path: the file.
        compressed: whether it is gzip.
        progress: called with bytes of the file read.

    Returns:
        The file with its keys and what was noticed; None when the parser refused it: ``drop`` what is there.

    Raises:
        InputError: no array of events in it.
    """
    file = EventFile(path, compressed)
    first = src << FILE_BITS
    try:
        file.open()
        with contextlib.closing(parsed(file, numbers, src, first)) as parts:
            for part in parts:
                heaps.add(part)
                progress(file.blocks.done, None)
    except Refused:
        return None
    finally:
        file.blocks.close()
    return file


class _Heap:
    """Parts of one table that wait for DuckDB: a statement costs milliseconds, whatever it brings."""

    def __init__(self, con: duckdb.DuckDBPyConnection, table: str) -> None:
        self._con, self._table = con, table
        self._parts: list[Columns] = []
        self._rows = 0

    def add(self, part: Columns) -> None:
        """Keep a part, or give all of them to DuckDB when they are many."""
        self._parts.append(part)
        self._rows += len(part["row"])
        if self._rows >= HEAP:
            self.flush()

    def flush(self) -> None:
        """Give DuckDB what waits."""
        if not self._parts:
            return
        joined: dict[str, Any] = {
            name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]
        }
        whole = {name for name in joined if name in ("row", "owner", "linked", "occupancy") or name in TEXTS}
        if "occupancy" in joined:
            bits = joined["occupancy"]
            joined["occupancy"] = np.ma.masked_array(bits.view(np.float64), mask=bits == MISSING)
        self._con.register("c_part", joined)
        values = (f'"{name}"' if name in whole else f"nullif({name}, {MISSING})" for name in joined)
        names = ", ".join(f'"{name}"' for name in joined)
        self._con.execute(f"INSERT INTO c_{self._table} ({names}) SELECT {', '.join(values)} FROM c_part")
        self._con.unregister("c_part")
        self._parts, self._rows = [], 0
