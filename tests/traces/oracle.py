"""The invariants once more, as naive SQL, one query each: what the fast check is held against."""

from __future__ import annotations

import duckdb

from profrun.traces.schema import GPU_KINDS, TABLES

HOST = ("op", "range", "step", "api", "python", "overhead", "sync")
GPU = ("stream", "queue", "copy")
BESIDE = {
    "kernels": ("kernel",),
    "copies": ("memcpy", "memset"),
    "ops": ("op", "op"),
    "collectives": ("kernel", "op", "range", "api", "memcpy"),
    "call_stacks": ("api",),
}


def _in(kinds: tuple[str, ...]) -> str:
    return "(" + ", ".join(f"'{kind}'" for kind in kinds) + ")"


RULES = [
    "SELECT slice FROM slices WHERE dur_ns < 0",
    "SELECT slice FROM slices WHERE ts_ns::HUGEINT + dur_ns > 9223372036854775807",
    "SELECT slice FROM slices WHERE depth < 0",
    (
        "SELECT s.slice FROM slices s JOIN tracks t USING (track) WHERE s.kind IN "
        f"{_in(GPU_KINDS)} AND t.device IS NULL"
    ),
    f"SELECT track FROM tracks WHERE kind IN {_in(GPU)} AND device IS NULL",
    "SELECT t.track FROM tracks t JOIN devices d USING (device) WHERE t.process <> d.process",
    (
        "SELECT s.slice FROM slices s JOIN tracks t USING (track) "
        f"WHERE t.kind IN {_in(GPU)} AND (s.depth IS NOT NULL OR s.parent IS NOT NULL)"
    ),
    (
        "SELECT c.slice FROM slices c JOIN slices p ON c.parent = p.slice WHERE c.track <> p.track "
        "OR c.ts_ns < p.ts_ns OR c.ts_ns::HUGEINT + c.dur_ns > p.ts_ns::HUGEINT + p.dur_ns "
        "OR c.depth IS DISTINCT FROM p.depth::BIGINT + 1 OR c.slice = p.slice"
    ),
    "SELECT slice FROM slices WHERE parent IS NULL AND depth <> 0",
    (
        "SELECT g.slice FROM slices g JOIN slices h ON g.launch = h.slice JOIN tracks t ON h.track = t.track "
        f"WHERE h.kind NOT IN {_in(HOST)} OR t.kind <> 'thread'"
    ),
    (
        "SELECT s.slice FROM slices s JOIN tracks t USING (track) "
        "WHERE s.launch IS NOT NULL AND t.kind = 'thread'"
    ),
    (
        "SELECT s.slice FROM copies c JOIN slices s USING (slice) "
        "WHERE (c.direction = 'memset') <> (s.kind = 'memset')"
    ),
    "SELECT c.track FROM counters c JOIN tracks t USING (track) WHERE t.kind <> 'counter'",
    'SELECT code FROM issues WHERE "count" <= 0',
    (
        "SELECT slice FROM kernels WHERE least(grid_x, grid_y, grid_z, block_x, block_y, block_z) < 1 "
        "OR est_occupancy NOT BETWEEN 0 AND 1"
    ),
    "SELECT process FROM devices GROUP BY process, ordinal HAVING count(*) > 1",
    "SELECT step FROM step_times GROUP BY process, step HAVING count(*) > 1",
    "SELECT stack FROM stacks GROUP BY stack, frame HAVING count(*) > 1",
    "SELECT stack FROM stacks WHERE frame < 0",
    'SELECT stack FROM stacks WHERE "line" < 1',
    "SELECT c.stack FROM call_stacks c LEFT JOIN stacks s USING (stack) WHERE s.stack IS NULL",
    "SELECT step FROM step_times WHERE step < 0",
    "SELECT step FROM step_times WHERE dur_ns <= 0",
    "SELECT step FROM step_times WHERE host_ns <= 0",
]
for _name, _kinds in BESIDE.items():
    RULES.append(f'SELECT slice FROM "{_name}" JOIN slices s USING (slice) WHERE s.kind NOT IN {_in(_kinds)}')
    RULES.append(f'SELECT slice FROM "{_name}" GROUP BY slice HAVING count(*) > 1')
    if _name not in ("collectives", "call_stacks"):
        RULES.append(
            f'SELECT slice FROM slices s ANTI JOIN "{_name}" USING (slice) WHERE s.kind IN {_in(_kinds)}'
        )
for _table in TABLES.values():
    for _column in _table.columns:
        _cell = f'"{_column.name}"'
        if _column.required:
            RULES.append(f'SELECT 1 FROM "{_table.name}" WHERE {_cell} IS NULL')
        if _column.type == "VARCHAR":
            RULES.append(f"SELECT 1 FROM \"{_table.name}\" WHERE {_cell} = ''")
        if _column.type == "DOUBLE":
            RULES.append(f'SELECT 1 FROM "{_table.name}" WHERE NOT isfinite({_cell})')
        if _column.values:
            RULES.append(f'SELECT 1 FROM "{_table.name}" WHERE {_cell} NOT IN {_in(_column.values)}')
        if _column.refers:
            _other, _key = _column.refers.split(".")
            RULES.append(
                f'SELECT 1 FROM "{_table.name}" WHERE {_cell} IS NOT NULL AND {_cell} NOT IN '
                f'(SELECT "{_key}" FROM "{_other}" WHERE "{_key}" IS NOT NULL)'
            )
for _name, _key in (
    ("processes", "process"),
    ("devices", "device"),
    ("tracks", "track"),
    ("slices", "slice"),
):
    RULES.append(
        f'SELECT * FROM range((SELECT count(*) FROM "{_name}")) r(id) WHERE id NOT IN (SELECT "{_key}" FROM '
        f'"{_name}" WHERE "{_key}" IS NOT NULL)'
    )


def broken(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The rules that do not hold for the tables that ``con`` offers."""
    return [rule for rule in RULES if con.execute(f"SELECT 1 FROM ({rule}) LIMIT 1").fetchone()]
