"""The doctor on a real engine, as a user who is not root: what it says is what trials then can do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.real.docker.conftest import Cli

pytestmark = pytest.mark.docker


def test_what_an_image_can_collect(cli: Cli, engine: Any, cuda: str) -> None:
    done = cli.run("doctor", "nsys", "torch", "--backend", "docker", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    inside = {row["code"]: row for row in document["checks"] if row["where"] == cuda}
    assert inside["nsys"]["severity"] is inside["torch"]["severity"] is None
    assert document["collectors"]["nsys"]["images"][cuda] is True
    assert document["collectors"]["rocprof"]["docker"] is False


def test_what_cannot_work_is_69(cli: Cli, engine: Any, cuda: str) -> None:
    done = cli.run("doctor", "rocprof")
    assert done.returncode == 69
    assert "no: it needs an AMD GPU" in done.stdout


def test_an_image_that_is_not_there(cli: Cli, engine: Any, cuda: str) -> None:
    done = cli.run("doctor", "--image", "profrun/never-built:1", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = [row for row in json.loads(done.stdout)["checks"] if row["where"] == "profrun/never-built:1"]
    assert row["severity"] == "critical"
    assert "docker pull" in row["fix"]
