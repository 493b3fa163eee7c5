"""Every reader of AMD's profilers, most specific first."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.collectors.reading import Progress, Reader, Source
from profrun.collectors.rocprof.csvs import CsvReader
from profrun.collectors.rocprof.results_json import ResultsJsonReader
from profrun.collectors.rocprof.rocpd import RocpdReader
from profrun.collectors.rocprof.rpd import RpdReader
from profrun.collectors.rocprof.v1 import V1DatabaseReader, V1JsonReader
from profrun.collectors.rocprof.wide import WideReader
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


READERS: tuple[Reader, ...] = (
    RpdReader(),
    RocpdReader(),
    V1DatabaseReader(),
    AnalysisDatabaseReader(),
    ResultsJsonReader(),
    V1JsonReader(),
    CsvReader(),
    WideReader(),
)
"""Readers in the order in which they are asked; each knows its files by content."""
