"""Later trials of a site go where the first one ran, as long as its nodes can be used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.backend import KubernetesBackend
from profrun.backends.kubernetes.same_nodes import node_problem, read_nodes, settled
from profrun.contract.codec import to_json
from profrun.contract.exit import Exit
from profrun.errors import UsageError
from profrun.plans.model import Plan
from profrun.store.files import write_json
from profrun.store.runs import Run
from tests.backends.kubernetes.server import Fault, Server
from tests.backends.plans import plan, prepared

Connect = Callable[[str | None, str | None], Api]
FIT = {"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
CORDONED = {**FIT, "spec": {"unschedulable": True}}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "runs" / "transformer-20260101T000000Z-abcd")


class Desk:
    """Two-node trials that are submitted one after another."""

    def __init__(self, server: Server, connect: Connect, run: Run) -> None:
        self.server, self.connect, self.run = server, connect, run
        found = plan(image="python:3.12", resources="gpus: 0, nodes: 2", cluster="pvc: runs")
        self.plan: Plan = settled(found)

    def submit(self, number: int, *nodes: str, **answers: int | dict[str, Any]) -> dict[str, Any]:
        """Submit a trial, whose pods then run on these nodes to its end; returns its Job.

        Args:
            answers: of the server to a question about a node.
        """
        trial = self.plan.trials[number]
        self.run.trial(trial.id).folder.mkdir(parents=True)
        for name, said in answers.items():
            code, body = (said, {}) if isinstance(said, int) else (200, said)
            self.server.faults.append(Fault("GET", f"/api/v1/nodes/{name}$", code, body))
        backend = KubernetesBackend(self.connect)  # each time as after a kill
        self.handle = backend.submit(prepared(self.plan), [trial], self.run)[trial.id]
        assert self.server.faults == []
        (job,) = [j for j in self.server.of("jobs") if j["metadata"]["name"] == self.handle.data["job"]]
        for index, node in enumerate(nodes):
            name = job["metadata"]["name"]
            mark = {"batch.kubernetes.io/job-completion-index": str(index)}
            labels = {**job["spec"]["template"]["metadata"]["labels"], "batch.kubernetes.io/job-name": name}
            pod = {
                "metadata": {"name": f"{name}-{index}", "labels": labels, "annotations": mark},
                "spec": {"nodeName": node},
                "status": {"phase": "Succeeded"},
            }
            self.server.put("pods", pod, "ADDED")
        write_json(self.run.trial(trial.id).exit, to_json(Exit(trial.id, "finished", exit_code=0)))
        return job


@pytest.fixture
def desk(server: Server, connect: Connect, run: Run) -> Desk:
    return Desk(server, connect, run)


def affinity(job: dict[str, Any]) -> dict[str, Any]:
    """Of a Job's pods to nodes."""
    spec = job["spec"]["template"]["spec"]
    found: dict[str, Any] = spec.get("affinity", {}).get("nodeAffinity", {})
    return found


def firm(*names: str) -> dict[str, Any]:
    """Only these nodes."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [n]}]} for n in names]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def test_later_trials_run_on_the_nodes_of_the_first(desk: Desk, run: Run) -> None:
    assert affinity(desk.submit(0, "b", "a")) == {}
    job = desk.submit(1, "a", "b", a=FIT, b=FIT)
    assert affinity(job) == firm("a", "b")
    kubernetes_validate.validate(job, "1.37", strict=True)
    desk.submit(2, a=FIT, b=FIT)
    known = read_nodes(run)
    assert [known.trials[trial.id] for trial in desk.plan.trials[:2]] == [("b", "a"), ("a", "b")]


@pytest.mark.parametrize(("said", "words"), [(CORDONED, "a is cordoned"), (404, "a is gone")])
def test_nodes_that_cannot_be_used_are_said_and_others_taken(
    desk: Desk, said: int | dict[str, Any], words: str
) -> None:
    desk.submit(0, "a", "b")
    assert affinity(desk.submit(1, "c", "d", a=said, b=FIT)) == {}
    told = f"it takes other nodes than the trials before had: of their nodes, {words}"
    assert desk.handle.data["note"] == told
    assert affinity(desk.submit(2, c=FIT, d=FIT)) == firm("c", "d")
    assert desk.handle.data["note"] is None


def test_without_the_right_to_look_at_nodes_they_are_preferred(desk: Desk) -> None:
    desk.submit(0, "a", "b")
    wished = affinity(desk.submit(1, a=403, b=403))["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [each["preference"]["matchFields"][0]["values"] for each in wished] == [["a"], ["b"]]


def test_a_dry_run_says_whose_nodes_a_trial_takes(desk: Desk, run: Run) -> None:
    first, second, *_ = KubernetesBackend().render(prepared(desk.plan), desk.plan.trials, run)
    said = f"node affinity to the nodes on which {desk.plan.trials[0].id} ran"
    assert said not in first.text
    assert said in second.text


def test_a_node_that_is_not_ready_is_not_used() -> None:
    away = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    assert node_problem(away) == "is not ready"
    assert node_problem(FIT) is None


def test_several_trials_share_nodes_unless_they_run_at_the_same_time() -> None:
    def chosen(cluster: str) -> str | None:
        return settled(plan(cluster=cluster)).job.cluster.of_site(None).allocation

    assert (chosen("pvc: a"), chosen("parallel: 2"), chosen("allocation: each")) == ("one", "each", "each")
    with pytest.raises(UsageError, match="cannot share one allocation and run at the same time"):
        chosen("allocation: one, parallel: 2")
