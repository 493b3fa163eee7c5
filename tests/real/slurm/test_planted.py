"""Secrets of a job on a real Slurm: what profrun writes, and what everybody sees in the queue."""

from __future__ import annotations

import json

import pytest

from tests.contract.planted import PLANTED
from tests.real.slurm.conftest import Desk, wait_for
from tests.support.planted_job import BEGAN, FAILURE, GO, PROGRAM, holding, places, planted_job

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

IN_SETUP = "setup-Qw5Er7Ty9Ui1"
SETUP = [f"export SETUP_PASSWORD={IN_SETUP}", f"export OTHER={PLANTED['GitHub token']}"]


@pytest.mark.parametrize("allocation", ["each", "one"])
def test_no_planted_secret_is_written_or_shown(desk: Desk, allocation: str) -> None:
    program = f"import os\nassert os.environ['SETUP_PASSWORD'] == {IN_SETUP!r}\n{PROGRAM}"
    desk.write("work.py", program)
    spec = planted_job(
        resources={"timeout": "120s", "grace": "5s"}, cluster={"setup": SETUP, "allocation": allocation}
    )
    desk.write("job.yaml", spec)
    driver = desk.start("submit", "job.yaml", "--backend", "slurm")
    try:
        wait_for(lambda: _said(desk), 180)
        shown = desk.cluster.run("scontrol", "show", "job", "-d") + desk.cluster.run(
            "squeue", "-o", "%all", "--steps"
        )
        shown += desk.cluster.run("squeue", "-o", "%all")
        (known,) = (desk.run_folder() / "slurm").glob("a*0.json")
        batch = desk.cluster.run(
            "scontrol", "write", "batch_script", json.loads(known.read_text())["job"], "-"
        )
    finally:
        (desk.folder / GO).touch()
        out, err = driver.communicate(timeout=300)
    assert driver.returncode == 0, err
    assert holding(out + err + shown, IN_SETUP) == []
    assert IN_SETUP in batch, "Slurm itself must have the line of `setup`; it shows that to its owner alone"
    found, searched = places(desk.run_folder(), IN_SETUP)
    assert (found, searched > 20) == ({}, True)
    (script,) = (desk.run_folder() / "slurm").glob("*.sh")
    assert "export SETUP_PASSWORD=<redacted>" in script.read_text()
    (error,) = desk.run_folder().glob("trials/*/hook/error.*.txt")
    assert FAILURE in error.read_text()
    assert list(desk.run_folder().glob("trials/*/private.json")) == []


def _said(desk: Desk) -> bool:
    return any(BEGAN in path.read_text() for path in desk.runs.glob("*/trials/*/stdout.log"))
