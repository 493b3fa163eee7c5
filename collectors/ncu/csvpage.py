"""CSV pages of ncu: raw (a column per metric) and details (a row per metric), alone or inside the output of
the program."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from profrun.collectors.ncu.launches import Launch, triple
from profrun.collectors.ncu.units import DecimalComma, normal, number
from profrun.collectors.unpack import DAMAGED
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

HEADER = re.compile(r'^\ufeff?"?ID"?,"?Process ID"?,"?Process Name"?,.*Kernel Name')
SUMMARY = re.compile(r'^\ufeff?"?Process ID"?,.*"?Invocations"?')
_IDENTITY = {
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
}


def looks_like(head: bytes) -> bool:
    """Is there a header of one of ncu's CSV pages in these first bytes, maybe after the app's own output?"""
    lines = head.decode("utf-8", "replace").splitlines()
    return any(HEADER.match(line) or SUMMARY.match(line) for line in lines)


class _Lines:
    """Lines of the CSV inside mixed output: from the header on, without ncu's and the app's own lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.header: list[str] | None = None
        self.foreign = 0
        self.quoted = False

    def __iter__(self) -> Iterator[str]:
        inside = False  # a quoted field with line breaks goes on
        for line in self._stream:
            if self.header is None:
                self._look_for_header(line)
                continue
            if not inside and (not line.strip() or HEADER.match(line)):
                continue
            starts = line.startswith('"') if self.quoted else line[:1].isdigit() or line.startswith(",")
            if not inside and not starts:
                self.foreign += 1
                continue
            if line.count('"') % 2:
                inside = not inside
            yield line

    def _look_for_header(self, line: str) -> None:
        if SUMMARY.match(line):
            raise InputError(
                "this is ncu's summary page (--print-summary), which has no launches",
                fix="print the raw page: `ncu --import REPORT --csv --page raw --print-units base`",
            )
        if HEADER.match(line):
            self.header = next(csv.reader([line.lstrip("\ufeff")]))
            self.quoted = line.lstrip("\ufeff").startswith('"')


def read(path: Path, writer: TraceWriter, rank: int, *, zipped: bool) -> list[Launch]:
    """Launches of one CSV file in the order they were profiled.

    Raises:
        InputError: no header, a summary page, or numbers with a decimal comma.
    """
    with path.open("rb") as raw:
        binary = gzip.GzipFile(fileobj=raw) if zipped else raw
        lines = _Lines(io.TextIOWrapper(binary, encoding="utf-8", errors="replace", newline=""))
        rows = csv.reader(lines)
        try:
            first = next(rows, None)
            if lines.header is None:
                raise InputError(f"{path} holds no table of ncu", fix="record it with --csv --page raw")
            if "Metric Name" in lines.header:
                launches = _details(lines.header, first, rows, writer)
            else:
                launches = _raw(lines.header, first, rows, writer)
        except DecimalComma as error:
            raise InputError(
                f"{path} has numbers with a decimal comma ({error})",
                why="ncu ran in a locale that writes them so, and thousands cannot be told from decimals",
                fix="run ncu with LC_ALL=C, or give the .ncu-rep",
            ) from error
        except (*DAMAGED, csv.Error) as error:
            raise InputError(f"{path} is damaged", why=str(error), fix="print the page again") from error
    writer.issue("foreign-lines", lines.foreign, "lines of the program or of ncu between the table's rows")
    for item in launches:
        item.rank = rank
    return launches


def _identity(row: dict[str, str]) -> Launch:
    """The id columns, which every page has."""
    item = Launch(row.get("Kernel Name") or "unknown kernel")
    item.pid = _int(row.get("Process ID"))
    item.process = row.get("Process Name") or None
    item.host = row.get("Host Name") or None
    item.context = _int(row.get("Context"))
    item.stream = _int(row.get("Stream"))
    item.device = _int(row.get("Device")) or 0
    item.capability = row.get("CC") or None
    item.grid = triple(row.get("Grid Size") or "")
    item.block = triple(row.get("Block Size") or "")
    return item


def _raw(
    header: list[str], first: list[str] | None, rows: Iterator[list[str]], writer: TraceWriter
) -> list[Launch]:
    """Page raw: the first row has the units, each further row is a launch."""
    if first is None:
        return []
    units = dict(zip(header, first, strict=False))
    launches = []
    short = 0
    for cells in rows:
        if len(cells) < len(header):
            short += 1
            continue
        row = dict(zip(header, cells, strict=False))
        item = _identity(row)
        for name, text in row.items():
            if name not in _IDENTITY:
                _put(item, name, text, units.get(name, ""))
        launches.append(item)
    writer.issue("row-cut", short, "launches whose row is cut short were left out")
    return launches


def _details(
    header: list[str], first: list[str] | None, rows: Iterator[list[str]], writer: TraceWriter
) -> list[Launch]:
    """Page details: one row per metric (shorter than the header) or rule; ID and pid tell launches apart."""
    launches: dict[tuple[str, str], Launch] = {}
    rules, cut, example = 0, 0, None
    if "Metric Value" not in header or "ID" not in header:
        raise InputError(
            "a details page of ncu lacks its columns ID or Metric Value", fix="print the page again"
        )
    need = header.index("Metric Value") + 1
    for cells in _chain(first, rows):
        if len(cells) < need:
            cut += 1
            continue
        row = dict(zip(header, cells, strict=False))
        key = (row["ID"], row.get("Process ID", ""))
        if key not in launches:
            launches[key] = _identity(row)
        item = launches[key]
        name = row["Metric Name"]
        if not name:
            rules += 1
            example = example or row.get("Rule Description")
            continue
        if name in item.metrics or name in item.texts:
            name = f"{name} ({row.get('Section Name', '')})"
        _put(item, name, row["Metric Value"], row.get("Metric Unit", ""))
    writer.issue("row-cut", cut, "rows that are cut short were left out")
    writer.issue("rules-left-out", rules, "advice of ncu's rules has no place in this trace format", example)
    return list(launches.values())


def _chain(first: list[str] | None, rows: Iterator[list[str]]) -> Iterator[list[str]]:
    if first is not None:
        yield first
    yield from rows


def _put(item: Launch, name: str, text: str, unit: str) -> None:
    name = name.strip() or "unnamed metric"
    value = number(text)
    if value is None:
        item.texts[name] = text
    else:
        item.metrics[name] = normal(value, unit)


def _int(text: str | None) -> int | None:
    return int(text) if text and text.strip().lstrip("-").isdigit() else None
