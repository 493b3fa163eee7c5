"""A dry run needs no engine: the docker SDK, torch and duckdb stay out of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Capture, call
from tests.conftest import ROOT

CODE = """
import sys
from profrun.cli import run
code = run(["submit", "jobs/transformer.yaml", "--dry-run", "--backend", sys.argv[1]])
heavy = {"docker", "requests", "torch", "duckdb", "numpy", "kubernetes"} & sys.modules.keys()
print(code, sorted(heavy), file=sys.stderr)
"""


@pytest.mark.parametrize("backend", ["local", "docker", "slurm"])
def test_a_dry_run_imports_nothing_heavy(backend: str) -> None:
    nowhere = {**os.environ, "DOCKER_HOST": "unix:///nowhere.sock"}
    done = subprocess.run(
        [sys.executable, "-c", CODE, backend],
        env=nowhere,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "0 []"


def test_the_command_that_ends_a_recording_at_a_limit_is_shown(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(
        "name: j\ncommand: echo\nimage: none\ncollectors: [nsys]\n"
        "ranges: {steps: off}\nschedule: {max_seconds: 5}\n"
    )
    lines = call(capsys, "submit", "job.yaml", "--dry-run").out.splitlines()
    end = "TMPDIR=raw/rank0 nsys stop --session=profrun"
    assert f"# when 5 s or 2 GiB are recorded: {end}" in lines


def test_the_sampler_beside_the_program_is_shown(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = "name: j\ncommand: echo\nimage: none\ncollectors: [none]\n"
    (tmp_path / "job.yaml").write_text(job + "sample: 2.5\n")
    shown = call(capsys, "submit", "job.yaml", "--dry-run").out
    command = "python3 -I -S -B bundle/sampler.py trials/000-default-none-r1 --rate 2.5"
    assert f"# beside it, by the wrapper: {command}" in shown
    (tmp_path / "job.yaml").write_text(job + "sample: off\n")
    assert "sampler.py" not in call(capsys, "submit", "job.yaml", "--dry-run").out


def test_what_makes_a_trace_on_a_node_is_shown(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(
        "name: j\ncommand: echo\nimage: none\ncollectors: [none]\n"
        "cluster: {normalize: node, partition: gpu}\n"
    )
    shown = call(capsys, "submit", "job.yaml", "--dry-run", "--backend", "slurm").out
    assert "# its trace, when it has ended: srun --job-name=profrun-trace --overlap --nodes=1 " in shown
    assert "/runs/j-dry-run 000-default-none-r1" in shown


def test_a_window_that_waits_for_the_steady_state_is_no_number(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text("name: j\ncommand: echo\nimage: none\ncollectors: [none, torch]\n")
    given = ("submit", "job.yaml", "--dry-run", "--set")
    steady = call(capsys, *given, "schedule.wait=steady")
    note = "# note: schedule.wait is steady: which steps are recorded is known only while the program runs"
    assert note in steady.out.splitlines()
    told = call(capsys, *given, "schedule.wait=steady", "--json").json["trials"][1]["command"]["schedule"]
    assert told["wait"] == "steady"
    assert "schedule.wait" not in call(capsys, *given, "repeats=1").out
