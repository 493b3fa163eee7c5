"""The blocks of a .ncu-rep: is it whole, and which process is each launch from?

NVIDIA's reader takes what is left of a cut report without a word, and does not tell processes. A report is
NVR and a zero byte, a length and a small header, then blocks: a length, a header of that length, a payload.
Of a header (a protocol buffer) field 2 is the number of results in the payload, 5 its size, 6 the process: 1
its pid, 2 the host, 3 the program. Seen so in every report from ncu 2022 to 2025 that was at hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from profrun.errors import InputError

_RESULTS, _PAYLOAD_SIZE, _PROCESS = 2, 5, 6
_LARGEST_HEADER = 1 << 28


Process = tuple[int, "str | None", "str | None"]
"""pid, host, name of the program"""


def processes(path: Path) -> list[Process | None]:
    """The process of every result in the order of the file; None where a block does not say it.

    Raises:
        InputError: the last block is not all there, or a header makes no sense.
    """
    size = path.stat().st_size
    found: list[Process | None] = []
    with path.open("rb") as stream:
        stream.seek(4)
        try:
            stream.seek(_length(stream), 1)
            while stream.tell() < size:
                header = _exactly(stream, _length(stream))
                values = _fields(header)
                found += [_process(values.get(_PROCESS))] * _number(values, _RESULTS)
                stream.seek(_number(values, _PAYLOAD_SIZE), 1)
        except ValueError as error:
            raise InputError(
                f"{path} is damaged or cut short",
                why=str(error),
                fix="copy it again; ncu writes the report when the program ends, so it may have been killed",
            ) from error
        if stream.tell() > size:
            raise InputError(
                f"{path} is cut short",
                why=f"it has {size} bytes, its last part ends at {stream.tell()}",
                fix="copy it again; ncu writes the report when the program ends, so it may have been killed",
            )
    return found


def _process(message: int | bytes | None) -> Process | None:
    if not isinstance(message, bytes):
        return None
    values = _fields(message)
    pid, host, path = values.get(1), values.get(2), values.get(3)
    if not isinstance(pid, int):
        return None
    name = path.decode("utf-8", "replace").rsplit("/", 1)[-1] if isinstance(path, bytes) else None
    return pid, host.decode("utf-8", "replace") if isinstance(host, bytes) else None, name


def _number(values: dict[int, int | bytes], field: int) -> int:
    value = values.get(field, 0)
    return value if isinstance(value, int) else 0


def _length(stream: BinaryIO) -> int:
    length = int.from_bytes(_exactly(stream, 4), "little")
    if length > _LARGEST_HEADER:
        raise ValueError(f"a block header of {length} bytes")
    return length


def _exactly(stream: BinaryIO, count: int) -> bytes:
    found = stream.read(count)
    if len(found) != count:
        raise ValueError("the file ends inside a block header")
    return found


def _fields(message: bytes) -> dict[int, int | bytes]:
    """Numbers and byte strings of a protocol buffer message by field; the last of a repeated field."""
    at = 0
    values: dict[int, int | bytes] = {}
    while at < len(message):
        key, at = _varint(message, at)
        field, kind = key >> 3, key & 7
        if kind == 0:
            values[field], at = _varint(message, at)
        elif kind == 2:
            length, at = _varint(message, at)
            values[field] = message[at : at + length]
            at += length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"field type {kind} in a block header")
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    raise ValueError("a number in a block header has no end")
