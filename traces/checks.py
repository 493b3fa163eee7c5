"""The invariants of the trace format, checked on the tables of a trace.

``problems`` checks all of them. ``Trace.check()`` calls it for a folder, and the writer calls it before a
folder appears, so what the writer accepts is what a reader accepts. Three things make it quick: conditions on
single rows and on small tables are one query each over all tables; conditions that join slices with slices
run on arrays (``checks_slices``), because dense ids make a join a look-up; and both run at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from profrun.traces.checks_slices import SIDE_KINDS, Slices
from profrun.traces.meta import META_KEYS, TraceMeta
from profrun.traces.schema import GPU_TRACKS, TABLES, VENDORS, Column, Table
from profrun.traces.shape import column_problems

if TYPE_CHECKING:
    import duckdb

_RULES = (
    (
        "stream, queue or copy tracks have no device",
        f"SELECT track FROM tracks WHERE kind IN {GPU_TRACKS} AND device IS NULL",
    ),
    (
        "tracks lie on a device of another process",
        "SELECT t.track FROM tracks t JOIN devices d USING (device) WHERE t.process <> d.process",
    ),
    (
        "counters lie on tracks that are not counter tracks",
        "SELECT c.track FROM counters c JOIN tracks t USING (track) WHERE t.kind <> 'counter'",
    ),
    ("issues count nothing", 'SELECT code FROM issues WHERE "count" <= 0'),
    (
        "kernels have a grid or block below 1, or an occupancy outside 0 to 1",
        (
            "SELECT slice FROM kernels WHERE least(grid_x, grid_y, grid_z, block_x, block_y, block_z) < 1 "
            "OR est_occupancy NOT BETWEEN 0 AND 1"
        ),
    ),
    (
        "devices repeat an ordinal in their process",
        "SELECT process FROM devices GROUP BY process, ordinal HAVING count(*) > 1",
    ),
    (
        "steps of a process come twice in step_times",
        "SELECT step FROM step_times GROUP BY process, step HAVING count(*) > 1",
    ),
    (
        "stacks have a line below 1 or a frame below 0, or a frame twice",
        'SELECT stack FROM stacks GROUP BY stack, frame HAVING count(*) > 1 OR min("line") < 1 OR frame < 0',
    ),
    (
        "call_stacks name a stack that is not in stacks",
        "SELECT stack FROM call_stacks WHERE stack NOT IN (SELECT stack FROM stacks)",
    ),
    (
        "step_times have a number below 0, or a duration that is not above 0",
        "SELECT step FROM step_times WHERE step < 0 OR dur_ns <= 0 OR host_ns <= 0",
    ),
)
"""A sentence, and a query that must return no row. Conditions over slices are in ``checks_slices``."""


def problems(con: duckdb.DuckDBPyConnection, meta: TraceMeta, slices: Slices | None = None) -> list[str]:
    """Every broken invariant as one sentence with a count; empty when the trace is sound.

    Ids are checked first to be dense and unique. Then a reference is valid when its number is in range, and
    it is an index into an array.

    Args:
        con: offers the tables of the trace under the names of the schema.
        meta: the content of meta.json.
        slices: the slices of the trace where they were read already.
    """
    found = column_problems(con)
    if found:
        return found
    slices = slices or Slices(con)
    found, sizes = _ids(con)
    found += slices.ids()
    sizes["slices"] = slices.rows
    if found:
        return found  # the rest needs sound columns and ids
    with ThreadPoolExecutor(1) as pool:
        links = pool.submit(slices.links)
        singly = _rows(con, sizes) + _rules(con)
    return singly + links.result() + _meta(meta, sizes, slices.kinds())


def _key(table: Table) -> str | None:
    """The id column of a table that has ids of its own, or None."""
    return table.key[0] if table.key and table.name not in SIDE_KINDS else None


def _ids(con: duckdb.DuckDBPyConnection) -> tuple[list[str], dict[str, int]]:
    """Ids of all tables but slices, and how many rows each has."""
    parts = []
    for table in TABLES.values():
        key = _key(table)
        if table.name == "slices":
            continue
        if key is None:
            parts.append(f"SELECT '{table.name}', count(*), NULL, NULL, 0 FROM \"{table.name}\"")
        else:
            parts.append(
                f'SELECT \'{table.name}\', count(*), min("{key}"), max("{key}"), count(*) FILTER '
                f'("{key}" <= before) FROM (SELECT "{key}", lag("{key}") OVER () AS before '
                f'FROM "{table.name}")'
            )
    found: list[str] = []
    sizes: dict[str, int] = {}
    for name, rows, low, high, unordered in con.execute(" UNION ALL ".join(parts)).fetchall():
        sizes[name] = int(rows)
        if unordered:  # increasing values are distinct, which is cheaper to see than to count
            key = _key(TABLES[name])
            counted = con.execute(f'SELECT count(DISTINCT "{key}") FROM "{name}"').fetchone()
            if counted and counted[0] != rows:
                found.append(f"{name} has {rows} rows but {counted[0]} distinct values of {key}")
                continue
        if _key(TABLES[name]) and rows and (low, high) != (0, rows - 1):
            found.append(
                f"ids of {name} run from {low} to {high} in {rows} rows instead of being dense from 0"
            )
    return found, sizes


def _rows(con: duckdb.DuckDBPyConnection, sizes: Mapping[str, int]) -> list[str]:
    """Conditions on single rows: one scan per table, one query for all tables."""
    parts, sentences = [], {}
    for table in TABLES.values():
        if not sizes[table.name]:
            continue
        tests = [test for column in table.columns for test in _column(column, sizes)]
        counts = ", ".join(count for _, count in tests)
        parts.append(f"SELECT '{table.name}', [{counts}] FROM \"{table.name}\"")
        sentences[table.name] = [sentence for sentence, _ in tests]
    if not parts:
        return []
    return [
        f"{count} rows of {name} {sentence}"
        for name, counts in con.execute(" UNION ALL ".join(parts)).fetchall()
        for count, sentence in zip(counts, sentences[name], strict=True)
        if count
    ]


def _column(column: Column, sizes: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Sentence and the SQL that counts rows of which it is true."""
    name = f'"{column.name}"'
    if column.required:
        yield f"have no {column.name}", f"count(*) - count({name})"
    if column.type == "VARCHAR":
        yield f"have an empty {column.name}", f"count(*) FILTER ({name} = '')"
    if column.type == "DOUBLE":
        yield f"have a {column.name} that is not finite", f"count(*) FILTER (NOT isfinite({name}))"
    if column.values:
        allowed = ", ".join(f"'{value}'" for value in column.values)
        yield (
            f"have a {column.name} that the format does not know",
            f"count(*) FILTER ({name} NOT IN ({allowed}))",
        )
    if column.name == "depth":
        yield "have a depth below 0", f"count(*) FILTER ({name} < 0)"
    if column.refers:
        other = column.refers.split(".")[0]
        yield (
            f"have a {column.name} that is not in {other}",
            f"count(*) FILTER ({name} NOT BETWEEN 0 AND {sizes[other] - 1})",
        )


