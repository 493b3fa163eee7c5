"""Every reader of AMD's profilers, most specific first."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.collectors.reading import Progress, Reader, Source
from profrun.collectors.rocprof.counter_csv import WideReader
from profrun.collectors.rocprof.csvs import CsvReader
from profrun.collectors.rocprof.folder import expand
from profrun.collectors.rocprof.results_json import ResultsJsonReader
from profrun.collectors.rocprof.rocpd import RocpdReader
from profrun.collectors.rocprof.rocprof_v1 import V1DatabaseReader, V1JsonReader
from profrun.collectors.rocprof.rpd import RpdReader
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter


class AnalysisDatabaseReader:
    """Knows, and refuses with the reason, the databases that ``rocprof-compute analyze`` writes."""

    name = "rocprof-compute-db"

    def accepts(self, source: Source) -> bool:
        """Has it the tables of rocprof-compute's analysis?"""
        return any(name.startswith("compute_workload") for name in source.sqlite_tables)

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Refuse: averages of an analysis are not records.

        Raises:
            InputError: always.
        """
        raise InputError(
            f"{sources[0].path.name} is an analysis database of rocprof-compute",
            why="it holds results over all dispatches, not the dispatches",
            fix="give the pmc_perf.csv of the workload it was made from",
        )


class RocprofReader:
    """The files of rocprof v1, v2 and rocprof-compute. v1 writes one run as database, JSON and CSV at once:
    the richest form is read, and the others are left out."""

    name = "rocprof"
    _forms: tuple[Reader, ...] = (V1DatabaseReader(), V1JsonReader(), WideReader())  # richest first

    def accepts(self, source: Source) -> bool:
        """Is it any of their files?"""
        return any(form.accepts(source) for form in self._forms)

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the writer from the richest form of the run."""
        found = expand(self, sources)
        for form in self._forms:
            mine = [source for source in found if form.accepts(source)]
            if mine:
                others = [source for source in found if source not in mine]
                writer.issue(
                    "other_forms_left_out",
                    len(others),
                    f"the run was written in several forms: {form.name} was read",
                    others[0].path.name if others else None,
                )
                form.read(mine, writer, progress)
                return
        raise InputError("no file of rocprof among these", fix="give results.db, results.json or results.csv")


READERS: tuple[Reader, ...] = (
    RpdReader(),
    RocpdReader(),
    AnalysisDatabaseReader(),
    ResultsJsonReader(),
    CsvReader(),
    RocprofReader(),
)
"""Readers in the order in which they are tried; each knows its files by their content."""
