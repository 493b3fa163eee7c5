"""Packed files: what is inside, in bounded memory, and one sentence about damage."""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import lzma
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.collectors import unpack
from profrun.collectors.unpack import PACKINGS, blocks, head, packing
from profrun.errors import InputError
from tests.conftest import ROOT, examples, first, missing

CONTENT = b"SQLite format 3\0" + os.urandom(300_000) + bytes(2_000_000)


def packed(how: str, content: bytes) -> bytes:
    """The content, packed."""
    if how == "zstd":
        if importlib.util.find_spec("pyarrow") is None:
            missing("a module for zstd")
        import pyarrow

        return bytes(pyarrow.compress(content, codec="zstd", asbytes=True))
    return {"gzip": gzip, "xz": lzma, "bzip2": bz2}[how].compress(content)  # type: ignore[no-any-return]


NAMES = [one.name for one in PACKINGS]


@pytest.mark.parametrize("name", NAMES)
def test_the_content_is_what_was_packed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(packed(name, CONTENT))
    how = packing(path.read_bytes())
    assert how is not None
    assert how.name == name
    assert b"".join(blocks(path, how)) == CONTENT
    assert head(path, how, 1000) == CONTENT[:1000]


@pytest.mark.parametrize("name", NAMES)
def test_several_streams_in_one_file_are_one_content(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(packed(name, b"one") + packed(name, b"two"))
    how = packing(path.read_bytes())
    assert how is not None
    assert b"".join(blocks(path, how)) == b"onetwo"


def test_xz_may_be_padded_with_zeros(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(lzma.compress(b"one") + bytes(8) + lzma.compress(b"two") + bytes(4))
    assert b"".join(blocks(path, PACKINGS[1])) == b"onetwo"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damage_is_one_sentence_with_the_path(name: str, damage: str, tmp_path: Path) -> None:
    whole = bytearray(packed(name, CONTENT))
    if damage == "cut":
        del whole[len(whole) // 2 :]
    else:
        whole[8:24] = b"\xff" * 16  # in the first headers: zstd has no checksum of the content
    path = tmp_path / "x"
    path.write_bytes(whole)
    how = packing(bytes(whole))
    assert how is not None
    with pytest.raises(InputError, match=f"x cannot be unpacked: its {name} stream is cut or damaged"):
        list(blocks(path, how))


@examples(20, 500)
@given(name=st.sampled_from(NAMES), at=st.integers(10, 400), value=st.integers(0, 255), cut=st.booleans())
def test_any_damage_gives_the_content_or_an_error(name: str, at: int, value: int, cut: bool) -> None:
    content = bytes(range(256)) * 20
    whole = bytearray(packed(name, content))
    at %= len(whole)
    if cut:
        del whole[max(at, 8) :]
    else:
        whole[max(at, 8)] = value
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"profrun-unpack-{os.getpid()}"
    path.write_bytes(whole)
    how = next(one for one in PACKINGS if one.name == name)
    try:
        found = b"".join(blocks(path, how))
    except InputError:
        return
    finally:
        path.unlink()
    # zstd keeps no checksum by default, and gzip's header has bytes that mean nothing
    assert found == content or name == "zstd"


@pytest.mark.parametrize("name", first(1, NAMES))
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(packed(name, bytes(64 << 20)))
    how = packing(path.read_bytes()[:16])
    assert how is not None
    tracemalloc.start()
    total = sum(len(block) for block in blocks(path, how))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 64 << 20
    assert most < 20 << 20


def test_a_stream_that_needs_too_much_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_bytes(lzma.compress(CONTENT, preset=9))
    monkeypatch.setattr(unpack, "XZ_MEMORY", 1 << 20)
    with pytest.raises(InputError, match="Memory usage limit"):
        list(blocks(tmp_path / "x", PACKINGS[1]))


def test_without_a_module_it_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\x28\xb5\x2f\xfd...")
    how = unpack.Packing("zstd", b"\x28\xb5\x2f\xfd", ("no_such_module",), "zstd -d", (".zst",))
    with pytest.raises(
        InputError, match="no module that unpacks it: no_such_module; unpack it with `zstd -d`"
    ):
        list(blocks(tmp_path / "x", how))


def test_readers_take_the_errors_of_damaged_files_from_one_list() -> None:
    """A reader that wrote its own list once lacked one of them, and ended in exit 70."""
    readers = [path for path in (ROOT / "collectors").rglob("*.py") if "zlib.error" in path.read_text()]
    own = {path.relative_to(ROOT / "collectors").as_posix() for path in readers}
    assert own == {"unpack.py", "sniff.py", "torch/reader_blocks.py"}, "sniff and torch inflate by themselves"
