"""Files of exports: whole or not at all."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from profrun.errors import UnavailableError, UsageError
from profrun.traces.new_file import new_file, refuse_existing


def test_a_file_is_there_when_all_is_written(tmp_path: Path) -> None:
    out = tmp_path / "x.gz"
    with new_file(out) as file:
        file.write(b"all")
        assert not out.exists()
    assert gzip.decompress(out.read_bytes()) == b"all"
    with new_file(tmp_path / "y") as file:
        file.write(b"all")
    assert (tmp_path / "y").read_bytes() == b"all"


def test_nothing_is_left_after_an_error(tmp_path: Path) -> None:
    def write(error: BaseException) -> None:
        with new_file(tmp_path / "x") as file:
            file.write(b"half")
            raise error

    with pytest.raises(UnavailableError, match="x cannot be written: full"):
        write(OSError(28, "full"))
    with pytest.raises(KeyboardInterrupt):
        write(KeyboardInterrupt())
    assert list(tmp_path.iterdir()) == []


def test_what_exists_is_refused(tmp_path: Path) -> None:
    refuse_existing(tmp_path / "x")
    (tmp_path / "x").touch()
    with pytest.raises(UsageError, match="x exists already"):
        refuse_existing(tmp_path / "x")
