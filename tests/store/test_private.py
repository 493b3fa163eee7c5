"""private.json: for its owner alone, and never through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from profrun.contract.private import NAME, Private
from profrun.errors import InputError
from profrun.store.private import forget_private, read_private, write_private


def test_only_the_owner_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_private(tmp_path, Private(values=("x",), job="a", resolved="b"))
    finally:
        os.umask(before)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    assert read_private(tmp_path) == Private(values=("x",), job="a", resolved="b")
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    forget_private(tmp_path)
    assert read_private(tmp_path) is None


def test_a_link_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("{}")
    (tmp_path / NAME).symlink_to(victim)
    with pytest.raises(InputError, match="cannot be read"):
        read_private(tmp_path)
    write_private(tmp_path, Private(values=("x",)))
    assert victim.read_text() == "{}"
    assert not (tmp_path / NAME).is_symlink()
