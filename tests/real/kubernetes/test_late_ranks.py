"""Ranks on a real API server that end later than others: late, slow to write, killed, on a node that dies."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.real.kubernetes.conftest import Desk
from tests.real.kubernetes.test_runs import WORK, ends
from tests.real.slurm.test_late_ranks import LATE
from tests.standins.kubelet.pod_life import docker
from tests.support.containers import until
from tests.support.kube_api import Object

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

TWO_NODES = "resources: {gpus: 0, nodes: 2, memory: 150GiB, timeout: 8m, grace: 5s}"
"""A node has 256 GiB: each pod has one to itself."""

SLOW_WRITER = (
    """
import os, sys, time, torch
sys.argv.append("8")
write = torch.profiler.profile.export_chrome_trace
def slowly(profile, path):
    time.sleep(25 * (os.environ["RANK"] == "1"))
    return write(profile, path)
torch.profiler.profile.export_chrome_trace = slowly
"""
    + WORK
)
"""Stands for a disk that is slow under rank 1 while torch.profiler writes."""


@pytest.mark.parametrize("seconds", [1, 25])
def test_a_late_rank_is_waited_for(desk: Desk, seconds: int) -> None:
    desk.cli.write("late.py", LATE)
    document = desk.submit(f"python late.py 1 {seconds}", f"collectors: [none]\n{TWO_NODES}")
    assert ends(document) == [("finished", None)], document["said"]
    ended = exit_of(desk)
    assert (ended["wrappers"], ended["silent"]) == (2, [])
    assert len({pod["spec"]["nodeName"] for pod in desk.pods()}) == 2


def test_a_profiler_of_one_rank_may_write_for_longer_than_the_grace(desk: Desk) -> None:
    desk.cli.write("slow.py", SLOW_WRITER)
    document = desk.submit("python slow.py", f"collectors: [torch]\n{TWO_NODES}")
    assert ends(document) == [("finished", None)], document["said"]
    written = {row["path"] for row in exit_of(desk)["artefacts"] if row["state"] == "whole"}
    assert {path.split("/")[1] for path in written if ".pt.trace.json" in path} == {"rank0", "rank1"}


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
    until(lambda: "waits for rank 1" in status(desk), "the wait")
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
    until((desk.folder / "began1").exists, "rank 1")
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
