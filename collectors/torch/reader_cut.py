"""Cut a kineto JSON file into pieces of whole events, without parsing them.

A piece is the text of some events, ready to stand between ``[`` and ``]``. It is cut where the layout says
that an event ends: in the pretty-printed layout at ``}`` alone on a line of the events' own indent (a raw
newline cannot stand inside a JSON string), in the single-line layout where the text between two events and
the first key of an event follow a ``}`` (an unescaped quote cannot stand inside a string either). Both are
guesses about a file that may be damaged: a caller that cannot parse a piece calls ``scan`` on it, which walks
event by event, repairs what it can and knows where the array ends.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import mmap
from pathlib import Path
from typing import Any

from profrun.collectors.torch.reader_blocks import Blocks
from profrun.errors import InputError

BLOCK = 16 << 20
HEAD = 1 << 20
HEAD_LIMIT = 64 << 20
"""Most bytes of the keys before the events, and of those behind them."""
CARRY_LIMIT = 64 << 20
"""More than this without an event's end is walked instead of guessed; no event is larger."""
BLANK_LIMIT = 1 << 30
"""Most bytes of white space between events: gzip packs a thousand times as much into a file."""


@dataclass(frozen=True)
class Range:
    """A part of the plain file, by offset and length, not read yet."""

    start: int
    length: int


Piece = tuple["bytes | memoryview | Range", ...]
"""Text of whole events, in parts that belong together."""

_SPACE = b" \t\r\n"
_BETWEEN = b", \t\r\n"
_AFTER_EVENT = re.compile(r"\s*(?:,\s*)*")


