"""What Kubernetes says about pods and Jobs, and what it means for a trial."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.backends.kubernetes.states import (
    Observed,
    combined,
    from_job,
    from_pod,
    is_restarted,
    newest_pods,
    ranges,
)
from profrun.contract.states import TERMINAL, Status

WITHOUT_IMAGE = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
TAKEN = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "more"}


def pod(phase: str, state: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A pod with one container."""
    status = {"phase": phase, "containerStatuses": [{"name": "trial", "state": state or {}}], **more}
    return {"metadata": {"name": "p"}, "status": status}


def ended(code: int | None, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason}}


@pytest.mark.parametrize(
    ("phase", "state", "more", "wanted", "words"),
    [
        ("Pending", {}, {}, "queued", None),
        ("Pending", {"waiting": {"reason": "ContainerCreating"}}, {}, "queued", None),
        ("Running", {"running": {}}, {}, "running", None),
        ("Running", ended(0), {}, "finalising", None),
        ("Unknown", {}, {}, "running", "does not answer"),
        # Success only by the wrapper's own code, and the reason says on whose word.
        ("Succeeded", ended(0), {}, "finished", "the wrapper's exit code says so"),
        ("Succeeded", {}, {}, "lost", "does not say how"),
        ("Failed", ended(1), {}, "failed", "exit code 1 and the wrapper left no exit.json"),
        ("Failed", ended(69), {}, "failed", "the collector cannot run there"),
        ("Failed", ended(124), {}, "timeout", "the time limit"),
        ("Failed", ended(130), {}, "cancelled", "cancelled"),
        ("Failed", ended(198), {}, "lost", "interrupted"),
        ("Failed", ended(199), {}, "failed", "does not find the run in its volume"),
        ("Failed", ended(137, "OOMKilled"), {}, "failed", "out of memory"),
        ("Failed", ended(128, "StartError"), {}, "failed", "could not be started"),
        ("Failed", ended(143), {"reason": "DeadlineExceeded"}, "timeout", "deadline"),
        ("Failed", ended(137), {"reason": "Evicted", "message": "disk"}, "lost", "Evicted: disk"),
        ("Failed", ended(137), {"conditions": [TAKEN]}, "lost", "PreemptionByScheduler: more"),
        ("Failed", {}, {"reason": "NodeLost"}, "lost", "NodeLost"),
        # The trial's container did not start, because one before it did not.
        (
            "Failed",
            {"waiting": {"reason": "PodInitializing"}},
            {"initContainerStatuses": [{"name": "net", "state": ended(3)}]},
            "failed",
            "the init container net ended with exit code 3",
        ),
        (
            "Pending",
            {"waiting": {"reason": "PodInitializing"}},
            {"initContainerStatuses": [{"name": "net", "state": WITHOUT_IMAGE}]},
            "queued",
            "ErrImagePull: init container net: no such image",
        ),
    ],
)
def test_pods(
    phase: str, state: dict[str, Any], more: dict[str, Any], wanted: str, words: str | None
) -> None:
    seen = from_pod(pod(phase, state, **more))
    assert seen.status.state == wanted
    assert words is None if seen.status.reason is None else words is not None and words in seen.status.reason
    assert seen.ended == (wanted in TERMINAL)


def test_a_pod_that_finds_no_node_says_why() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "message": "0/3 nodes: 3 Insufficient nvidia.com/gpu",
    }
    seen = from_pod(pod("Pending", conditions=[condition]))
    assert seen.status == Status("queued", "no node yet: 0/3 nodes: 3 Insufficient nvidia.com/gpu")


def test_an_image_that_cannot_be_had() -> None:
    never = from_pod(pod("Pending", {"waiting": {"reason": "InvalidImageName", "message": "a b"}}))
    wait = from_pod(pod("Pending", {"waiting": {"reason": "ImagePullBackOff", "message": "denied"}}))
    assert (never.hopeless, never.stuck) == (True, False)
    assert (wait.hopeless, wait.stuck, wait.status.reason) == (False, True, "ImagePullBackOff: denied")


def test_a_pod_that_is_being_ended_is_finalising() -> None:
    dying = pod("Running", {"running": {}})
    dying["metadata"]["deletionTimestamp"] = "now"
    assert from_pod(dying).status.state == "finalising"


