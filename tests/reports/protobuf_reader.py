"""A reader of protobuf's wire format, written from its documentation and not from profrun's own code.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator


def _varints(data: bytes) -> Iterator[tuple[int, int]]:
    """The varints at the beginning of some bytes, and where each ends."""
    value = shift = 0
    for at, byte in enumerate(data):
        value += (byte % 128) * 2**shift
        shift += 7
        if byte < 128:
            yield value, at + 1
            value = shift = 0


def varints(data: bytes) -> list[int]:
    """A packed field."""
    return [value for value, _ in _varints(data)]


def fields(data: bytes) -> dict[int, list[int | bytes]]:
    """Field number -> its values: numbers of wire type 0, bytes of wire type 2; there must be no others."""
    found: dict[int, list[int | bytes]] = {}
    while data:
        key, end = next(_varints(data))
        value, size = next(_varints(data[end:]))
        data = data[end + size :]
        if key % 8 == 2:
            assert len(data) >= value
            found.setdefault(key // 8, []).append(data[:value])
            data = data[value:]
        else:
            assert key % 8 == 0
            found.setdefault(key // 8, []).append(value)
    return found
