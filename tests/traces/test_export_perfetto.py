"""The wire format of exports for Perfetto."""

from __future__ import annotations

from profrun.traces.export_perfetto import double, fixed64, number, text, varint


def test_wire_format() -> None:
    """Examples of the protobuf encoding documentation."""
    assert number(1, 150) == b"\x08\x96\x01"
    assert text(2, "testing") == b"\x12\x07testing"
    assert number(1, -2) == b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    assert varint(0) == b"\0"
    assert varint(2**64 - 1) == b"\xff" * 9 + b"\x01"
    assert fixed64(47, 1) == b"\xf9\x02" + b"\x01" + b"\0" * 7
    assert double(44, 1.0) == b"\xe1\x02" + b"\0" * 6 + b"\xf0\x3f"
