"""A file in blocks, unpacked when it is gzip; a damaged stream gives what can be had of it."""

from __future__ import annotations

import importlib
import zlib
from pathlib import Path
from typing import IO, Any


def _fastest() -> Any:
    """isal's igzip, which takes a fifth of zlib's time, where it has a wheel."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return zlib


class Blocks:
    """Blocks of the unpacked file; a cut or damaged gzip stream ends early and says so.

    Attributes:
        done: bytes of the file on disk read so far (for progress).
        cut: why the stream ended early, or None.
        behind: what stands behind the end of a gzip stream and is no other one.
    """

    def __init__(self, path: Path, compressed: bool, library: Any = None) -> None:
        self.file: IO[bytes] = path.open("rb", buffering=0)
        self.compressed = compressed
        self.done = 0
        self.cut: str | None = None
        self.behind = b""
        self._path = path
        self._library = library or _fastest()
        self._unzip = self._library.decompressobj(31) if compressed else None
        self._unpacked = 0
        self._ended = False

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes (about that many when compressed), b'' at the end."""
        if self._unzip is None:
            data = self.file.read(size)
            self.done += len(data)
            return data
        parts: list[bytes] = []
        have = 0
        while have < size and not self._ended:
            try:
                part = self._inflate(size - have)
            except self._library.error:  # isal's: zlib's own are dealt with
                self._use_zlib(self._unpacked + have)
                continue
            parts.append(part)
            have += len(part)
        self._unpacked += have
        return b"".join(parts)

    def _inflate(self, size: int) -> bytes:
        assert self._unzip is not None
        if self._unzip.eof:  # several gzip members one after the other are one file
            rest = self._unzip.unused_data or self._raw()
            if not rest.startswith(b"\x1f\x8b"):
                self._ended = True
                self.behind = rest[:80]
                return b""
            self._unzip = self._library.decompressobj(31)
        else:
            rest = self._unzip.unconsumed_tail or self._raw()
        if not rest and self._library is not zlib:
            raise self._library.error("the end is missing: zlib gives a few bytes more")
        if not rest:
            self._ended = True
            self.cut = "the gzip stream ends before its end mark"
            return bytes(self._unzip.flush())
        if self._library is not zlib:
            return bytes(self._unzip.decompress(rest, size))
        before = self._unzip.copy()
        try:
            return bytes(self._unzip.decompress(rest, size))
        except zlib.error as error:
            self._ended = True
            self.cut = f"the gzip stream is damaged ({error})"
            return _salvage(before, rest)

    def _use_zlib(self, unpacked: int) -> None:
        """Go on with zlib, which can be asked for what stands just before the damage."""
        other = Blocks(self._path, True, zlib)
        while unpacked > 0 and (data := other.read(min(unpacked, 1 << 24))):
            unpacked -= len(data)
        self.file.close()
        self.file, self._unzip, self._library = other.file, other._unzip, zlib
        self._ended, self.cut, self.behind = other._ended, other.cut, other.behind

    def _raw(self) -> bytes:
        data = self.file.read(1 << 20)
        self.done += len(data)
        return data

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def _salvage(unzip: zlib._Decompress, damaged: bytes) -> bytes:
    """What can be unpacked before the damage, in steps of 64 bytes."""
    out: list[bytes] = []
    for at in range(0, len(damaged), 64):
        try:
            out.append(unzip.decompress(damaged[at : at + 64]))
        except zlib.error:
            break
    return b"".join(out)
