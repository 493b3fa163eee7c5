"""Unpacking: isal where it is there, and zlib, give the same bytes and the same complaint, damaged or not."""

from __future__ import annotations

import gzip
import random
import tempfile
import zlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from profrun.collectors.torch.reader_blocks import Blocks
from tests.conftest import examples


def unpacked(path: Path, library: object, size: int) -> tuple[bytes, bool, bytes]:
    """(all bytes, whether the stream ended early, what stands behind it)."""
    blocks = Blocks(path, True, library)
    parts = []
    while part := blocks.read(size):
        parts.append(part)
    blocks.close()
    return b"".join(parts), blocks.cut is not None, blocks.behind


def test_members_one_behind_the_other_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one ") + gzip.compress(b"two") + b"more")
    for library in (None, zlib):
        assert unpacked(tmp_path / "a.gz", library, 3) == (b"one two", False, b"more")


@given(st.integers(0, 2**64 - 1))
@examples(40, 2000)
def test_damage_ends_both_at_the_same_byte(seed: int) -> None:
    rng = random.Random(seed)
    text = b"".join(b'{"ts": %d, "name": "op%d"},\n' % (rng.randrange(10**12), n % 9) for n in range(3000))
    packed = bytearray(gzip.compress(text, rng.choice((1, 6, 9)), mtime=0))
    if rng.random() < 0.8:
        packed[rng.randrange(12, len(packed))] ^= 1 << rng.randrange(8)
    if rng.random() < 0.5:
        del packed[rng.randrange(12, len(packed)) :]
    with tempfile.NamedTemporaryFile() as file:
        file.write(packed)
        file.flush()
        size = rng.choice((100, 5000, 1 << 20))
        ours, plain = (unpacked(Path(file.name), library, size) for library in (None, zlib))
    assert ours == plain
    assert ours[1] or ours[0] == text
