"""Where a folder was made: only this user's key makes the seal of a path."""

from __future__ import annotations

import dataclasses
import stat
from pathlib import Path

import pytest

from profrun.store.seal import is_here, place_of, state_folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_folder_is_here_until_it_is_moved(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    place = place_of(tmp_path / "run")
    assert is_here(place, tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    assert is_here(place, tmp_path / "link")  # the same folder by another name
    (tmp_path / "run").rename(tmp_path / "moved")
    assert not is_here(place, tmp_path / "moved")


def test_who_knows_path_host_and_user_cannot_make_the_seal(tmp_path: Path, home: Path) -> None:
    true = place_of(tmp_path)
    for seal in (None, "", "0" * 64, "ü"):
        assert not is_here(dataclasses.replace(true, seal=seal), tmp_path)
    (home / "profrun/key").unlink()
    assert not is_here(true, tmp_path)
    another = place_of(tmp_path)  # of another key
    assert another.seal != true.seal
    assert not is_here(true, tmp_path)


def test_the_key_is_for_the_user_alone(tmp_path: Path, home: Path) -> None:
    place_of(tmp_path)
    (key,) = (home / "profrun").iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(key.read_bytes()) == 32


def test_without_a_home_path_host_and_user_must_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))  # no folder can be made in it
    place = place_of(tmp_path)
    assert place.seal is None
    assert is_here(place, tmp_path)
    assert not is_here(dataclasses.replace(place, host="elsewhere"), tmp_path)
    monkeypatch.delenv("XDG_STATE_HOME")

    def no_home() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", no_home)
    assert state_folder() is None
    assert is_here(place_of(tmp_path), tmp_path)
