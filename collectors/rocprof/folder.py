"""A folder given instead of files: every file in it that the reader knows, by content."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.collectors.reading import Reader, Source
from profrun.collectors.sniff import MOST_FILES, make_source
from profrun.errors import InputError


def inside(source: Source) -> list[Source]:
    """Readable files below a folder, sorted; the source itself when it is a file."""
    if not source.path.is_dir():
        return [source]
    found: list[Source] = []
    for number, path in enumerate(sorted(source.path.rglob("*"))):
        if number >= MOST_FILES:
            break
        if not path.is_file():
            continue
        try:
            found.append(make_source(path))
        except InputError:  # empty files of processes without GPU work, logs, archives
            continue
    return found


def knows(reader: Reader, source: Source) -> bool:
    """Does a folder hold a file that the reader accepts?"""
    return source.path.is_dir() and any(reader.accepts(item) for item in inside(source))


def expand(reader: Reader, sources: Sequence[Source]) -> list[Source]:
    """Sources with folders replaced by the files in them that the reader accepts."""
    found: list[Source] = []
    for source in sources:
        found += [item for item in inside(source) if item is source or reader.accepts(item)]
    return found
