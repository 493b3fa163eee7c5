"""The script of an allocation as a process of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from profrun.backends.slurm.shared_job import begin
from tests.support.containers import until


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # nobody waits for it
def test_a_script_with_secrets_runs_from_memory_and_its_file_is_not_read(tmp_path: Path) -> None:
    script = tmp_path / "allocation0.sh"
    script.write_text("exit 1  # <redacted>\n")
    begin(script, os.environ, f"cat /dev/null; echo whole >{tmp_path}/said; exec true\n")
    said = tmp_path / "said"
    assert until(lambda: said.exists() and said.read_text(), "the script") == "whole\n"
    assert sorted(path.suffix for path in tmp_path.iterdir()) == ["", ".lock", ".log", ".sh"]
    assert (tmp_path / "allocation0.log").read_text() == ""
