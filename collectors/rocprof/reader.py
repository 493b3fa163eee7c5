"""Every reader of AMD's profilers, most specific first."""

from __future__ import annotations

from profrun.collectors.reading import Reader
from profrun.collectors.rocprof.csvs import CsvReader
from profrun.collectors.rocprof.rocpd import RocpdReader

READERS: tuple[Reader, ...] = (RocpdReader(), CsvReader())
"""Readers in the order in which they are asked."""
