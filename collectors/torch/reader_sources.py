"""Digests of the program's lines: ``*.sources.json`` beside a kineto file, where a mapping left one."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.collectors.reading import Source
from profrun.collectors.torch.documents_beside import documents
from profrun.contract.source_digests import ENDING, SourceDigests
from profrun.traces.writer import TraceWriter


def source_lines(writer: TraceWriter, sources: Sequence[Source]) -> None:
    """Fill ``source_lines``; a file that several ranks have is told once."""
    found = documents(writer, sources, ENDING, SourceDigests, "which lines the program had is not known")
    files = {file.path: file for one in found for file in one.files}
    rows = [
        (path, number, digest)
        for path in sorted(files)
        for number, digest in enumerate(files[path].digests, 1)
        if digest
    ]
    if rows:
        writer.insert("source_lines", ("file", "line", "digest"), rows)
