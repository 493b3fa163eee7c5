"""JSON read a value at a time: large files are walked key by key and element by element in bounded memory.

Each leaf value is decoded by the standard library's C scanner, so integers stay exact at any size.
"""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Iterator
from typing import IO, Any, cast

from profrun.collectors.reading import Source

_CHUNK = 1 << 20
_MAX_VALUE = 64 << 20
_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


def open_bytes(source: Source) -> IO[bytes]:
    """The file's bytes, unpacked when its content is gzip."""
    return cast("IO[bytes]", gzip.open(source.path)) if source.gzip else source.path.open("rb")


class Truncated(Exception):
    """The text ended inside a value."""


class Malformed(Exception):
    """The text is not JSON; the message says where."""


class JsonStream:
    """A cursor over JSON text.

    ``items()`` and ``elements()`` walk an object or a list without holding it; every value they announce must
    be consumed with ``value()``, ``items()``, ``elements()`` or ``skip()`` before the next one is taken.

    Raises:
        Truncated: (every method) the text ends too early.
        Malformed: (every method) the text is not JSON.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._at = 0
        self._done = 0
        self._end = False

    @property
    def position(self) -> int:
        """Characters consumed so far."""
        return self._done + self._at

    def peek(self) -> str:
        """Next character that is not white space, not consumed."""
        while True:
            text, at = self._text, self._at
            while at < len(text) and text[at] in _SPACE:
                at += 1
            self._at = at
            if at < len(text):
                return text[at]
            if not self._more():
                raise Truncated

    def value(self) -> Any:
        """Decode and consume the next value."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._end:
                    raise (Truncated() if self._cut(error) else self._bad(error.msg)) from None
                if not self._cut(error):
                    raise self._bad(error.msg) from None
            except RecursionError:
                raise self._bad("nested too deeply") from None
            else:
                if end < len(self._text) or self._end or isinstance(value, (dict, list, str)):
                    self._at = end
                    return value
            if len(self._text) - self._at > _MAX_VALUE:
                raise self._bad("one value of more than 64 MiB")
            self._more(max(_CHUNK, len(self._text) - self._at))

    def items(self) -> Iterator[str]:
        """Keys of the object at the cursor; consume each value before going on."""
        self._take("{")
        if self.peek() == "}":
            self._take("}")
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise self._bad("a key that is not a string")
            self._take(":")
            yield key
            if self.peek() == "}":
                self._take("}")
                return
            self._take(",")

    def elements(self) -> Iterator[int]:
        """Numbers of the elements of the list at the cursor; consume each before going on."""
        self._take("[")
        if self.peek() == "]":
            self._take("]")
            return
        number = 0
        while True:
            yield number
            number += 1
            if self.peek() == "]":
                self._take("]")
                return
            self._take(",")

    def skip(self) -> None:
        """Consume the next value without holding more of it than one leaf."""
        first = self.peek()
        if first == "{":
            for _ in self.items():
                self.skip()
        elif first == "[":
            for _ in self.elements():
                self.value()  # elements are small; lists are what can be long
        else:
            self.value()

    def _take(self, character: str) -> None:
        if self.peek() != character:
            raise self._bad(f"expected {character!r}")
        self._at += 1

    def _cut(self, error: json.JSONDecodeError) -> bool:
        """Could more text make this valid?"""
        return error.pos >= len(self._text) - 12 or error.msg.startswith(
            ("Unterminated string", "Invalid \\u")
        )

    def _bad(self, what: str) -> Malformed:
        return Malformed(f"{what} near character {self.position}")

    def _more(self, size: int = _CHUNK) -> bool:
        if self._end:
            return False
        try:
            data = self._file.read(size)
        except EOFError:  # gzip that was cut off
            data = b""
        self._end = not data
        self._done += self._at
        self._text = self._text[self._at :] + self._decoder.decode(data, final=self._end)
        self._at = 0
        return True
