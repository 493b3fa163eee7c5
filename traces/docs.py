"""Write docs/trace-format.md from the schema and the views.

``python -m profrun.traces.docs docs/trace-format.md``
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb

from profrun.traces.meta import META_KEYS
from profrun.traces.schema import FORMAT_VERSION, TABLES, Column
from profrun.traces.views import VIEWS, create_views

_MAJOR = FORMAT_VERSION.split(".", maxsplit=1)[0]
_HEAD = f"""# The trace format, version {FORMAT_VERSION}

Generated from `traces/schema.py` and `traces/views.py` by
`python -m profrun.traces.docs docs/trace-format.md`; edit those, not this page.

A trace is a folder: `meta.json` and one Parquet file (zstd) per table. It appears whole or not at all. Any
tool that reads Parquet can open it; `profrun query TRACE "SQL"` and `profrun.open(path).query(...)` offer the
tables and the views below.

- All times are **int64 nanoseconds** on one axis per trace; `meta.epoch_ns` is the unix time of 0, or null
  when the tool did not state it.
- Missing is **NULL**, never 0, -1 or an empty string.
- Grids are in **blocks**, whatever the tool counted.
- Ids are dense integers from 0, unique in the trace.
- Nothing that a tool reported is dropped without a note: what was repaired, clipped, guessed or left out is a
  row of `issues`.
- A GPU slice is tied to the host by `launch`: the API call that enqueued it or, when that is not in the
  recording, the op that the tool named. One launch may own many kernels (graphs).
- Host slices of one thread nest: `parent` is the innermost slice that holds this one whole, half open (a
  slice that starts where another ends is not inside it); `depth` counts from 0. GPU tracks do not nest, and
  slices of one stream may overlap.
- GPU copies of annotations are `range` slices on a stream's track and never busy time.
- Readers of format major {_MAJOR} refuse other majors; a minor only adds columns or tables.

`profrun normalize` holds every trace against these rules before it appears; `Trace.check()` does so again.
"""


def page() -> str:
    """The whole page."""
    lines = [_HEAD, "## meta.json", "", "| key | type | meaning |", "|---|---|---|"]
    lines += [f"| {_name(key.name, key.required)} | {key.type} | {key.doc} |" for key in META_KEYS]
    lines += ["", "Keys in bold are always there and never null.", "", "## Tables", ""]
    for table in TABLES.values():
        lines += [f"### {table.name}", "", f"A row is one {table.row}.", "", "| column | type | meaning |"]
        lines += ["|---|---|---|", *(_column(column) for column in table.columns), ""]
    lines += ["Columns in bold are never NULL.", "", "## Views", ""]
    lines += ["A view is computed at each query that uses it; it costs nothing otherwise.", "", *_views()]
    return "\n".join(lines).rstrip() + "\n"


def _name(name: str, required: bool) -> str:
    return f"**{name}**" if required else name


def _column(column: Column) -> str:
    meaning = column.doc.replace("|", "\\|")
    if column.refers:
        meaning += f" (-> {column.refers})"
    if column.values:
        meaning += ": " + ", ".join(f"`{value}`" for value in column.values)
    return f"| {_name(column.name, column.required)} | {column.type} | {meaning} |"


def _views() -> Iterator[str]:
    with duckdb.connect(":memory:") as con:
        for table in TABLES.values():
            con.execute(table.ddl())
        create_views(con)
        for view in VIEWS:
            columns = con.execute(f'DESCRIBE "{view.name}"').fetchall()
            yield f"### {view.name}"
            yield ""
            yield f"A row is one {view.row}."
            yield ""
            yield "Columns: " + ", ".join(f"`{column[0]}` {column[1]}" for column in columns) + "."
            yield ""


def main(arguments: list[str]) -> None:
    """Write the page to the path given, or print it."""
    if arguments:
        Path(arguments[0]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())


if __name__ == "__main__":
    main(sys.argv[1:])
