"""What git is asked, against real repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from profrun.contract.git_state import GitState
from profrun.in_job import repository
from profrun.in_job.repository import Repositories
from tests.support.repository import commit

RUN = ("python", "train.py")


def test_clean_dirty_and_untracked(tmp_path: Path) -> None:
    sha = commit(tmp_path, {"train.py": "1", "sub/x": ""})
    assert Repositories("job").of(RUN, str(tmp_path)) == GitState(sha, False, seen_by="job")
    (tmp_path / "new").write_text("")
    assert Repositories("job").of(RUN, str(tmp_path / "sub")).dirty is False, "untracked files do not count"
    (tmp_path / "train.py").write_text("2")
    assert Repositories("submit").of(RUN, str(tmp_path)) == GitState(sha, True, seen_by="submit")


def test_the_programs_repository_counts_before_that_of_the_folder(tmp_path: Path) -> None:
    """Two checkouts are compared from a third folder: each has its own commit."""
    here, old = commit(tmp_path / "here", {"a": ""}), commit(tmp_path / "old", {"train.py": ""})
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/train.py").write_text("")
    found = Repositories("job")
    cwd = str(tmp_path / "here")
    assert found.of(("python", str(tmp_path / "old/train.py")), cwd).sha == old
    assert found.of(("python", "../plain/train.py"), cwd).sha == here
    assert found.of(("python", "-m", "train", "missing.py"), cwd).sha == here


def test_no_repository_no_commit_no_folder(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for folder in (tmp_path, tmp_path / "not-there"):
        found = Repositories("job").of(RUN, str(folder))
        assert found == GitState(why=f"{folder} is not in a git repository that has a commit")


def test_a_repository_of_another_user_is_read_in_the_job_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings can name a program that git runs, as the user who submits."""
    sha = commit(tmp_path, {"train.py": "1"})
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own switch for its tests
    assert Repositories("job").of(RUN, str(tmp_path)).sha == sha
    found = Repositories("submit").of(RUN, str(tmp_path))
    assert found == GitState(why=f"{tmp_path} is not in a git repository of this user that has a commit")


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Repositories("job").of(RUN, str(tmp_path)).why == "git is not in this image"
    assert Repositories("submit").of(RUN, str(tmp_path)).why == "git is not installed"


def test_git_that_does_not_answer_in_time_says_nothing_of_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = commit(tmp_path, {"train.py": "1"})
    (tmp_path / "train.py").write_text("2")
    real = repository._git
    monkeypatch.setattr(
        repository, "_git", lambda folder, *words: None if "status" in words else real(folder, *words)
    )
    assert Repositories("job").of(RUN, str(tmp_path)) == GitState(sha, None, seen_by="job")


def test_a_folder_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred trials that are submitted together ask as often as one."""
    sha, real = commit(tmp_path, {"train.py": "1"}), repository._git
    asked: list[str] = []

    def counted(folder: str, *words: str) -> str | None:
        asked.append(words[0])
        return real(folder, *words)

    monkeypatch.setattr(repository, "_git", counted)
    found = Repositories("submit")
    assert [found.of(RUN, str(tmp_path)).sha for _ in range(200)] == [sha] * 200
    assert asked == ["rev-parse", "status"]
