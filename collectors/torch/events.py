"""The compiled parser of trace events (``events.c``), called through ctypes.

It is built when profrun is installed and a C compiler is there (``hatch_build.py``). Without it, or with
PROFRUN_COMPILED=0, the same files are read by DuckDB's JSON reader: the same trace, more slowly.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIBRARY = Path(__file__).with_name("_events.so")
MISSING = -(2**63)
"""NULL in a column of integers."""

Kind = Literal["text", "integer", "microseconds", "real", "triple"]
_KINDS: tuple[Kind, ...] = ("text", "integer", "microseconds", "real", "triple")
"""In the order of events.c's enum."""


class Field(NamedTuple):
    """A key of an event that is read.

    Attributes:
        column: name of its column; a triple has three, ``column`` with _x, _y and _z. Keys may share one.
        key: the key in the JSON.
        kind: text (any value), integer (also as a string), microseconds (becomes int64 ns), real, or triple
            (three integers).
        inside: whether it is in the event's ``args``.
    """

    column: str
    key: str
    kind: Kind
    inside: bool = True


class Refused(Exception):
    """The text is not the JSON that was asked for; says what stood there."""


@cache
def _load() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError:  # not built here, or built for another machine
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int
    if not hasattr(library, "events_owner"):  # built from the source of another version
        return None
    library.events_new.restype = pointer
    library.events_free.argtypes = [pointer]
    library.events_field.argtypes = [pointer, number, ctypes.c_char_p, number, number]
    library.events_owner.argtypes = [pointer, number, number, ctypes.POINTER(number), number]
    library.events_read.argtypes = [pointer, pointer, ctypes.POINTER(ctypes.c_int64), pointer, ctypes.c_int64]
    library.events_read.restype = ctypes.c_int64
    library.events_table.argtypes = [pointer, number, pointer, pointer]
    library.events_table.restype = ctypes.c_int64
    return library


def library() -> ctypes.CDLL | None:
    """The compiled parser, or None where there is none or PROFRUN_COMPILED=0 forbids it."""
    return None if os.environ.get("PROFRUN_COMPILED") == "0" else _load()


class Parser:
    """Reads the texts of one file's pieces, one after the other, in one thread.

    Attributes:
        columns: name -> place in ``values``; ``owner`` is the last.
        values: int64, one row per column, ``room`` events wide; overwritten by each ``read``. Texts and
            owners are numbers (``texts``, ``owners``), reals are the bits of a double, what is not there is
            ``MISSING``.
    """

    def __init__(self, fields: Sequence[Field], owner: Sequence[str], room: int = 1 << 15) -> None:
        """``owner`` names the columns that together say whose event it is; needs columns ph and cat."""
        found = library()
        if found is None:
            raise RuntimeError("no compiled parser here")
        self._library = found
        self._parser = ctypes.c_void_p(found.events_new())
        self.room = room
        self.columns: dict[str, int] = {}
        width = 0
        for field in fields:
            names = (
                [field.column + axis for axis in ("_x", "_y", "_z")]
                if field.kind == "triple"
                else [field.column]
            )
            if names[0] not in self.columns:
                self.columns |= {name: width + place for place, name in enumerate(names)}
                width += len(names)
            self._ask(field, self.columns[names[0]])
        self.columns["owner"] = width
        self._owner_width = len(owner)
        places = (ctypes.c_int * len(owner))(*(self.columns[name] for name in owner))
        found.events_owner(self._parser, self.columns["ph"], self.columns["cat"], places, len(owner))
        self.values: NDArray[np.int64] = np.empty((width + 1, room), dtype=np.int64)

    def _ask(self, field: Field, place: int) -> None:
        key, kind = field.key.encode(), _KINDS.index(field.kind)
        if not self._library.events_field(self._parser, int(field.inside), key, kind, place):
            raise RuntimeError(f"events.c has no room for {field}")

    def read(self, text: bytes | mmap, at: int, end: int | None = None) -> tuple[int, int]:
        """Read events from ``at`` on until ``end`` or until the room is full.

        Args:
            text: a bytes object, or anonymous memory with a NUL behind ``end``.
            at: where to begin: between events.
            end: where the text ends, None for all of it; never None for anonymous memory.

        Returns:
            (events now in ``values``, where reading stopped).

        Raises:
            Refused: what stands there is not what was asked for.
        """
        stop = len(text) if end is None else end
        length = ctypes.c_int64(stop - at)
        if isinstance(text, bytes):  # CPython keeps a NUL behind it
            start = ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value or 0
        else:
            start = ctypes.addressof(ctypes.c_char.from_buffer(text))
        rows = self._library.events_read(
            self._parser, start + at, ctypes.byref(length), self.values.ctypes.data, self.room
        )
        if rows < 0:
            stop = at + length.value
            raise Refused(text[max(0, stop - 60) : stop + 60].decode("utf-8", "replace"))
        return int(rows), at + length.value

    def texts(self, first: int) -> list[bytes]:
        """The JSON of texts number ``first`` and on, as it is in the file."""
        data, start = self._table(0, first)
        return [data[begin:end] for begin, end in pairwise(start)]

    def owners(self, first: int) -> list[tuple[int, ...]]:
        """Values of the owner's columns for owners number ``first`` and on."""
        data, start = self._table(1, first)
        rows = np.frombuffer(data, dtype=np.int64).reshape(len(start) - 1, self._owner_width)
        return [tuple(row) for row in rows.tolist()]

    def _table(self, which: int, first: int) -> tuple[bytes, list[int]]:
        """Bytes of the strings from number ``first`` on, and where each starts and ends in them."""
        data, start = ctypes.c_void_p(), ctypes.c_void_p()
        count = self._library.events_table(self._parser, which, ctypes.byref(data), ctypes.byref(start))
        if count <= first or start.value is None:
            return b"", [0]
        offsets = (ctypes.c_int64 * (count - first + 1)).from_address(start.value + 8 * first)
        begin, end = offsets[0], offsets[count - first]
        return ctypes.string_at((data.value or 0) + begin, end - begin), [
            offset - begin for offset in offsets
        ]

    def close(self) -> None:
        """Free the parser's memory; it must not be used after that."""
        self._library.events_free(self._parser)
