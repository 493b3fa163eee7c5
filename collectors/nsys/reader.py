"""The reader of Nsight Systems: SQLite exports of every schema, parquetdir, and reports through an installed
nsys. ``tables`` lists the tables that its parts hand to each other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import duckdb

from profrun.collectors.nsys import export, host, identity, issues, nvtx, python_stacks
from profrun.collectors.nsys.build import KEPT, Builder
from profrun.collectors.nsys.record_index import index_records
from profrun.collectors.nsys.source import Export, open_export, without_start
from profrun.collectors.nsys.tables import MARKERS, STAGES, Stage
from profrun.collectors.nsys.tracks import fill_tracks
from profrun.collectors.reading import Progress, Source
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

_LOADERS = 2  # SQLite is read on one thread a table; the engine's own threads take the rows


class NsysReader:
    """See ``collectors.reading.Reader``. Several exports (ranks, windows) become one trace."""

    name = "nsys"

    def accepts(self, source: Source) -> bool:
        """An nsys SQLite export or parquetdir by its tables, or a report by its content."""
        if source.path.is_dir():
            tables = frozenset(file.stem for file in source.path.glob("*.parquet"))
            return _is_nsys(tables)
        if source.sqlite_tables:
            return _is_nsys(source.sqlite_tables)
        return export.is_report(source.head)

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """See ``collectors.reading.Reader``.

        Raises:
            InputError: damaged, or recorded by a newer nsys than the one installed.
            UnavailableError: a report, and no nsys to export it.
        """
        with ExitStack() as stack:
            opened: list[Export] = []
            for source in _without_exported(sources, writer):
                path = source.path
                if export.is_report(source.head):
                    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=writer.partial)))
                    path = export.export_report(source.path, folder)
                item = open_export(path)
                stack.callback(item.close)
                item.path = source.path
                opened.append(item)
            try:
                _read(opened, writer, progress)
            except duckdb.Error as error:
                raise InputError(
                    f"{sources[0].path} holds values that no export of nsys has",
                    why=" ".join(str(error).split()),
                    fix="export it again",
                ) from error


READERS = (NsysReader(),)


def _read(exports: list[Export], writer: TraceWriter, progress: Progress) -> None:
    con = writer.con
    exports = _one_of_each_session(exports, writer)
    origins = [identity.origin(item, src) for src, item in enumerate(exports)]
    identity.align(origins, writer)
    con.execute("CREATE TABLE n_origin (src INTEGER, shift BIGINT, stopped BIGINT)")
    rows = [(item.src, item.shift_ns, item.stopped_ns) for item in origins]
    con.executemany("INSERT INTO n_origin VALUES (?, ?, ?)", rows)
    dropped = _load(exports, writer, progress)
    nvtx.reopen(con)
    index_records(writer)
    identity.processes(writer, origins)
    identity.devices(writer, origins)
    fill_tracks(writer)
    build = Builder(writer)
    build.unplaced = dropped
    python_stacks.stage(build, exports)
    nvtx.stage(build, origins)
    host.host(build)
    python_stacks.fill(build)
    with ThreadPoolExecutor(1) as pool, con.cursor() as cursor:
        nesting = pool.submit(host.nest, cursor)  # one thread of Python, beside the engine's own
        build.rest()
        build.side_tables()
        host.crossed(build, *nesting.result())
    build.slices()
    build.issues()
    nvtx.record_issues(build, origins)
    issues.counters(build)
    issues.record_issues(build, exports, origins)
    _drop_staging(writer)
    writer.meta.update({"source": "nsys", "collector": "nsys", "tool_version": origins[0].product})


def _without_exported(sources: Sequence[Source], writer: TraceWriter) -> list[Source]:
    """Leave out reports whose SQLite export is given too: they say the same, and reading one needs nsys."""
    held = {source.path.resolve() for source in sources if not export.is_report(source.head)}
    left = []
    for source in sources:
        path = source.path.resolve()
        names = (path.with_name(path.name + ".sqlite"), path.with_suffix(".sqlite"))
        if export.is_report(source.head) and any(name in held for name in names):
            left.append(source)
    _same_twice(len(left), left[0].path.name if left else None, writer)
    return [source for source in sources if source not in left]


def _one_of_each_session(exports: list[Export], writer: TraceWriter) -> list[Export]:
    """Two exports of one report begin at the same ns on the same host: only the first is read."""
    seen: set[tuple[int, str | None]] = set()
    kept, left = [], []
    for src, item in enumerate(exports):
        found = identity.origin(item, src)
        session = None if found.epoch_ns is None else (found.epoch_ns, found.host)
        if session in seen:
            left.append(item.path.name)
            continue
        if session is not None:
            seen.add(session)
        kept.append(item)
    _same_twice(len(left), left[0] if left else None, writer)
    return kept


def _same_twice(count: int, example: str | None, writer: TraceWriter) -> None:
    writer.issue(
        "same-twice", count, "another file that was given holds the same recording: not read", example
    )


def _load(exports: list[Export], writer: TraceWriter, progress: Progress) -> int:
    """Fill the staging tables, two at a time; returns rows without a start, which are left out."""
    writer.con.execute("; ".join(stage.ddl for stage in STAGES))
    done = 0
    with ThreadPoolExecutor(_LOADERS) as pool:
        for rows in pool.map(lambda stage: _load_stage(exports, writer, stage), STAGES):
            done += rows
            progress(done, None)
    held = [(item, stage, table) for item in exports for stage in STAGES for table in stage.sources]
    return sum(without_start(*place) for place in held if place[2] in place[0].columns)


def _load_stage(exports: list[Export], writer: TraceWriter, stage: Stage) -> int:
    with writer.con.cursor() as con:
        return sum(
            item.load(con, stage, table, src)
            for src, item in enumerate(exports)
            for table in stage.sources
            if table in item.columns
        )


def _drop_staging(writer: TraceWriter) -> None:
    """What is no table of the trace, but for what the writer reads; nothing of it reaches the folder."""
    names = writer.con.execute("SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, 'n_')")
    dropped = [name for (name,) in names.fetchall() if name not in KEPT]
    writer.con.execute("; ".join(["DROP VIEW n_nest", *(f'DROP TABLE "{name}"' for name in dropped)]))


def _is_nsys(tables: frozenset[str]) -> bool:
    return any(marker <= tables for marker in MARKERS)
