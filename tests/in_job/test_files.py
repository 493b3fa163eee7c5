"""Files that are whole or not there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from profrun.in_job.files import Reserve, is_full, read_json, set_phase, write_json


@pytest.mark.parametrize("text", [None, "", "{", "[1]", "3"])
def test_what_is_no_whole_object_is_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "x.json").write_text(text)
    assert read_json(tmp_path / "x.json") is None


def test_a_document_comes_back_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"path": Path("/a"), "n": 1})
    assert read_json(tmp_path / "x.json") == {"path": "/a", "n": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_write_that_fails_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_json(tmp_path / "x.json", {"n": 1})

    def full(_: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="the disk is full"):
        write_json(tmp_path / "x.json", {"n": 2})
    assert read_json(tmp_path / "x.json") == {"n": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_room_is_held_until_it_is_given_back(tmp_path: Path) -> None:
    room = Reserve(tmp_path, 1000)
    assert room.path.stat().st_size == 1000
    room.release()
    assert list(tmp_path.iterdir()) == []
    Reserve(tmp_path / "none").release()  # nowhere to write is no error


def test_a_phase_is_said_and_a_missing_folder_is_no_error(tmp_path: Path) -> None:
    set_phase(tmp_path, "export", 7, file="a")
    assert read_json(tmp_path / "phase") == {"phase": "export", "since_ns": 7, "file": "a"}
    set_phase(tmp_path / "none", "export", 7)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_is_full_when_a_small_file_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    assert not is_full(tmp_path)

    def full(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.fsync", full)
    assert is_full(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not is_full(tmp_path / "none")  # another error is no full disk


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    own = [f".x.json.{os.getpid()}.tmp", f".phase.{os.getpid()}.tmp", ".reserve.rank0", "x.json", "phase"]
    for name in own:
        (tmp_path / name).symlink_to(tmp_path / "victim")
    write_json(tmp_path / "x.json", {"n": 1})
    set_phase(tmp_path, "app", 7)
    Reserve(tmp_path)
    assert (tmp_path / "victim").read_text() == "mine"
    assert read_json(tmp_path / "x.json") == {"n": 1}
    (tmp_path / "y.json").symlink_to(tmp_path / "x.json")
    assert read_json(tmp_path / "y.json") is None
    (tmp_path / "z.json").write_text("[" * 200_000)
    assert read_json(tmp_path / "z.json") is None
