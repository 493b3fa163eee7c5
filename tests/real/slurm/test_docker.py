"""``runtime: docker`` on a real Slurm: which GPUs a container is given, and a container that really runs."""

from __future__ import annotations

import json
import re

import pytest

from tests.real.slurm.conftest import Desk
from tests.real.slurm.test_runs import spec

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

# Writes down what it was asked for and runs the command that a container would run, after the image.
DOCKER = """#!/bin/bash
printf '%s\\n' "$*" >>"$DOCKER_SAID"
while [ "$1" != image:1 ]; do shift; done
shift
exec "$@"
"""


def test_two_trials_on_one_node_get_different_gpus(desk: Desk) -> None:
    desk.write("docker", DOCKER, 0o755)
    desk.write("work.py", "import time\ntime.sleep(8)\n")
    environ = {
        "PATH": f"{desk.folder}:{desk.cluster.environ['PATH']}",
        "DOCKER_SAID": str(desk.folder / "said"),
    }
    document = desk.submit(
        spec(
            "python3 work.py",
            "repeats: 2\ncollectors: [none]\nresources: {gpus: 1, timeout: 60s, grace: 5s}\n"
            "cluster: {partition: nvidia, runtime: docker, gpu_type: h200, parallel: 2}",
        ).replace("image: none", "image: image:1"),
        environ=environ,
    )
    assert [trial["state"] for trial in document["trials"]] == ["finished"] * 2, document["trials"]
    said = (desk.folder / "said").read_text()
    given = re.findall(r'--gpus="device=([\d,]+)"', said)
    assert len(given) == 2, said
    assert given[0] != given[1]
    assert "--gpus=all" not in said
    assert re.search(r"--memory=\d+m", said)  # DefMemPerCPU of the partition


@pytest.mark.timeout(1200)  # the image may have to be made
def test_a_trial_runs_in_a_container_of_the_engine(desk: Desk, standin: str) -> None:
    desk.write("work.py", "open('/etc/x', 'w')\n")
    document = desk.submit(
        spec(
            "python3 work.py",
            "collectors: [none]\nresources: {gpus: 0, timeout: 60s, grace: 5s}\n"
            "cluster: {runtime: docker, vendor: none}",
        ).replace("image: none", f"image: {standin}")
    )
    (trial,) = document["trials"]
    folder = desk.run_folder() / "trials" / trial["trial"]
    assert "Read-only file system" in (folder / "stderr.log").read_text()
    assert json.loads((folder / "exit.json").read_text())["state"] == "failed"
