"""Packed files: gzip, xz, bzip2 and zstd, known by their first bytes and never by their names.

``packing`` says how a file is packed, ``head`` shows what is inside, and ``blocks`` gives all of it, in
bounded memory.
"""

from __future__ import annotations

import contextlib
import importlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Protocol

from profrun.errors import InputError

DAMAGED = (EOFError, OSError, ValueError, zlib.error)
"""What Python raises while a file is read that is packed or plain, and is cut or damaged. Every reader takes
these for an input error, and adds what its own format raises."""
BLOCK = 1 << 20
XZ_MEMORY = 512 << 20
"""A stream of xz says how much memory its decoder needs; one that needs more is refused."""


class _Decoder(Protocol):
    """What decompressors of lzma, bz2 and compression.zstd have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


@dataclass(frozen=True)
class Packing:
    """A way to pack files.

    Attributes:
        name: as a person calls it.
        magic: first bytes of a packed file.
        modules: Python modules that unpack it; the first one that is there does.
        command: unpacks a file where no module does.
        suffixes: names of packed files may end in these; they are taken off the unpacked one.
    """

    name: str
    magic: bytes
    modules: tuple[str, ...]
    command: str
    suffixes: tuple[str, ...]


PACKINGS = (
    Packing("gzip", b"\x1f\x8b", ("isal.igzip", "gzip"), "gunzip", (".gz",)),
    Packing("xz", b"\xfd7zXZ\0", ("lzma",), "xz -d", (".xz",)),
    Packing("bzip2", b"BZh", ("bz2",), "bunzip2", (".bz2",)),
    Packing(
        "zstd",
        b"\x28\xb5\x2f\xfd",
        ("compression.zstd", "backports.zstd", "zstandard", "pyarrow"),
        "zstd -d",
        (".zst", ".zstd"),
    ),
)


def packing(content: bytes) -> Packing | None:
    """How the content is packed, by its first bytes; None when it is not."""
    return next((one for one in PACKINGS if content.startswith(one.magic)), None)


def head(path: Path, how: Packing, size: int) -> bytes:
    """The first ``size`` bytes inside a packed file.

    Raises:
        InputError: it is damaged before that, or this Python has no module that unpacks it.
    """
    found = b""
    for block in blocks(path, how, size):
        found += block
        if len(found) >= size:
            break
    return found[:size]


def blocks(path: Path, how: Packing, size: int = BLOCK) -> Iterator[bytes]:
    """The unpacked content, about ``size`` bytes at a time.

    Raises:
        InputError: it is cut or damaged, or this Python has no module that unpacks it.
    """
    library = _library(how)
    if library is None:
        raise InputError(
            f"{path} is compressed with {how.name}",
            why="this Python has no module that unpacks it: " + " or ".join(how.modules),
            fix=f"unpack it with `{how.command}`",
        )
    with path.open("rb") as file:
        try:
            yield from _READERS[library.__name__](library, file, size)
        except _errors(library) as error:
            said = " ".join(str(error).split()) or type(error).__name__
            raise InputError(
                f"{path} cannot be unpacked",
                why=f"its {how.name} stream is cut or damaged ({said})",
                fix="copy it again, or record again",
            ) from error


def _library(how: Packing) -> ModuleType | None:
    for name in how.modules:
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    return None


def _errors(library: ModuleType) -> tuple[type[Exception], ...]:
    names = ("LZMAError", "ZstdError", "ArrowException")
    found = [getattr(library, name) for name in names if hasattr(library, name)]
    if library.__name__ == "isal.igzip":
        found.append(importlib.import_module("isal.isal_zlib").error)
    return (*DAMAGED, MemoryError, *found)


def _by_file(open_file: Callable[[ModuleType, IO[bytes]], Any]) -> Callable[..., Iterator[bytes]]:
    """A reader made of a function that opens the packed file as the unpacked one."""

    def read(library: ModuleType, file: IO[bytes], size: int) -> Iterator[bytes]:
        with open_file(library, file) as unpacked:
            while block := unpacked.read(size):
                yield bytes(block)

    return read


def _by_decoder(new: Callable[[ModuleType], _Decoder]) -> Callable[..., Iterator[bytes]]:
    """A reader made of a function that makes a decompressor of one stream; a file may have several."""

    def read(library: ModuleType, file: IO[bytes], size: int) -> Iterator[bytes]:
        decoder, data = new(library), b""
        while True:
            if decoder.eof:
                data = decoder.unused_data.lstrip(b"\0") or file.read(BLOCK).lstrip(
                    b"\0"
                )  # xz pads with zeros
                if not data:
                    return
                decoder = new(library)
            elif decoder.needs_input and not data:
                data = file.read(BLOCK)
                if not data:
                    raise EOFError("the end of the stream is missing")
            block, data = decoder.decompress(data, size), b""
            if block:
                yield block

    return read


_READERS: dict[str, Callable[..., Iterator[bytes]]] = {
    "isal.igzip": _by_file(lambda library, file: library.IGzipFile(fileobj=file)),
    "gzip": _by_file(lambda library, file: library.GzipFile(fileobj=file)),
    "lzma": _by_decoder(lambda library: library.LZMADecompressor(library.FORMAT_XZ, memlimit=XZ_MEMORY)),
    "bz2": _by_decoder(lambda library: library.BZ2Decompressor()),
    "compression.zstd": _by_decoder(lambda library: library.ZstdDecompressor()),
    "backports.zstd": _by_decoder(lambda library: library.ZstdDecompressor()),
    "zstandard": _by_file(
        lambda library, file: library.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    ),
    "pyarrow": _by_file(
        lambda library, file: library.CompressedInputStream(library.PythonFile(file), "zstd")
    ),
}
"""Module -> reader of the blocks of a packed file: (module, file, size of a block)."""
