"""Secrets of a job on a real API server: what profrun writes, and what the objects of the namespace show."""

from __future__ import annotations

import json

import pytest

from tests.real.kubernetes.conftest import Desk
from tests.support.containers import until
from tests.support.planted_job import BEGAN, FAILURE, GO, PROGRAM, holding, places, planted_job

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

IN_PATCH = "patch-Qw5Er7Ty9Ui1"
PATCH = {"spec": {"containers": [{"name": "trial", "env": [{"name": "MY_PASSWORD", "value": IN_PATCH}]}]}}
_KINDS = ("pods", "services", "configmaps", "secrets", "events")


def test_no_planted_secret_is_written_or_in_an_object(desk: Desk) -> None:
    desk.cli.write("work.py", PROGRAM)
    spec = planted_job(
        matrix=False,
        image=desk.image,
        resources={"gpus": 0, "timeout": "5m", "grace": "10s", "cpus": 1, "memory": "1GiB"},
        cluster={**desk.cluster, "pod_patch": PATCH},
    )
    desk.cli.write("job.yaml", spec)
    driver = desk.start()
    try:
        until(lambda: _said(desk), "the program")
        jobs = json.dumps(desk.jobs())
        others = {kind: json.dumps(desk.plane.api.items(f"{desk.path}/{kind}")) for kind in _KINDS}
        (trial,) = desk.trial_folders()
        assert (trial / "private.json").stat().st_mode & 0o777 == 0o600
    finally:
        desk.cli.write(GO, "")
        driver.wait(600)
    assert driver.returncode == 0, desk.said(driver)
    assert holding(desk.said(driver), IN_PATCH) == []
    assert {kind: holding(text) for kind, text in others.items()} == {kind: [] for kind in _KINDS}
    assert holding(jobs) == []
    assert IN_PATCH in jobs, "the API server must be given what pod_patch says"
    found, searched = places(desk.run_folder(), IN_PATCH)
    assert (found, searched > 20) == ({}, True)
    (manifest,) = (desk.run_folder() / "kubernetes").glob("job*.yaml")
    assert "<redacted>" in manifest.read_text()
    (error,) = trial.glob("hook/error.*.txt")
    assert FAILURE in error.read_text()
    assert not (trial / "private.json").exists()


def _said(desk: Desk) -> bool:
    return any(BEGAN in path.read_text() for path in desk.folder.glob("runs/*/trials/*/stdout.log"))
