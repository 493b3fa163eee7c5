"""A dry run needs no engine: the docker SDK, torch and duckdb stay out of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