def _rules(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Conditions over the small tables, all in one query."""
    query = " UNION ALL ".join(
        f"SELECT {number}, count(*), min(x)::VARCHAR FROM (SELECT COLUMNS(*) AS x FROM ({rule}))"
        for number, (_, rule) in enumerate(_RULES)
    )
    return [
        f"{count} {_RULES[number][0]} (first: {example})"
        for number, count, example in sorted(con.execute(query).fetchall())
        if count
    ]


def _meta(meta: TraceMeta, sizes: Mapping[str, int], kinds: Mapping[str, int]) -> list[str]:
    found = [f"meta has no {key.name}" for key in META_KEYS if key.name not in meta and not key.later]
    found += [f"meta.{key.name} is null" for key in META_KEYS if key.required and meta.get(key.name) is None]
    if meta.get("vendor") not in VENDORS:
        found.append(f"meta.vendor is {meta.get('vendor')!r}")
    counts = meta.get("counts") or {}
    if counts.get("slices") != kinds:
        found.append(f"meta.counts.slices is {counts.get('slices')}, the table holds {kinds}")
    for name in TABLES:
        stated = (counts.get("rows") or {}).get(name)
        if stated != sizes[name]:
            found.append(f"meta.counts.rows.{name} is {stated}, the table holds {sizes[name]}")
    return found
