"""What a command prints is kept once, with its beginning and its end, and never holds the command up."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.in_job.tee import Tee
from tests.conftest import examples

MOST = 4096
END = MOST // 4


def teed(log: Path, chunks: list[bytes], most: int = MOST, stream: int | None = None) -> Tee:
    """A tee that has read these chunks to the end."""
    out, into = os.pipe()
    copy = Tee(out, log, stream, most)
    for chunk in chunks:
        os.write(into, chunk)
    os.close(into)
    copy.join(60)
    assert not copy.is_alive()
    return copy


@given(st.lists(st.binary(min_size=1, max_size=3000), max_size=8))
@examples(30, 500)
def test_the_beginning_and_the_end_are_kept_and_what_is_missing_is_counted(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]
) -> None:
    log = tmp_path_factory.mktemp("tee") / "stdout.log"
    copy, whole = teed(log, chunks), b"".join(chunks)
    kept = log.read_bytes()
    if len(whole) <= MOST:
        assert (kept, copy.missing) == (whole, 0)
        return
    assert kept.startswith(whole[: MOST - END])
    assert kept.endswith(whole[-END:])
    assert copy.missing == len(whole) - MOST
    said = kept[MOST - END : -END].decode()
    assert said == (
        "\n[profrun] the output is longer than resources.output: from here on only its end is kept\n"
        f"[profrun] {copy.missing} bytes are missing here\n"
    )
    assert copy.lost == 0


def test_a_further_command_of_the_trial_shares_the_room(tmp_path: Path) -> None:
    log = tmp_path / "stdout.log"
    teed(log, [b"a" * 3000])
    copy = teed(log, [b"b" * 3000])
    assert log.read_bytes().startswith(b"a" * 3000 + b"b" * (MOST - END - 3000) + b"\n[profrun]")
    assert copy.missing == 3000 - (MOST - END - 3000) - END


def test_our_own_stream_gets_all_of_it(tmp_path: Path) -> None:
    out, into = os.pipe()
    teed(tmp_path / "log", [b"x" * 9000], stream=into)
    os.close(into)
    with os.fdopen(out, "rb") as got:
        assert got.read() == b"x" * 9000


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_told_and_the_pipe_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if bytes(data) == b"lost":
            raise OSError(number, os.strerror(number))
        return real(descriptor, data)

    out, into = os.pipe()
    monkeypatch.setattr(os, "write", write)
    copy = Tee(out, tmp_path / "log", None)
    real(into, b"lost")
    os.close(into)
    copy.join(60)
    assert (copy.lost, copy.full) == (4, number != errno.EIO)
    assert bytes(copy.tail) == b"lost"


def test_a_link_in_place_of_the_log_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "log").symlink_to(tmp_path / "victim")
    out, into = os.pipe()
    with pytest.raises(OSError, match="symbolic link"):
        Tee(out, tmp_path / "log", None)
    os.close(out)
    os.close(into)
    assert (tmp_path / "victim").read_text() == "mine"
