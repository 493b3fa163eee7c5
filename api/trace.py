"""``profrun.open`` and ``profrun.normalize``: a trace with the questions that can be asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import duckdb

from profrun.api.table import Table
from profrun.traces.trace import Trace as TraceFiles
from profrun.traces.trace import query_error

if TYPE_CHECKING:
    from profrun.analysis.trace.variation import Variation
    from profrun.api.results import CriticalPath, Diagnosis, Places, Summary
    from profrun.runner.stack_export import StackExport, StackFormat
    from profrun.traces.export import ExportResult


class Trace(TraceFiles):
    """A trace folder, opened for reading. Use it in ``with``, or ``close`` it; only one thread may use it.

    Args:
        path: the folder.

    Attributes:
        path: the folder, absolute.
        meta: the content of its meta.json (docs/trace-format.md).

    Raises:
        InputError: it is no trace, or of a format version that this profrun does not know.
    """

    def summary(self, *, top: int | None = None) -> Summary:
        """Where the time went: first what is doubtful, then devices, steps, kernels, operators and more.

        Args:
            top: most rows of each table; None for all.
        """
        from profrun.analysis.compare.work_energy import energy_per_work
        from profrun.analysis.rules.context import Context
        from profrun.analysis.rules.step_use import step_use
        from profrun.analysis.trace.summary import summarize
        from profrun.api.results import Summary
        from profrun.runner.twins import unprofiled_step

        context = Context(self, unprofiled=unprofiled_step(self.path))
        found = vars(summarize(self, top=top))
        return Summary(
            **found, step_cost=context.cost, step_use=step_use(context), energy_per_work=energy_per_work(self)
        )

    def places(self, by: Literal["line", "module"] = "line") -> Places:
        """GPU time by line or by module of the program, most time first.

        Args:
            by: line or module.

        Raises:
            InconclusiveError: nothing tells the lines: no mapping (``ranges: {lines: true}``) lies beside the
                trace.
        """
        from profrun.analysis.trace.frame import frame
        from profrun.analysis.trace.line_table import place_table
        from profrun.analysis.trace.steps import denominator
        from profrun.api.results import Places
        from profrun.runner.mapped import mapped

        return Places(**vars(place_table(frame(self), mapped(self), by)), of=denominator(self))

    def diagnose(self) -> Diagnosis:
        """What slows the program down, the gravest first, each finding with what could be gained at most.

        Where the trace is a trial's, the trials of its run without a profiler give the time of a step.
        """
        from profrun.analysis.rules.diagnose import diagnose
        from profrun.api.results import Diagnosis
        from profrun.runner.mapped import addresses_of
        from profrun.runner.twins import unprofiled_step
        from profrun.store.documents import provenance_beside

        provenance, unprofiled = provenance_beside(self.path), unprofiled_step(self.path)
        mapped = addresses_of(self)
        return Diagnosis(tuple(diagnose(self, provenance=provenance, unprofiled=unprofiled, mapped=mapped)))

    def query(self, sql: str) -> Table:
        """The answer to a query over the tables and views of docs/trace-format.md; times are int64 ns.

        Raises:
            InputError: the query is wrong; the message holds the words of the engine.
            UsageError: it is not one SELECT that changes nothing.
        """
        try:
            from profrun.runner.mapped import offer_addresses

            offer_addresses(self, sql)
            return Table.of_query(self.database, sql)
        except duckdb.Error as error:
            raise query_error(error) from error

    def critical_path(self, *, process: int | None = None, step: int | None = None) -> CriticalPath | None:
        """The chain of work that decides how long a step takes; None where nothing was recorded.

        Args:
            process: of which process; None for the first.
            step: of which step; None for all steps, or for everything where there are none.
        """
        from profrun.analysis.trace.critical_path import critical_path
        from profrun.api.results import CriticalPath

        found = critical_path(self, process=process, step=step)
        return None if found is None else CriticalPath(**vars(found))

    def variation(
        self, kernel: str | None = None, *, which: Literal["run", "steady"] = "run"
    ) -> Variation | None:
        """Why steps, or equal launches of a kernel, take different times: shares of the variance, by cause.

        None where the trial was not sampled, no step was timed, or no kernel has such a name.

        Args:
            kernel: its name, in full or short, or a pattern with ``*`` and ``?``; None for steps.
            which: all steps after warm-up, or those at the steady level.
        """
        from profrun.analysis.trace.kernel_variation import kernel_variation
        from profrun.analysis.trace.variation import step_variation

        return step_variation(self, which) if kernel is None else kernel_variation(self, kernel)

    @overload
    def export(self, out: str | Path, to: Literal["perfetto", "chrome"] = "perfetto") -> ExportResult: ...
    @overload
    def export(self, out: str | Path, to: StackFormat) -> StackExport: ...
    def export(
        self, out: str | Path, to: Literal["perfetto", "chrome"] | StackFormat = "perfetto"
    ) -> ExportResult | StackExport:
        """Write the trace for a viewer; gzip when the name ends in ``.gz``.

        Args:
            to: ``perfetto`` and ``chrome`` show every slice over time; ``speedscope`` and ``pprof`` show the
                time of GPU work by call stack.

        Raises:
            UsageError: the file exists.
            InconclusiveError: stacks are wanted, and the trace has no GPU work.
            UnavailableError: the file cannot be written.
        """
        if to == "speedscope" or to == "pprof":
            from profrun.runner.references import trace_name
            from profrun.runner.stack_export import export_stacks

            return export_stacks(self, Path(out), to, name=trace_name(self.path))
        from profrun.traces.export import export

        return export(self, Path(out), to)

    def report(self, out: str | Path) -> Path:
        """Write one self-contained HTML file about the trace, in place of one that is there.

        Returns:
            Its path.

        Raises:
            UnavailableError: the file cannot be written.
        """
        from profrun.runner.references import trace_name
        from profrun.runner.report import report_page, trace_content
        from profrun.store.files import write_text

        content = trace_content(self, name=trace_name(self.path))
        path = Path(out)
        write_text(path, report_page(content.name, [content]), fix="name another file")
        return path

    def __repr__(self) -> str:
        return f"Trace({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """The summary, for notebooks."""
        return self.summary(top=10)._repr_html_()


def open_trace(path: str | Path) -> Trace:
    """Open a trace folder. The files that a profiler wrote need ``normalize`` first.

    Raises:
        InputError: it is no trace.
    """
    return Trace(path)


def normalize(
    files: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    reader: str | None = None,
    repair: bool = True,
) -> Trace:
    """Read the files of one recording, of any profiler, into a trace folder and open it.

    Args:
        files: one file, or all files of one recording (ranks, databases, CSV families).
        out: the folder; must not exist or be empty.
        reader: name of the reader to force; None detects it by content.
        repair: put GPU times that cannot be true on the host's clock; ``meta["clocks"]`` says what was added.

    Raises:
        UsageError: no file, or an unknown reader.
        InputError: a file is no profile, is damaged, or the files are of different kinds.
        UnavailableError: the disk is full, or a tool that is needed to read the files is not there.
    """
    from profrun.collectors.normalize import normalize as read

    given = [files] if isinstance(files, (str, Path)) else files
    return Trace(read([Path(file) for file in given], Path(out), reader=reader, repair=repair).trace)
