"""The wire format of protobuf."""

from __future__ import annotations

from profrun.traces.protobuf import double, fixed64, number, packed, text, varint


def test_wire_format() -> None:
    """Examples of the protobuf encoding documentation."""
    assert number(1, 150) == b"\x08\x96\x01"
    assert text(2, "testing") == b"\x12\x07testing"
    assert number(1, -2) == b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    assert varint(0) == b"\0"
    assert varint(2**64 - 1) == b"\xff" * 9 + b"\x01"
    assert fixed64(47, 1) == b"\xf9\x02" + b"\x01" + b"\0" * 7
    assert double(44, 1.0) == b"\xe1\x02" + b"\0" * 6 + b"\xf0\x3f"
    assert packed(6, [3, 270, 86942]) == b"\x32\x06\x03\x8e\x02\x9e\xa7\x05"
