"""``profrun demo``: the job that comes with profrun, from any folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from profrun.cli import demo
from tests.cli.running import Capture, call
from tests.conftest import ROOT


@pytest.mark.usefixtures("no_gpu")
def test_it_plans_the_packaged_job_in_any_folder(here: Path, capsys: Capture) -> None:
    done = call(capsys, "demo", "--dry-run", "--json", "--repeats", "2")
    assert done.code == 0, done.err
    assert done.json["left_out"] == ["8 launch-blocking twins left out: no GPU"]
    trials = done.json["trials"]
    assert len(trials) == 8
    for trial in trials:
        command = trial["command"]
        assert (command["argv"][0], command["argv"][1]) == (sys.executable, "workloads/transformer.py")
        assert Path(command["cwd"], command["argv"][1]).samefile(ROOT / "jobs/workloads/transformer.py")
    assert done.json["path"].startswith(str(here))  # runs are kept where the user is


def test_another_python_with_torch_is_used(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda _: None)
    (here / "python").write_text("#!/bin/sh\nexit 0\n")
    (here / "python").chmod(0o755)
    monkeypatch.setenv("PATH", str(here))
    found = call(capsys, "demo", "--dry-run", "--json").json
    assert found["trials"][0]["command"]["argv"][0] == str(here / "python")


def test_without_torch_it_says_what_to_install(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(here))
    done = call(capsys, "demo")
    assert done.code == 69
    assert done.err.startswith("profrun: the demo needs PyTorch: neither ")
    assert not (here / "runs").exists()
