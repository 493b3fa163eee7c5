"""What is opened in a folder of somebody else: regular files, and nothing through a link."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from profrun.contract.safe_files import OddFileError, odd_kind, open_file, read_file

WRITE = os.O_RDWR | os.O_CREAT | os.O_APPEND


def _odd(folder: Path) -> dict[str, Path]:
    """One thing of each kind that is no plain file."""
    (folder / "victim").write_text("mine")
    (folder / "link").symlink_to(folder / "victim")
    (folder / "dangling").symlink_to(folder / "nothing")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
    names = ("link", "dangling", "folder", "pipe", "socket")
    return {name: folder / name for name in names}


@pytest.mark.parametrize("name", ["link", "dangling", "folder", "pipe", "socket"])
@pytest.mark.parametrize("flags", [os.O_RDONLY, WRITE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC])
def test_nothing_but_a_file_is_opened(tmp_path: Path, name: str, flags: int) -> None:
    path = _odd(tmp_path)[name]
    with pytest.raises(OddFileError) as caught:
        open_file(path, flags)
    assert caught.value.what.startswith("it is a ")
    assert odd_kind(path) == caught.value.what
    assert ((tmp_path / "victim").read_text(), (tmp_path / "nothing").exists()) == ("mine", False)


def test_a_system_without_o_nofollow_looks_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _odd(tmp_path)["link"]
    monkeypatch.delattr(os, "O_NOFOLLOW")
    with pytest.raises(OddFileError, match="symbolic link"):
        open_file(path, WRITE)


def test_a_file_with_another_name_is_read_and_not_written(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "lock").hardlink_to(tmp_path / "victim")
    assert read_file(tmp_path / "lock", 10) == b"mine"
    with pytest.raises(OddFileError, match="hard link"):
        open_file(tmp_path / "lock", WRITE)


def test_reading_may_follow_a_link_to_a_file_and_no_other(tmp_path: Path) -> None:
    odd = _odd(tmp_path)
    (tmp_path / "to-pipe").symlink_to(odd["pipe"])
    assert read_file(odd["link"], 4, follow=True) == b"mine"
    with pytest.raises(OddFileError, match="pipe"):
        read_file(tmp_path / "to-pipe", 4, follow=True)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OddFileError, match="more than 64 MiB"):
        read_file(tmp_path / "huge", 64 << 20)


def test_a_missing_file_stays_missing_and_a_new_one_is_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "none", os.O_RDONLY)
    os.close(open_file(tmp_path / "new", WRITE))
    assert odd_kind(tmp_path / "new") is None
    assert odd_kind(tmp_path / "none") is None
