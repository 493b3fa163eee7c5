"""Reader of Nsight Compute: .ncu-rep reports and CSV pages."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from profrun.collectors.beside import beside
from profrun.collectors.ncu import csvpage, launches, report
from profrun.collectors.reading import Progress, Source
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter


class NcuReader:
    """See ``collectors.reading.Reader``. Several files are ranks of one run."""

    name = "ncu"

    def accepts(self, source: Source) -> bool:
        """A report by its magic, a CSV page by its header line."""
        return source.head.startswith(report.MAGIC) or csvpage.looks_like(source.head)

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """See ``collectors.reading.Reader``.

        Raises:
            InputError: damaged, a summary page, or numbers in another locale.
            UnavailableError: a report, and the ncu-report package is not installed.
        """
        chosen = _choose(sources, writer)
        total = sum(source.path.stat().st_size for source in chosen)
        done = 0
        found: list[launches.Launch] = []
        for number, source in enumerate(chosen):
            near = beside(source.path)
            rank = near.folder_rank
            guess = rank is None and len(chosen) > 1
            rank = number if rank is None else rank
            if source.head.startswith(report.MAGIC):
                mine = report.read(source.path, writer, rank)
            else:
                mine = csvpage.read(source.path, writer, rank, zipped=source.gzip)
            for item in mine:
                item.rank_guessed, item.beside = guess, near
            found += mine
            done += source.path.stat().st_size
            progress(done, total)
        try:
            launches.write(found, writer)
        except duckdb.Error as error:
            raise InputError(
                f"{chosen[0].path} holds numbers that no report of ncu has",
                why=" ".join(str(error).split()),
                fix="copy or print it again",
            ) from error
        writer.meta.update(
            {
                "source": "ncu",
                "collector": "ncu",
                "vendor": "nvidia" if found else "none",
                "replayed": True,
                "clock": "session",
            }
        )


READERS = (NcuReader(),)


def _choose(sources: Sequence[Source], writer: TraceWriter) -> list[Source]:
    """A report and its own CSV page say the same twice: take the reports when they can be read."""
    reports = [source for source in sources if source.head.startswith(report.MAGIC)]
    pages = [source for source in sources if source not in reports]
    if not reports or not pages:
        return list(sources)
    left = pages if report.module() is not None else reports
    writer.issue(
        "same-twice",
        len(left),
        "a report and a CSV page of it hold the same launches: one of them was read",
        left[0].path.name,
    )
    return [source for source in sources if source not in left]
