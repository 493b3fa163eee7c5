"""What a file holds, by its first bytes."""

from __future__ import annotations

import gzip
import os
import sqlite3
from pathlib import Path

import pytest

from profrun.collectors.sniff import gunzip_head, make_source
from profrun.errors import InputError


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n\t", "holds only white space"),
        (b"\0" * 100, "begins with 100 zero bytes"),
        (b"PK\x03\x04...", "is a zip archive"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a git-LFS pointer"),
        (b"x" * 257 + b"ustar", "is a tar archive"),
        (b"\x1f\x8b", "holds no data"),
        (b"SQLite format 3\0" + b"x" * 200, "is a damaged SQLite database"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match=said):
        make_source(tmp_path / "x")


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not a regular file"):
        make_source(tmp_path / "pipe")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        make_source(tmp_path / "none")


def test_a_database_is_known_by_its_tables(tmp_path: Path) -> None:
    con = sqlite3.connect(tmp_path / "x.json")
    con.execute("CREATE TABLE a (n INT)")
    con.execute("CREATE VIEW b AS SELECT * FROM a")
    con.close()
    assert make_source(tmp_path / "x.json").sqlite_tables == {"a", "b"}


def test_a_packed_file_is_seen_unpacked_also_when_it_is_cut(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"a": 1}' + os.urandom(100_000))
    (tmp_path / "x").write_bytes(packed[:50_000])
    source = make_source(tmp_path / "x")
    assert source.gzip
    assert source.head.startswith(b'{"a": 1}')
    assert gunzip_head(tmp_path / "x", 8) == b'{"a": 1}'