@dataclass
class EventFile:
    """A kineto file as pieces of events and the keys round them.

    Attributes:
        careful: walk every event instead of guessing where they end: slow, for files that fooled the guess.
        keys: top-level keys other than ``traceEvents``; complete once ``pieces`` is exhausted.
        issues: code -> count of what was repaired or lost.
        examples: code -> one case.
    """

    path: Path
    compressed: bool
    careful: bool = False
    keys: dict[str, Any] = field(default_factory=dict)
    issues: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.blocks = Blocks(self.path, self.compressed)
        self._carry = b""
        self._ended = False
        self._blank = 0

    def note(self, code: str, example: str | None = None, count: int = 1) -> None:
        """Count an issue, keep its first example."""
        self.issues[code] += count
        if example is not None:
            self.examples.setdefault(code, example[:200])

    def open(self) -> bytes:
        """Read up to the first event; returns the text that begins with it (for a look at its layout).

        Raises:
            InputError: the file holds no array of events.
        """
        buffer = self.blocks.read(HEAD)
        while True:
            at = _find_events(buffer, self.keys)
            if at is not None:
                break
            more = self.blocks.read(max(HEAD, len(buffer)))
            if not more or len(buffer) > HEAD_LIMIT:
                at = self._search_events(buffer)
                break
            buffer += more
        self._carry = buffer[at:]
        self._first = at
        self._end = _Ends(self._carry)
        return self._carry

    def _search_events(self, buffer: bytes) -> int:
        found = re.search(rb'"traceEvents"\s*:\s*\[', buffer)
        if found is None:
            raise InputError(
                f"{self.path} has no traceEvents",
                why=self.blocks.cut or "the file was cut before its events, or is not a trace",
                fix="copy or record it again",
            )
        self.note("unreadable_head", buffer[:80].decode("utf-8", "replace"))
        for name, value in re.findall(
            rb'"(baseTimeNanoseconds|\w+_version)"\s*:\s*(\d+)', buffer[: found.end()]
        ):
            self.keys[name.decode()] = int(value)
        return found.end()

    def pieces(self) -> Iterator[Piece]:
        """Whole events without brackets, about ``BLOCK`` each; call ``open`` first."""
        if not self.compressed and not self.careful:
            yield from self._ranges()
        while not self._ended:
            block = self.blocks.read(BLOCK)
            if not block:
                break
            cut = 0 if self.careful else self._end.last(block)
            if cut:
                if self._carry:
                    yield self._carry, memoryview(block)[:cut]
                else:
                    yield (block[:cut].lstrip(_BETWEEN),)
                self._carry = block[cut:].lstrip(_BETWEEN)
                continue
            self._carry += block
            cut = 0 if self.careful else self._end.last(self._carry)
            if cut:
                piece, self._carry = self._carry[:cut], self._carry[cut:].lstrip(_BETWEEN)
                yield (piece,)
            elif self.careful or len(self._carry) >= CARRY_LIMIT:
                held = len(self._carry)
                good, self._carry, self._ended = self.scan(self._carry, final=False)
                if not self._ended:
                    self._refuse_endless(good, held)
                if good:
                    yield (good,)
        if self._ended:
            self.tail(self._carry)
        else:
            yield from self._finish()
        self._trailing()
        self._carry = b""  # the keys stay until the trace is made: hundreds of files would fill the memory

    def _refuse_endless(self, good: bytes, held: int) -> None:
        """Take white space from what is left behind the whole events, and refuse an event without an end.

        Args:
            good: the whole events.
            held: bytes that were walked.

        Raises:
            InputError: one event, or the white space before one, is too large to be true.
        """
        rest = self._carry.lstrip(_BETWEEN)
        self._blank = 0 if good.strip(_BETWEEN) else self._blank + held - len(rest)
        self._carry = rest
        if len(rest) >= CARRY_LIMIT:
            what, size = "an event", CARRY_LIMIT
        elif self._blank >= BLANK_LIMIT:
            what, size = "white space between events", BLANK_LIMIT
        else:
            return
        raise InputError(
            f"{self.path} has {what} of more than {size >> 20} MiB",
            why="no profiler writes such a file: it was damaged, or made to fill the memory",
            fix="record again",
        )

    def _ranges(self) -> Iterator[Piece]:
        """Pieces of a plain file, looking only at the surroundings of the cuts; leaves the rest to others."""
        fd = self.blocks.file.fileno()
        start = self._first
        while (end := start + BLOCK) < os.fstat(fd).st_size:
            for window in (min(BLOCK, 1 << 14), min(BLOCK, 1 << 19), BLOCK):
                tail = self._at(end - window, window)
                cut = self._end.last(tail)
                if cut:
                    break
            else:
                break
            stop = end - window + cut
            yield (Range(start, stop - start),)
            start = stop
            while between := len(peek := self._at(start, 256)) - len(peek.lstrip(_BETWEEN)):
                start += between
            self.blocks.done = start
        if start > self._first:
            self.blocks.file.seek(start)
            self._carry = b""

    def load(self, piece: Piece, buffer: mmap) -> int | None:
        """Put a piece into a buffer, a NUL behind it; its length, or None when it does not fit."""
        lengths = [part.length if isinstance(part, Range) else len(part) for part in piece]
        if sys.platform == "win32" or sum(lengths) >= len(buffer) or not hasattr(os, "preadv"):
            return None
        at = 0
        for part, length in zip(piece, lengths, strict=True):
            view = memoryview(buffer)[at : at + length]
            if not isinstance(part, Range):
                view[:] = part
            elif os.preadv(self.blocks.file.fileno(), [view], part.start) < length:
                return None
            at += length
        buffer[at] = 0
        return at

    def text(self, piece: Piece) -> bytes:
        """A piece as one string.

        Raises:
            InputError: the file became shorter since the piece was cut.
        """
        return b"".join(self._range(part) if isinstance(part, Range) else part for part in piece)

    def _at(self, start: int, length: int) -> bytes:
        """Bytes of the plain file. Its position stays: several threads read it."""
        if sys.platform == "win32":  # there is no pread
            with self.path.open("rb") as again:
                again.seek(start)
                return again.read(length)
        return os.pread(self.blocks.file.fileno(), length, start)

    def _range(self, part: Range) -> bytes:
        data = self._at(part.start, part.length)
        if len(data) < part.length:
            raise InputError(f"{self.path} became shorter while it was read", fix="wait until it is whole")
        return data

    def _finish(self) -> Iterator[Piece]:
        """The last piece: guess the array's end, walk what follows the last sure event."""
        data = self._carry
        stop = self._end.array_end(data)
        cut = 0 if self.careful else self._end.last(data if stop is None else data[:stop])
        if cut:
            yield (data[:cut].lstrip(_BETWEEN),)
        good, rest, ended = self.scan(data[cut:], final=True)
        if good:
            yield (good,)
        if ended:
            self.tail(rest)

    def _trailing(self) -> None:
        if self.blocks.behind.strip(b"\0"):
            self.note("trailing_text", self.blocks.behind.decode("utf-8", "replace"))

    def tail(self, rest: bytes) -> None:
        """Read the keys behind the array from everything that is left of the file."""
        while block := self.blocks.read(BLOCK):
            rest += block
            if len(rest) > HEAD_LIMIT:
                self.note("unreadable_tail", f"more than {HEAD_LIMIT >> 20} MiB behind traceEvents")
                return
        text = rest.decode("latin-1")
        at = _AFTER_EVENT.match(text)
        position = at.end() if at else 0
        position = _read_keys(text, position, self.keys)
        left = text[position:].strip()
        if left.startswith("}"):
            left = left[1:].strip()
        if left.startswith(('"', ",")):
            self.note("unreadable_tail", left[:80].encode("latin-1").decode("utf-8", "replace"))
        elif left:
            self.note("trailing_text", left[:80].encode("latin-1").decode("utf-8", "replace"))

    def scan(self, data: bytes, *, final: bool, patience: int = 1 << 20) -> tuple[bytes, bytes, bool]:
        """Walk events one by one, repairing (``reader_repair.walk``).

        Returns:
            (clean events, what is left behind them, whether the array's end was met). With ``final`` a cut
            event at the end is counted as an issue; without, it is what is left.
        """
        from profrun.collectors.torch.reader_repair import walk

        result = walk(data, final, self.note, patience)
        if final and not result.ended:
            lost = data[result.at : result.at + 80].decode("utf-8", "replace")
            self.note("truncated", f"{self.blocks.cut or 'the file ends inside traceEvents'}: {lost}")
        return result.events, data[result.at :], result.ended