def test_a_pod_that_runs_and_is_not_ready_is_on_a_node_that_does_not_answer() -> None:
    away = from_pod(pod("Running", {"running": {}}, conditions=[{"type": "Ready", "status": "False"}]))
    assert (away.status, away.ended, away.unreachable) == (
        Status("running", "its node does not answer"),
        False,
        True,
    )
    here = from_pod(pod("Running", {"running": {}}, conditions=[{"type": "Ready", "status": "True"}]))
    assert here.unreachable is False
    assert combined([here, away]).unreachable is False
    both = combined([away, Observed(Status("finished"), ended=True)])
    assert (both.unreachable, both.stuck, both.ended) == (True, True, False)
    assert combined([away]).stuck is False  # Kubernetes makes the pod again when the node is given up


@pytest.mark.parametrize(
    ("status", "spec", "index", "wanted", "over"),
    [
        ({}, {}, 0, "queued", False),
        ({}, {"suspend": True}, 0, "queued", False),
        ({"completedIndexes": "0-2"}, {}, 1, "lost", True),  # its pod is gone: nobody knows how it ended
        ({"completedIndexes": "0-2"}, {}, 3, "queued", False),
        ({"failedIndexes": "1,3"}, {}, 3, "failed", True),
        ({"conditions": [{"type": "Failed", "status": "True", "reason": "X"}]}, {}, 0, "lost", True),
    ],
)
def test_jobs(status: dict[str, Any], spec: dict[str, Any], index: int, wanted: str, over: bool) -> None:
    seen = from_job({"metadata": {}, "spec": spec, "status": status}, [index])
    assert (seen.status.state, seen.ended) == (wanted, over)


def test_a_job_that_is_gone_is_no_success() -> None:
    assert from_job(None, [0]).status.state == "lost"


def test_a_queue_is_named() -> None:
    job: dict[str, Any] = {
        "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpu"}},
        "spec": {"suspend": True},
    }
    assert from_job(job, [0]).status.reason == "waits in queue gpu"


def test_a_pod_taken_away_is_followed_by_another_while_the_job_lives() -> None:
    taken = pod("Failed", ended(137), conditions=[TAKEN])
    job: dict[str, Any] = {"metadata": {}}
    over = {"metadata": {}, "status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    assert is_restarted(taken, job, one_node=True)
    assert not is_restarted(taken, job, one_node=False)
    assert not is_restarted(taken, over, one_node=True)
    assert not is_restarted(pod("Failed", ended(1)), job, one_node=True)


def test_the_newest_pod_of_an_index_counts() -> None:
    def made(name: str, when: str, index: str) -> dict[str, Any]:
        labels = {"batch.kubernetes.io/job-name": "j"}
        marks = {"batch.kubernetes.io/job-completion-index": index}
        return {"metadata": {"name": name, "creationTimestamp": when, "labels": labels, "annotations": marks}}

    found = newest_pods(
        [made("b", "2026-01-02", "0"), made("a", "2026-01-01", "0"), made("c", "2026-01-01", "1")]
    )
    assert {key: pod["metadata"]["name"] for key, pod in found.items()} == {("j", 0): "b", ("j", 1): "c"}


def test_nodes_of_a_trial_together() -> None:
    def of(*states: str) -> str:
        seen = [Observed(Status(state), ended=state in TERMINAL) for state in states]  # type: ignore[arg-type]
        return combined(seen).status.state

    assert of("running", "finished") == "running"
    assert of("queued", "running") == "running"
    assert of("finished", "failed") == "failed"
    assert of("finished", "finished") == "finished"
    assert of("timeout", "lost") == "lost"


@given(st.sets(st.integers(0, 40)))
def test_ranges(wanted: set[int]) -> None:
    parts, left = [], sorted(wanted)
    while left:
        first = last = left.pop(0)
        while left and left[0] == last + 1:
            last = left.pop(0)
        parts.append(str(first) if first == last else f"{first}-{last}")
    assert ranges(",".join(parts)) == wanted


def test_one_pod_without_a_node_keeps_its_trial_from_starting() -> None:
    held = Observed(Status("queued", "no node yet: 2 Insufficient nvidia.com/gpu"))
    runs, over = Observed(Status("running")), Observed(Status("failed", "x"), ended=True)
    said = "1 of 2 pods cannot start: no node yet: 2 Insufficient nvidia.com/gpu"
    assert combined([runs, held]).status == Status("queued", said)
    assert combined([runs, Observed(Status("queued"))]).status == Status("running")
    assert combined([held]).status == held.status
    assert combined([over, held]).status == held.status
