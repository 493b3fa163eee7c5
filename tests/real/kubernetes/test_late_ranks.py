"""Ranks on a real API server that end later than others: late, slow to write, killed, on a node that dies."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from profrun.backends.kubernetes.pod_paths import CLAIM_PATH
from tests.conftest import shared_data
from tests.real.kubernetes.conftest import Desk
from tests.real.kubernetes.test_runs import ends
from tests.real.slurm.test_late_ranks import LATE
from tests.real.slurm.test_runs import SLOW_NSYS
from tests.standins.kubelet.pod_life import docker
from tests.support.containers import until
from tests.support.kube_api import Object

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

TWO_NODES = "resources: {gpus: 0, nodes: 2, memory: 150GiB, timeout: 8m, grace: 5s}"
"""A node has 256 GiB: each pod has one to itself."""


@pytest.mark.parametrize("seconds", [1, 25])
def test_a_late_rank_is_waited_for(desk: Desk, seconds: int) -> None:
    desk.cli.write("late.py", LATE)
    document = desk.submit(f"python late.py 1 {seconds}", f"collectors: [none]\n{TWO_NODES}")
    assert ends(document) == [("finished", None)], document["said"]
    ended = exit_of(desk)
    assert (ended["wrappers"], ended["silent"]) == (2, [])
    assert len({pod["spec"]["nodeName"] for pod in desk.pods()}) == 2


def test_a_profiler_of_one_rank_may_write_for_longer_than_the_grace(desk: Desk) -> None:
    """A stand-in for nsys, whose report of rank 1 takes 25 s; the pod finds it by a variable."""
    desk.cli.write("late.py", LATE)
    recording = desk.folder / "report.sqlite"
    recording.write_bytes(shared_data("h200/nsys/mlp.sqlite").read_bytes())
    desk.cli.write(
        "nsys",
        SLOW_NSYS.replace("SECONDS", "25 * (os.environ['RANK'] == '1')")
        .replace("RECORDING", repr(f"{CLAIM_PATH}/report.sqlite"))
        .replace("import pathlib", "import os, pathlib"),
    ).chmod(0o755)
    desk.cli.env["PROFRUN_NSYS"] = f"{CLAIM_PATH}/nsys"
    document = desk.submit("python late.py 1 0", f"collectors: [nsys]\nsecrets: [PROFRUN_NSYS]\n{TWO_NODES}")
    assert ends(document) == [("finished", None)], document["said"]
    written = {row["path"] for row in exit_of(desk)["artefacts"] if row["state"] == "whole"}
    assert {path.split("/")[1] for path in written if path.endswith(".nsys-rep")} == {"rank0", "rank1"}


def test_a_rank_that_was_killed_fails_the_trial_and_its_pod_says_why(desk: Desk) -> None:
    process = begin(desk)
    node = next(node for node in desk.nodes if node.name == pod_of(desk, 1)["spec"]["nodeName"])
    (life,) = node.pods.values()
    docker("kill", "--signal", "KILL", life.container)
    document = desk.finish(process)
    ((state, reason),) = ends(document)
    assert state == "failed", document["said"]
    assert (reason or "").startswith("rank 1: the container ended with exit code 137")
    assert exit_of(desk)["code"] == "rank-silent"


def test_a_trial_whose_node_dies_has_failed_and_says_so(desk: Desk) -> None:
    process = begin(desk)
    next(node for node in desk.nodes if node.name == pod_of(desk, 1)["spec"]["nodeName"]).die()
    until(lambda: "waits for rank 1" in status(desk), "the wait", 120)
    document = desk.finish(process, 420)
    assert ends(document) == [("failed", "rank 1: its node does not answer")], document["said"]
    assert exit_of(desk)["silent"] == [1]


def test_cancel_ends_a_trial_that_waits_for_a_rank(desk: Desk) -> None:
    process = begin(desk)
    assert desk.begin("cancel", "last").wait(120) == 0
    document = desk.finish(process)
    assert [trial["state"] for trial in document["trials"]] == ["cancelled"], document["said"]
    assert exit_of(desk)["silent"] == []
    assert desk.containers() == []


def begin(desk: Desk) -> subprocess.Popen[str]:
    """A trial whose rank 0 has ended and waits for rank 1, which never ends."""
    desk.cli.write("late.py", LATE)
    desk.spec("python late.py 1 460", f"collectors: [none]\n{TWO_NODES}")
    process = desk.start("--json")
    until((desk.folder / "began1").exists, "rank 1", 120)
    until(lambda: list(desk.folder.glob("runs/*/trials/*/hook/exit.rank0.json")), "the end of rank 0")
    return process


def status(desk: Desk) -> str:
    """What `profrun status` prints."""
    process = desk.begin("status", "last")
    process.wait(60)
    return desk.said(process)


def pod_of(desk: Desk, rank: int) -> Object:
    """The pod of a rank."""
    mark = "batch.kubernetes.io/job-completion-index"
    (found,) = (pod for pod in desk.pods() if pod["metadata"]["annotations"][mark] == str(rank))
    return found


def exit_of(desk: Desk) -> dict[str, Any]:
    """The only trial's exit.json."""
    (folder,) = desk.trial_folders()
    value: dict[str, Any] = json.loads((folder / "exit.json").read_text())
    return value
