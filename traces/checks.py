"""The invariants of the trace format, each one SQL query that must return no row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from profrun.traces.schema import GPU_KINDS, META_KEYS, TABLES, VENDORS, Column, Table

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

HOST_KINDS = ("op", "range", "step", "api", "python", "overhead", "sync")
"""Kinds that may enqueue GPU work or lie on a thread."""
GPU_TRACKS = ("stream", "queue", "copy")

_SIDE_KINDS = {
    "kernels": ("kernel",),
    "copies": ("memcpy", "memset"),
    "ops": ("op",),
    "collectives": ("kernel", "op", "range", "api", "memcpy"),
}
_RULES = (
    ("slices end before they start", "SELECT slice FROM slices WHERE dur_ns < 0"),
    (
        "kernels, memcpys or memsets lie on a track without a device",
        (
            "SELECT s.slice FROM slices s JOIN tracks t USING (track) "
            f"WHERE s.kind IN {GPU_KINDS} AND t.device IS NULL"
        ),
    ),
    (
        "stream, queue or copy tracks have no device",
        f"SELECT track FROM tracks WHERE kind IN {GPU_TRACKS} AND device IS NULL",
    ),
    (
        "tracks lie on a device of another process",
        "SELECT t.track FROM tracks t JOIN devices d USING (device) WHERE t.process <> d.process",
    ),
    (
        "slices have a depth without lying on a thread",
        (
            "SELECT s.slice FROM slices s JOIN tracks t USING (track) "
            f"WHERE t.kind IN {GPU_TRACKS} AND (s.depth IS NOT NULL OR s.parent IS NOT NULL)"
        ),
    ),
    (
        "slices are not inside their parent, or on another track, or not one level below it",
        (
            "SELECT c.slice FROM slices c JOIN slices p ON c.parent = p.slice WHERE c.track <> p.track "
            "OR c.ts_ns < p.ts_ns OR c.ts_ns + c.dur_ns > p.ts_ns + p.dur_ns "
            "OR c.depth IS DISTINCT FROM p.depth + 1 OR c.slice = p.slice"
        ),
    ),
    (
        "slices without a parent have a depth other than 0",
        "SELECT slice FROM slices WHERE parent IS NULL AND depth <> 0",
    ),
    (
        "launches are no host slices",
        (
            "SELECT g.slice FROM slices g JOIN slices h ON g.launch = h.slice "
            "JOIN tracks t ON h.track = t.track "
            f"WHERE g.launch IS NOT NULL AND (h.kind NOT IN {HOST_KINDS} OR t.kind <> 'thread')"
        ),
    ),
    (
        "host slices have a launch",
        (
            "SELECT s.slice FROM slices s JOIN tracks t USING (track) "
            "WHERE s.launch IS NOT NULL AND t.kind = 'thread'"
        ),
    ),
    (
        "copies have memset as direction without being a memset, or the reverse",
        (
            "SELECT s.slice FROM copies c JOIN slices s USING (slice) "
            "WHERE (c.direction = 'memset') <> (s.kind = 'memset')"
        ),
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
)


def problems(trace: Trace) -> list[str]:
    """Every broken invariant as one sentence with a count; empty when the trace is sound.

    Ids are checked to be dense and unique first, so that "resolves" is a comparison of numbers.
    """
    found = _types(trace)
    sizes: dict[str, int] = {}
    if not found:
        for table in TABLES.values():
            found += _ids(trace, table, sizes)
    if found:
        return found  # the rest needs sound columns and ids
    for table in TABLES.values():
        found += _rows(trace, table, sizes)
    for sentence, query in (*_side_tables(), *_RULES):
        count, example = trace.sql(
            f"SELECT count(*), min(x) FROM (SELECT COLUMNS(*) AS x FROM ({query}))"
        ).rows[0]
        if count:
            found.append(f"{count} {sentence} (first: {example})")
    return found + _meta(trace, sizes)


def _types(trace: Trace) -> list[str]:
    columns = "SELECT table_name, column_name, data_type FROM duckdb_columns()"
    found = {(row[0], row[1]): row[2] for row in trace.sql(columns).rows}
    return [
        f"{table.name}.{column.name} is {found.get((table.name, column.name), 'missing')} "
        f"instead of {column.type}"
        for table in TABLES.values()
        for column in table.columns
        if found.get((table.name, column.name)) != column.type
    ]


def _key(table: Table) -> str | None:
    """The single id column of a table, or None."""
    if table.key:
        return table.key[0]
    return "slice" if table.name in _SIDE_KINDS else None


def _ids(trace: Trace, table: Table, sizes: dict[str, int]) -> list[str]:
    key = _key(table)
    if key is None:
        sizes[table.name] = int(trace.sql(f'SELECT count(*) FROM "{table.name}"').scalar())
        return []
    rows, low, high, unordered = trace.sql(
        f'SELECT count(*), min("{key}"), max("{key}"), count(*) FILTER ("{key}" <= before) '
        f'FROM (SELECT "{key}", lag("{key}") OVER () AS before FROM "{table.name}")'
    ).rows[0]
    sizes[table.name] = int(rows)
    if unordered:  # increasing values are distinct, which is cheaper to see than to count
        distinct = trace.sql(f'SELECT count(DISTINCT "{key}") FROM "{table.name}"').scalar()
        if distinct != rows:
            return [f"{table.name} has {rows} rows but {distinct} distinct values of {key}"]
    if table.name not in _SIDE_KINDS and rows and (low, high) != (0, rows - 1):
        return [f"ids of {table.name} run from {low} to {high} in {rows} rows instead of being dense from 0"]
    return []


def _rows(trace: Trace, table: Table, sizes: dict[str, int]) -> list[str]:
    """Conditions on single rows, all in one scan."""
    if not sizes[table.name]:
        return []
    tests = [test for column in table.columns for test in _column(column, sizes)]
    counts = trace.sql(
        f'SELECT {", ".join(f"count(*) FILTER ({test})" for _, test in tests)} FROM "{table.name}"'
    ).rows[0]
    return [
        f"{count} rows of {table.name} {sentence}"
        for count, (sentence, _) in zip(counts, tests, strict=True)
        if count
    ]


def _column(column: Column, sizes: dict[str, int]) -> Iterator[tuple[str, str]]:
    name = f'"{column.name}"'
    if column.required:
        yield f"have no {column.name}", f"{name} IS NULL"
    if column.type == "VARCHAR":
        yield f"have an empty {column.name}", f"{name} = ''"
    if column.type == "DOUBLE":
        yield f"have a {column.name} that is not finite", f"NOT isfinite({name})"
    if column.values:
        allowed = ", ".join(f"'{value}'" for value in column.values)
        yield f"have a {column.name} that the format does not know", f"{name} NOT IN ({allowed})"
    if column.refers:
        other = column.refers.split(".")[0]
        yield f"have a {column.name} that is not in {other}", f"{name} NOT BETWEEN 0 AND {sizes[other] - 1}"


def _side_tables() -> Iterator[tuple[str, str]]:
    for name, kinds in _SIDE_KINDS.items():
        other = "s.kind NOT IN (" + ", ".join(f"'{kind}'" for kind in kinds) + ")"
        yield (
            f"rows of {name} describe slices of another kind",
            f'SELECT s.slice FROM "{name}" x JOIN slices s USING (slice) WHERE {other}',
        )
        if name != "collectives":
            yield (
                f"slices have no row in {name}",
                f'SELECT s.slice FROM slices s ANTI JOIN "{name}" x USING (slice) WHERE NOT {other}',
            )


def _meta(trace: Trace, sizes: dict[str, int]) -> list[str]:
    meta: dict[str, Any] = trace.meta
    found = [f"meta has no {key.name}" for key in META_KEYS if key.name not in meta]
    found += [f"meta.{key.name} is null" for key in META_KEYS if key.required and meta.get(key.name) is None]
    if meta.get("vendor") not in VENDORS:
        found.append(f"meta.vendor is {meta.get('vendor')!r}")
    counts = meta.get("counts") or {}
    kinds = dict(trace.sql("SELECT kind, count(*) FROM slices GROUP BY kind").rows)
    if counts.get("slices") != kinds:
        found.append(f"meta.counts.slices is {counts.get('slices')}, the table holds {kinds}")
    for name, held in sizes.items():
        stated = (counts.get("rows") or {}).get(name)
        if stated != held:
            found.append(f"meta.counts.rows.{name} is {stated}, the table holds {held}")
    return found
