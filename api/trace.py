"""``profrun.open`` and ``profrun.normalize``: a trace with the questions that can be asked of it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb

from profrun.api.table import Table
from profrun.errors import InputError
from profrun.store.files import read_json
from profrun.traces.trace import Trace as TraceFiles

if TYPE_CHECKING:
    from profrun.analysis.rules.diagnose import RuleFinding
    from profrun.analysis.trace.critical_path import CriticalPath
    from profrun.analysis.trace.summary import Summary
    from profrun.traces.export import ExportResult


class Trace(TraceFiles):
    """A trace folder, opened for reading. Use it in ``with``, or ``close`` it.

    Args:
        path: the folder.

    Raises:
        InputError: it is no trace, or of a format version that this profrun does not know.
    """

    def summary(self, *, top: int | None = None) -> Summary:
        """Where the time went: doubtful things first, then devices, steps, kernels, operators and more.

        Args:
            top: most rows of each table; None for all.
        """
        from profrun.analysis.trace.summary import summarize

        return summarize(self, top=top)

    def diagnose(self) -> list[RuleFinding]:
        """What slows the program down, the gravest first, each with its evidence."""
        from profrun.analysis.rules.diagnose import diagnose

        return diagnose(self, provenance=self._provenance())

    def query(self, sql: str) -> Table:
        """The answer to a query over the tables and views of docs/trace-format.md; times are int64 ns.

        Raises:
            InputError: the query is wrong; the message holds the words of the engine.
        """
        try:
            relation = self.con.cursor().sql(sql)
        except duckdb.Error as error:
            raise InputError(
                f"query failed: {' '.join(str(error).split())}",
                fix="see docs/trace-format.md for tables and views",
            ) from error
        if relation is None:
            raise InputError("the query has no rows", fix="give a SELECT")
        return Table(relation)

    def critical_path(self, *, process: int | None = None, step: int | None = None) -> CriticalPath | None:
        """The chain of work that decides how long a step takes; None where nothing was recorded.

        Args:
            process: of which process; None for the first.
            step: of which step; None for all steps, or for everything where there are none.
        """
        from profrun.analysis.trace.critical_path import critical_path

        return critical_path(self, process=process, step=step)

    def export(self, out: str | Path, to: Literal["perfetto", "chrome"] = "perfetto") -> ExportResult:
        """Write the trace for a viewer; gzip when the name ends in ``.gz``.

        Raises:
            UsageError: the file exists.
            UnavailableError: the file cannot be written.
        """
        from profrun.traces.export import export

        return export(self, Path(out), to)

    def report(self, out: str | Path) -> Path:
        """Write one self-contained HTML file about the trace; returns its path.

        Raises:
            UnavailableError: the file cannot be written.
        """
        from profrun.runner.report import report_page, trace_content
        from profrun.store.files import write_text

        content = trace_content(self, name=self._name())
        path = Path(out)
        write_text(path, report_page(content.name, [content]))
        return path

    def _name(self) -> str:
        path = self.path.absolute()
        return path.parent.name if path.name == "trace" else path.name

    def _provenance(self) -> dict[str, Any] | None:
        """The trial's provenance.json, where the trace is a trial's."""
        return read_json(self.path.parent / "provenance.json") if self.path.name == "trace" else None

    def _repr_html_(self) -> str:
        """The summary as text, for notebooks."""
        from profrun.reports.terminal import summary_text

        text = summary_text(self.summary(top=10))
        return f"<pre>{html.escape(text)}</pre>"


def open_trace(path: str | Path) -> Trace:
    """Open a trace folder; a profiler's own file needs ``normalize`` first.

    Raises:
        InputError: it is no trace.
    """
    return Trace(path)


def normalize(
    files: str | Path | Sequence[str | Path], out: str | Path, *, reader: str | None = None
) -> Trace:
    """Read the files of one recording, of any profiler, into a trace folder and open it.

    Args:
        files: one file, or all files of one recording (ranks, databases, CSV families).
        out: the folder; must not exist or be empty.
        reader: name of the reader to force; None detects it by content.

    Raises:
        UsageError: no file, or an unknown reader.
        InputError: a file is no profile, is damaged, or the files are of different kinds.
        UnavailableError: the disk is full, or a tool that is needed to read the files is not there.
    """
    from profrun.collectors.normalize import normalize as read

    given = [files] if isinstance(files, (str, Path)) else files
    return Trace(read([Path(file) for file in given], Path(out), reader=reader).trace)
