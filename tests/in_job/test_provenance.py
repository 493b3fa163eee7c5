"""The commit in provenance.json: the job's own, else what the submitting side saw."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.contract.command import Command
from profrun.contract.git_state import GitState
from profrun.contract.redact import Redactor
from profrun.in_job import provenance
from tests.support.repository import commit

SUBMITTED = GitState("b2", True, seen_by="submit")


def told(cwd: Path) -> Command:
    return Command("t", "r", "j", "v", "none", ("python", "train.py"), str(cwd), git=SUBMITTED)


def test_an_image_without_git_has_the_commit_of_the_submitting_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = provenance.before(told(tmp_path), {}, "none", "asked", Redactor()).git
    assert found == GitState("b2", True, "git is not in this image", "submit")


def test_the_jobs_own_repository_counts_first(tmp_path: Path) -> None:
    sha = commit(tmp_path, {"train.py": ""})
    assert provenance.before(told(tmp_path), {}, "none", "asked", Redactor()).git == GitState(
        sha, False, None, "job"
    )


def test_only_the_rank_that_writes_it_asks(tmp_path: Path) -> None:
    commit(tmp_path, {"train.py": ""})
    assert provenance.before(told(tmp_path), {}, "none", "asked", Redactor(), lead=False).git == GitState()
