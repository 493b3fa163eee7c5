"""Errors of the hook: where they are kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from profrun.in_job.hook_errors import ENV, report
from profrun.in_job.trial import _hook_errors


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
