"""Atomic files: the old content or the new one, and one clear line when neither can be written."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from profrun.errors import InputError, UnavailableError
from profrun.store import files
from profrun.store.files import make_dir, read_json, write_json, write_text


def test_a_json_document_goes_round(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"b": 1, "a": [None, "ü"]})
    assert read_json(tmp_path / "x.json") == {"b": 1, "a": [None, "ü"]}
    assert list(tmp_path.iterdir()) == [tmp_path / "x.json"]


def test_others_may_read_it_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_text(tmp_path / "x", "y")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o644


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_leaves_the_old_content_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    target = tmp_path / "plan.json"
    write_text(target, "old")

    def full(fd: int, data: bytes, *, durable: bool = True) -> None:
        os.write(fd, data[:1])
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files, "write_all", full)
    with pytest.raises(UnavailableError, match=r"the disk is full: .*plan\.json could not be written"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_place_that_may_not_be_written_is_named_by_the_files_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write anywhere, so the refusal is made up; the temporary file's name is nobody's business."""

    def refuse(prefix: str, dir: Path) -> tuple[int, str]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), f"{dir}/{prefix}l5dc1r66")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(UnavailableError, match=r"/report\.html cannot be written: Permission denied; do x$"):
        write_text(tmp_path / "report.html", "", fix="do x")


def test_a_short_write_is_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    write_text(tmp_path / "x", "0123456789")
    assert (tmp_path / "x").read_text() == "0123456789"


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(UnavailableError, match=r"runs.*cannot be made.*--runs DIR"):
        make_dir(tmp_path / "runs" / "x")


def test_missing_is_none_and_damaged_is_said(tmp_path: Path) -> None:
    assert read_json(tmp_path / "none.json") is None
    for content in ("{", "[]", ""):
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(InputError, match=r"bad\.json"):
            read_json(tmp_path / "bad.json")


@pytest.mark.parametrize("content", ["[" * 200_000, '{"a":' * 200_000, '{"a": NaN}', "\0"])
def test_json_that_breaks_the_parser_is_a_damaged_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(InputError, match=r"plan\.json cannot be read: ") as caught:
        read_json(tmp_path / "plan.json")
    assert len(str(caught.value)) < 400


def test_what_is_no_file_is_neither_read_nor_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    for name, why in (("pipe", "a pipe"), ("link", "a symbolic link"), ("huge", "more than 256 MiB")):
        with pytest.raises(InputError, match=f"{name} cannot be used: it (is|has) {why}"):
            read_json(tmp_path / name)
    assert files.last_line(tmp_path / "pipe") is None
    with pytest.raises(InputError, match="a pipe"):
        files.read_text(tmp_path / "pipe", 100)


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "report.html").symlink_to(tmp_path / "victim")
    write_text(tmp_path / "report.html", "new")
    assert ((tmp_path / "report.html").read_text(), (tmp_path / "victim").read_text()) == ("new", "mine")
    (tmp_path / "driver.log").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic link"), files.appending(tmp_path / "driver.log"):
        pass
