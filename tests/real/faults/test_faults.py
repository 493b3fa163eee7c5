"""Forty seeded faults, and runs that nothing disturbs. The long form is ``python -m tests.real.faults``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.conftest import ROOT, need_tool
from tests.real.faults.engines import Engines
from tests.real.faults.plan import Blow, Fault
from tests.real.faults.scenario import carry_out
from tests.real.faults.tools import Tools

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


@pytest.mark.parametrize("shape", ["steps", "detached", "ranks"])
def test_a_run_that_nothing_disturbs_is_whole(tmp_path: Path, shape: str) -> None:
    fault = Fault(0, shape, "driver", "recording", 0, (Blow("nothing", 0.0),), 0.0, asks=True)
    result = carry_out(fault, tmp_path, Tools(), Engines())
    assert (result.landed, result.tries, result.broken) == (True, 1, ())


def test_forty_faults_are_survived(tmp_path: Path) -> None:
    for tool in ("gcc", "nsys", "git"):
        need_tool(tool)
    survived("--seed", "1", "--count", "40", "--jobs", "8", "--folder", str(tmp_path))


def test_faults_in_containers_and_on_a_cluster_are_survived() -> None:
    words = ["--seed", "1", "--count", "6", "--jobs", "6", "--backends", "docker,slurm"]
    with tempfile.TemporaryDirectory(prefix="pf", dir="/tmp") as folder:  # the path of a socket has 107 bytes
        survived(*words, "--folder", folder)


def survived(*words: str) -> None:
    """The long form injects all of the faults that are asked for, and each is survived."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.real.faults", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert "not injected" not in done.stdout
