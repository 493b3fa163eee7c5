"""The wire format of protobuf: fields as bytes, from which messages are put together.

https://protobuf.dev/programming-guides/encoding/ says what each looks like.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable


def varint(value: int) -> bytes:
    """Base-128 varint of a number from 0 to 2^64 - 1."""
    if value < 0x80:
        return _SMALL[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL = [bytes((value,)) for value in range(0x80)]


def number(field: int, value: int) -> bytes:
    """A varint field; negative values as two's complement of 64 bits, as int32 and int64 have them."""
    return varint(field << 3) + varint(value & 0xFFFFFFFFFFFFFFFF)


def block(field: int, data: bytes) -> bytes:
    """A length-delimited field: bytes, text or a message."""
    return varint(field << 3 | 2) + varint(len(data)) + data


def text(field: int, value: str) -> bytes:
    """A string field."""
    return block(field, value.encode("utf-8", "replace"))


def double(field: int, value: float) -> bytes:
    """A double field."""
    return varint(field << 3 | 1) + struct.pack("<d", value)


def fixed64(field: int, value: int) -> bytes:
    """A fixed64 field."""
    return varint(field << 3 | 1) + struct.pack("<Q", value & 0xFFFFFFFFFFFFFFFF)


def packed(field: int, values: Iterable[int]) -> bytes:
    """A repeated varint field in its packed form; negative values as in ``number``."""
    return block(field, b"".join(varint(value & 0xFFFFFFFFFFFFFFFF) for value in values))
