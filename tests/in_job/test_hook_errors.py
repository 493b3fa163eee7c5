"""Errors of the hook: where they are kept."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from profrun.in_job.hook_errors import ENV, report
from profrun.in_job.trial import _hook_errors
from tests.in_job.kit import Trial


def test_two_ranks_with_one_pid_keep_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks in two containers have the same pids."""
    for rank in (0, 1):
        monkeypatch.setenv(ENV, str(tmp_path / f"config.rank{rank}.0.json"))
        report(ValueError(f"of rank {rank}"))
    name = f"error.rank1.{os.getpid()}.txt"
    assert (tmp_path / name).read_text().endswith("ValueError: of rank 1\n")
    (told,) = _hook_errors(tmp_path, 1)
    assert told.why == f"ValueError: of rank 1 (hook/{name})"


def test_without_orders_nothing_is_kept_and_nothing_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ENV, raising=False)
    report(ValueError("lost"))
    monkeypatch.setenv(ENV, str(tmp_path / "other"))
    report(ValueError("lost"))
    assert list(tmp_path.iterdir()) == []


def test_an_error_is_kept_where_no_file_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENV, str(tmp_path / "config.rank0.0.json"))
    (tmp_path / f"error.rank0.{os.getpid()}.txt").mkdir()  # in its place no file can be opened
    report(OSError(errno.EMFILE, "Too many open files", "/a/file"))
    report(ValueError("of another kind / with a slash"))
    told = [finding.why for finding in _hook_errors(tmp_path, 0)]
    assert f"OSError Too many open files (hook/error.rank0.{os.getpid()}.OSError Too many open files)" in told
    assert f"ValueError (hook/error.rank0.{os.getpid()}.ValueError)" in told


def test_a_program_that_may_open_no_more_files_is_told_why_it_has_no_steps(tmp_path: Path) -> None:
    script = """
import resource, profrun
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
for number in range(4): profrun.step()
"""
    done = Trial(tmp_path, [sys.executable, "job.py"], script).run()
    assert done.exit["state"] == "finished"
    codes = [row["code"] for row in done.exit["warnings"]]
    assert "hook-failed" in codes
    assert "no-steps" not in codes
    assert any("Too many open files" in text for text in done.warnings)
