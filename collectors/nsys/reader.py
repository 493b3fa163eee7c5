"""Reader of Nsight Systems: SQLite exports of every schema, parquetdir, and reports through an "
"installed nsys."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import duckdb

from profrun.collectors.nsys import export, identity, lanes, notes, nvtx
from profrun.collectors.nsys.build import Builder
from profrun.collectors.nsys.source import Export, open_export
from profrun.collectors.nsys.tables import MARKERS, STAGES
from profrun.collectors.reading import Progress, Source
from profrun.errors import InputError
from profrun.traces.nest import nest
from profrun.traces.writer import TraceWriter


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
            for source in sources:
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


READER = NsysReader()


def _read(exports: list[Export], writer: TraceWriter, progress: Progress) -> None:
    con = writer.con
    origins = [identity.origin(item, src) for src, item in enumerate(exports)]
    identity.align(origins, writer)
    con.execute("CREATE TABLE n_origin (src INTEGER, shift BIGINT)")
    con.executemany("INSERT INTO n_origin VALUES (?, ?)", [(item.src, item.shift_ns) for item in origins])
    _load(exports, writer, progress)
    lanes.gpu_work(writer)
    identity.processes(writer, origins)
    identity.devices(writer)
    lanes.lanes(writer)
    build = Builder(writer)
    for step in (build.api, build.kernels, build.memcpys, build.memsets, build.syncs, build.graphs):
        step()
    build.overheads()
    build.libraries()
    nvtx.ranges(build, origins)
    notes.counters(build)
    notes.noticed(build, exports, origins)
    _drop_staging(writer)
    crossing, example = nest(con)
    writer.issue(
        "overlapping-ranges",
        crossing,
        "host records that start inside another of their thread and end after it (NVTX domains push and pop "
        "on their own): each is the child of the nearest that holds it whole",
        example,
    )
    writer.meta.update(source="nsys", collector="nsys", tool_version=origins[0].product)


def _load(exports: list[Export], writer: TraceWriter, progress: Progress) -> None:
    done = 0
    for stage in STAGES:
        writer.con.execute(stage.ddl)
        for src, item in enumerate(exports):
            for table in stage.sources:
                if table in item.columns:
                    done += item.load(writer.con, stage, table, src)
                    progress(done, None)


def _drop_staging(writer: TraceWriter) -> None:
    """Everything that is not a table of the trace: nothing of it reaches the folder."""
    names = writer.con.execute(
        "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'n\\_%' ESCAPE '\\'"
    )
    for (name,) in names.fetchall():
        writer.con.execute(f'DROP TABLE "{name}"')


def _is_nsys(tables: frozenset[str]) -> bool:
    return any(marker <= tables for marker in MARKERS)
