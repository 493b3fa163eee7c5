"""Secrets whose names do not say so: they reach the program, and no file of the run holds them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.running import call

WORK = """
import os, profrun
assert os.environ["PLAIN"][::-1] == "321-nialp"
assert os.environ["OTHER"][::-1] == "321-rehto"
for _ in range(8):
    profrun.step()
"""


def test_declared_secrets_and_the_env_file_are_in_no_file_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFRUN_RUNS", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PLAIN", "plain-123")
    Path("work.py").write_text(WORK)
    Path("my.env").write_text("OTHER=other-123\n")
    spec = {
        "name": "t",
        "command": "python work.py",
        "collectors": ["none"],
        "secrets": ["PLAIN"],
        "env_file": "my.env",
    }
    Path("job.yaml").write_text(json.dumps(spec))
    done = call(capsys, "submit", "job.yaml", "--json")
    assert done.code == 0, done.err
    (run,) = Path("runs").iterdir()
    (provenance,) = run.glob("trials/*/provenance.json")
    kept = json.loads(provenance.read_text())["environment"]
    assert (kept["PLAIN"], kept["OTHER"]) == ("<redacted>", "<redacted>")
    for path in run.rglob("*"):
        if path.is_file():
            assert b"plain-123" not in path.read_bytes(), path
            assert b"other-123" not in path.read_bytes(), path