class _Ends:
    """Where events end, by the layout of the first ones."""

    def __init__(self, head: bytes) -> None:
        first = head.find(b"{")
        line = head.rfind(b"\n", 0, first)
        self.pretty = first >= 0 and line >= 0 and not head[line + 1 : first].strip(_SPACE)
        self.marks: tuple[bytes, ...] = ()
        self.stops: tuple[bytes, ...] = ()
        if self.pretty:
            indent = head[line + 1 : first]
            self.marks = (b"\n" + indent + b"},", b"\n" + indent + b"} ,")
            self.stops = tuple(b"\n" + indent[:k] + b"]" for k in range(len(indent) + 1))
        elif first >= 0:
            self._single_line(head, first)

    def _single_line(self, head: bytes, first: int) -> None:
        text = head[first : first + (1 << 20)].decode("latin-1")
        try:
            event, end = json.JSONDecoder(strict=False).raw_decode(text)
        except (ValueError, RecursionError):
            return
        key = re.match(r'\s*,\s*\{\s*"[^"\\]*"\s*:', text[end:])
        if isinstance(event, dict) and key:
            self.marks = (("}" + key.group()).encode("latin-1"),)

    def last(self, data: bytes) -> int:
        """Length of the part of ``data`` that ends with the last sure event's ``}``, 0 when there is none."""
        for near in (1 << 14, len(data)):  # nearly always near the end; a mark that never comes costs a walk
            start = max(0, len(data) - near)
            ends = [at + mark.index(b"}") + 1 for mark in self.marks if (at := data.rfind(mark, start)) >= 0]
            if ends:
                return max(ends)
        return 0

    def array_end(self, data: bytes) -> int | None:
        """Where the array's ``]`` is in the pretty layout, None when it is not seen."""
        found = [at for at in (data.find(stop) for stop in self.stops) if at >= 0]
        return min(found) if found else None


def _find_events(buffer: bytes, keys: dict[str, Any]) -> int | None:
    """Position behind the ``[`` of the events; fills the keys before it. None: not seen (yet)."""
    text = buffer.decode("latin-1")
    start = len(text) - len(text.lstrip("\ufeff\u00ef\u00bb\u00bf \t\r\n"))
    if text.startswith("[", start):
        return start + 1
    if not text.startswith("{", start):
        return None
    found: dict[str, Any] = {}
    position = _read_keys(text, start + 1, found)
    match = re.compile(r'\s*,?\s*"traceEvents"\s*:\s*\[').match(text, position)
    if match is None:
        return None
    keys.update(found)
    return match.end()


def _read_keys(text: str, position: int, keys: dict[str, Any]) -> int:
    """Read ``"key": value`` pairs of an object until ``traceEvents``, its end, or something unreadable."""
    decoder = json.JSONDecoder(strict=False)
    key_at = re.compile(r'\s*,?\s*"((?:[^"\\]|\\.)*)"\s*:\s*')
    while (match := key_at.match(text, position)) is not None:
        if match.group(1) == "traceEvents":
            break
        try:
            _, end = decoder.raw_decode(text, match.end())
            raw = text[match.end() : end].encode("latin-1").decode("utf-8", "replace")
            keys[match.group(1)] = decoder.decode(raw)
        except (ValueError, RecursionError):
            break
        position = end
    return position
