"""What a trial left behind: each file whole, truncated (named as such, and kept) or missing."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from ..contract.exit import Artefact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..contract.exit import ArtefactState

_UNFINISHED = (".partial", ".tmp", ".qdstrm", ".dat", ".db-journal", ".db-wal")
_FULL_CHECK = 256 << 20  # compressed bytes up to which a gzip file is read to its end


def examine(path: Path) -> ArtefactState:
    """'whole' or 'truncated', by the file's own end; a file of an unknown format is whole if not empty."""
    try:
        size = path.stat().st_size
        if size == 0 or path.name.endswith(_UNFINISHED):
            return "truncated"
        with path.open("rb") as file:
            head = file.read(100)
            if head.startswith(b"SQLite format 3\0"):
                return "whole" if _sqlite_whole(head, size) else "truncated"
            if path.suffix in (".sqlite", ".db"):
                return "truncated"  # an interrupted export leaves a zeroed header
            if head.startswith(b"\x1f\x8b"):
                return "whole" if _gzip_whole(path, size) else "truncated"
            if path.suffix in (".json", ".csv"):
                file.seek(max(0, size - 64))
                tail = file.read().rstrip(b" \r\t")
                return "whole" if _text_whole(path.suffix, tail) else "truncated"
    except OSError:
        return "truncated"
    return "whole"


def _sqlite_whole(head: bytes, size: int) -> bool:
    """Page size (bytes 16-17, 1 means 65536) times page count (bytes 28-31) is the size of the file."""
    page = int.from_bytes(head[16:18], "big")
    page = 65536 if page == 1 else page
    count = int.from_bytes(head[28:32], "big")
    return page > 0 and (count == 0 or page * count <= size)


def _gzip_whole(path: Path, size: int) -> bool:
    if size > _FULL_CHECK:
        return size > 18
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error):
        return False
    return True


def _text_whole(suffix: str, tail: bytes) -> bool:
    stripped = tail.rstrip()
    if suffix == ".json":
        return stripped.endswith((b"}", b"]"))
    return tail.endswith(b"\n")


def collect(folder: Path, rank: int, expected: Iterable[str]) -> list[Artefact]:
    """Every file of a rank's raw folder with its state, then the expected patterns that match none.

    Args:
        folder: the trial folder; paths are relative to it.
        expected: globs relative to the rank's folder (``Wrapped.expected``).
    """
    raw = folder / "raw" / f"rank{rank}"
    found = [
        Artefact(path.relative_to(folder).as_posix(), _size(path), examine(path))
        for path in sorted(_files(raw))
    ]
    missing = [pattern for pattern in expected if not any(raw.glob(pattern))]
    return found + [Artefact(f"raw/rank{rank}/{pattern}", 0, "missing") for pattern in missing]


def _files(raw: Path) -> list[Path]:
    found = []
    for parent, _folders, names in os.walk(raw):
        found += [Path(parent) / name for name in names if ".lock" not in name]
    return [path for path in found if path.is_file()]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
