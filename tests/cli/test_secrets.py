"""Secrets whose names do not say so: they reach the program, and no file of the run holds them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.running import call
from tests.contract.planted import PLANTED
from tests.support.planted_job import FAILURE, GO, PROGRAM, holding, places, planted_job

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


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job with a secret of every kind in its command, environment, values, matrix and comments."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFRUN_RUNS", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    Path("work.py").write_text(PROGRAM)
    Path(GO).touch()
    Path("job.yaml").write_text(planted_job())
    return tmp_path


def test_no_planted_secret_is_in_any_byte_that_profrun_writes(
    planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, "submit", "job.yaml")
    assert done.code == 0, done.err
    assert holding((done.out + done.err).encode()) == []
    (run,) = Path("runs").iterdir()
    assert (run / "private.json").stat().st_mode & 0o777 == 0o600
    assert list(run.glob("trials/*/private.json")) == []  # the trial has ended
    found, searched = places(run)
    assert (found, searched > 20) == ({}, True)
    (error,) = run.glob("trials/*/hook/error.*.txt")
    assert FAILURE in error.read_text()
    told = json.loads(next(run.glob("trials/*/command.json")).read_text())
    assert told["argv"][-2:] == ["--tokens", "128"]


@pytest.mark.parametrize("backend", ["local", "docker", "slurm", "kubernetes"])
def test_no_planted_secret_is_in_a_dry_run(
    planted: Path, capsys: pytest.CaptureFixture[str], backend: str
) -> None:
    sets = ["--set", "image=python:3.11"] if backend != "local" else []
    if backend == "kubernetes":
        sets += ["--set", "cluster.claim=c", "--set", f"cluster.claim_path={planted}"]
    for more in ([], ["--json"]):
        done = call(capsys, "submit", "job.yaml", "--backend", backend, "--dry-run", *sets, *more)
        assert holding((done.out + done.err).encode()) == []
        if done.code == 0:
            assert "<redacted>" in done.out
            assert "128" in done.out


@pytest.mark.thorough
def test_a_run_with_secrets_is_repeated_by_resume_and_by_its_own_spec(
    planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(capsys, "submit", "job.yaml").code == 0
    (run,) = Path("runs").iterdir()
    shutil.rmtree(next(run.glob("trials/*")))
    kept = (run / "events.jsonl").read_text().splitlines(keepends=True)
    begun = [line for line in kept if json.loads(line)["event"] in ("created", "planned")]
    (run / "events.jsonl").write_text("".join(begun))
    done = call(capsys, "resume", run)
    assert done.code == 0, done.err
    assert call(capsys, "submit", run / "resolved.yaml").code == 0
    (run / "private.json").unlink()
    done = call(capsys, "submit", run / "resolved.yaml")
    assert (done.code, "<redacted> in the place of a secret" in done.err) == (64, True), done.err


def test_a_name_with_the_form_of_a_secret_is_refused_without_being_shown(
    planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, "submit", "job.yaml", "--set", f"name={PLANTED['GitHub token']}")
    assert done.code == 64
    assert "GitHub token" in done.err
    assert holding(done.err.encode()) == []
    assert not Path("runs").exists()
