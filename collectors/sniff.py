"""Look at a file once: what it holds, not what it is called."""

from __future__ import annotations

import sqlite3
import stat
import zlib
from pathlib import Path

from profrun.collectors import unpack
from profrun.collectors.reading import Source
from profrun.collectors.unpack import Packing, packing
from profrun.errors import InputError

MOST_FILES = 10_000
"""Files of a folder that are looked at."""
HEAD_BYTES = 64 * 1024
_REFUSED = (
    (b"version https://git-lfs", "a git-LFS pointer, not the file itself", "fetch it with `git lfs pull`"),
    (b"PK\x03\x04", "a zip archive", "unpack it and give the files inside"),
)


def make_source(path: Path | str) -> Source:
    """Read the head of ``path`` and say what is there.

    Folders are allowed (nsys parquetdir); everything else must be a regular file.

    Raises:
        InputError: missing, unreadable, empty, not a regular file (FIFO, device), a git-LFS pointer, an
            archive, or a SQLite database that is damaged or has a zeroed header.
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return Source(path, b"", False)
        if not stat.S_ISREG(mode):
            raise InputError(
                f"{path} is not a regular file",
                why="it is a pipe, socket or device",
                fix="write it to a file first",
            )
        with path.open("rb") as file:
            raw = file.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path} cannot be read", why=error.strerror, fix="check the path") from error
    if not raw:
        raise InputError(
            f"{path} is empty", why="the profiler wrote nothing or was killed", fix="record again"
        )
    how = packing(raw)
    if how is not None:
        return _packed(path, how)
    _refuse(path, raw)
    tables = frozenset[str]()
    if raw.startswith(b"SQLite format 3\0"):
        tables = _sqlite_tables(path)
    return Source(path, raw, False, tables)


def _packed(path: Path, how: Packing) -> Source:
    """A packed file; text in gzip may be cut, because its readers take what can be had of it."""
    gzip = how.name == "gzip"
    inside = gunzip_head(path) if gzip else unpack.head(path, how, HEAD_BYTES)
    if not inside:
        raise InputError(
            f"{path} holds no data",
            why=f"its {how.name} stream is cut or damaged, or nothing was packed",
            fix="copy it again, or record again",
        )
    _refuse(path, inside)
    text = inside.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")) or b"\0" not in inside
    return Source(path, inside, gzip, packed=None if gzip and text else how)


def gunzip_head(path: Path, size: int = HEAD_BYTES) -> bytes:
    """The first ``size`` bytes inside a gzip file; what there is when it is cut or damaged."""
    unzip = zlib.decompressobj(31)
    out = b""
    try:
        with path.open("rb") as file:
            while len(out) < size and not unzip.eof and (raw := file.read(512)):
                out += unzip.decompress(raw)
    except zlib.error:
        pass  # the reader says what is damaged; here only the head matters
    return out[:size]


def _refuse(path: Path, head: bytes) -> None:
    for magic, what, fix in _REFUSED:
        if head.startswith(magic):
            raise InputError(f"{path} is {what}", fix=fix)
    if head[257:262] == b"ustar":
        raise InputError(f"{path} is a tar archive", fix="unpack it with `tar -xf` and give the files inside")
    if not head.strip(b"\0"):
        raise InputError(
            f"{path} begins with {len(head)} zero bytes",
            why="an export or copy was interrupted before the header was written",
            fix="export or copy it again",
        )
    if not head.strip():
        raise InputError(f"{path} holds only white space", fix="record again")


def _sqlite_tables(path: Path) -> frozenset[str]:
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        con = sqlite3.connect(uri, uri=True)
        try:
            rows = con.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        finally:
            con.close()
    except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite quotes damaged bytes in its own message
        raise InputError(
            f"{path} is a damaged SQLite database",
            why=" ".join(str(error).split()),
            fix="export or copy it again",
        ) from error
    return frozenset(str(row[0]) for row in rows)
