"""The doctor's probe on a real Slurm."""

from __future__ import annotations

import json

import pytest

from tests.real.slurm.conftest import Desk

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]


def test_a_partition_is_probed_and_nothing_stays_behind(desk: Desk) -> None:
    done = desk.profrun("doctor", "none", "--backend", "slurm", "--partition", "gpu", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["backend"] == "slurm"
    assert document["node"]
    assert document["collectors"]["none"]["usable"] is True
    assert document["cannot"] == []
    assert list(desk.runs.iterdir()) == []
    # These nodes have no AMD GPU.
    done = desk.profrun("doctor", "rocprof", "--backend", "slurm", "--partition", "gpu", "--json")
    assert done.returncode == 69
    assert json.loads(done.stdout)["cannot"] == ["rocprof"]


def test_a_partition_that_is_not_there_is_said(desk: Desk) -> None:
    done = desk.profrun("doctor", "--backend", "slurm", "--partition", "nowhere")
    assert done.returncode == 64
    assert "invalid partition" in done.stderr.lower()
