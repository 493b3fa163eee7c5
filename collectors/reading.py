"""The seam of readers: content in, a filled TraceWriter out.

The ``reader.py`` of a profiler has ``READERS``, a tuple of objects of the protocol below;
``collectors.normalize`` tries them in order: the first that accepts the content reads it. File names never
decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from profrun.collectors.unpack import Packing
from profrun.traces.writer import TraceWriter

Progress = Callable[[int, int | None], None]
"""Called with bytes (or rows) done and the total, None when unknown."""

TIME_LIMIT_NS = 2**61
"""Times and durations beyond (unix times of 2043) are damage; a time, a shift and a duration fit int64."""


@dataclass(frozen=True)
class Source:
    """A file to read and what was seen of it.

    Attributes:
        path: the file (or folder: parquetdir).
        head: its first 64 KiB, unpacked when it is packed.
        gzip: whether the content is gzip, whatever the suffix: readers of text unpack it on the way.
        sqlite_tables: names of tables and views when it is a readable SQLite database, else empty.
        packed: how it must be unpacked before it is read; None for what readers can read as it is.
    """

    path: Path
    head: bytes
    gzip: bool
    sqlite_tables: frozenset[str] = frozenset()
    packed: Packing | None = None


class Reader(Protocol):
    """Reads one family of files.

    Attributes:
        name: value of ``meta.source``: kineto, nsys, ncu, rocpd, rocprofv3-csv, ...
    """

    name: str

    def accepts(self, source: Source) -> bool:
        """Is this content mine? Cheap, never raises."""

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the writer's tables and meta from all sources (ranks, databases, CSV families of one run).

        Raises:
            InputError: it is mine but cannot be read; says what it is and what to do.
        """
