"""``profrun wrap`` under a real mpirun of Open MPI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profrun.plans.bundle import write_pyz
from tests.cli.running import Capture, call
from tests.conftest import missing

pytestmark = pytest.mark.mpi

PROGRAM = """
import os, torch
rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    model(torch.randn(4, 16)).sum().backward()
    optimizer.step()
raise SystemExit(rank * int(os.environ["FAIL"]))
"""


def mpirun(folder: Path, *options: str, fail: int = 0) -> subprocess.CompletedProcess[str]:
    """Two ranks of a torch program, each started by the wrapper as one file."""
    found = shutil.which("mpirun")
    if found is None:
        missing("mpirun (Debian: openmpi-bin)")
    write_pyz(folder / "wrap.pyz")
    (folder / "x.py").write_text(PROGRAM)
    return subprocess.run(
        [
            *(found, "--allow-run-as-root", "--oversubscribe", "-n", "2"),
            *(sys.executable, "wrap.pyz", "--out", "out", *options, "--", sys.executable, "x.py"),
        ],
        cwd=folder,
        env={**os.environ, "FAIL": str(fail)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_two_launches_of_two_ranks(tmp_path: Path, capsys: Capture) -> None:
    """Under torch, then without a profiler: two trials of one run, each with both ranks."""
    for collector in ("torch", "none"):
        done = mpirun(tmp_path, "-c", collector)
        assert done.returncode == 0, done.stdout + done.stderr
    found = call(capsys, "normalize", tmp_path / "out", "--json")
    assert found.code == 0, found.err
    assert [trial["collector"] for trial in found.json["trials"]] == ["torch", "none"]
    assert [pair["kind"] for pair in found.json["comparisons"]] == ["overhead"]
    for number in (0, 1):
        question = "select distinct rank from processes order by 1"
        rows = call(capsys, "query", f"{tmp_path}/out/{number}", question, "--json").json["rows"]
        assert [list(row.values()) if isinstance(row, dict) else row for row in rows] == [[0], [1]]
    launches = [
        json.loads(path.read_text()) for path in sorted((tmp_path / "out").glob("launches/*/launch.json"))
    ]
    assert {one["launcher"] for one in launches} == {"Open MPI"}
    ids = [one["launch"] for one in launches]
    assert all("PMIX_NAMESPACE=" in one for one in ids)
    assert len(set(ids)) == 2, "each mpirun has an id of its own"


def test_a_rank_that_fails(tmp_path: Path, capsys: Capture) -> None:
    done = mpirun(tmp_path, "-c", "none", fail=5)
    assert done.returncode != 0
    found = call(capsys, "normalize", tmp_path / "out")
    assert found.code == 1
