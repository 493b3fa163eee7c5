"""Secrets of a job in a real engine: what it is told of a container holds none of them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.real.docker.conftest import Cli, containers_of, own, until
from tests.support.planted_job import BEGAN, FAILURE, GO, PROGRAM, holding, places, planted_job

pytestmark = pytest.mark.docker

LISTED = "listed-Kf8Gn2Rt6Yb9"
"""Of ``secrets``: the engine must put it into the container's environment."""


def test_no_planted_secret_is_written_or_told_to_the_engine(cli: Cli, cuda: str, engine: Any) -> None:
    cli.write("work.py", PROGRAM)
    cli.env["LISTED"] = LISTED
    cli.write("job.yaml", planted_job(matrix=False, image="cuda", secrets=["LISTED"]))
    began = int(time.time())
    driver = cli.start("submit", "job.yaml", "--backend", "docker")
    try:
        until(lambda: _said(cli), "the program")
        (found,) = containers_of(engine, cli.folder)
        told = engine.api.inspect_container(found["Id"])
        (trial,) = (cli.only_run() / "trials").iterdir()
        assert (trial / "private.json").stat().st_mode & 0o777 == 0o600
    finally:
        go = cli.folder / GO
        go.touch()
        own(go)
        _, said = driver.communicate(timeout=280)
    assert driver.returncode == 0, said
    assert holding(said) == []
    assert holding(json.dumps(told)) == []
    assert f"LISTED={LISTED}" in told["Config"]["Env"]
    told["Config"]["Env"].remove(f"LISTED={LISTED}")
    assert LISTED not in json.dumps(told)
    events = engine.api.events(since=began, until=int(time.time()) + 1, filters={"container": found["Id"]})
    assert holding(b"".join(events), LISTED) == []
    places_of_it, searched = places(cli.only_run(), LISTED)
    assert (places_of_it, searched > 20) == ({}, True)
    (error,) = trial.glob("hook/error.*.txt")
    assert FAILURE in error.read_text()
    assert not (trial / "private.json").exists()


def _said(cli: Cli) -> bool:
    return any(BEGAN in path.read_text() for path in cli.folder.glob("runs/*/trials/*/stdout.log"))
