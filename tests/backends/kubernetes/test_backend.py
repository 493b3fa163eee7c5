"""The backend against objects that the test writes: nothing runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.backend import KubernetesBackend
from profrun.contract.codec import to_json
from profrun.contract.exit import Exit
from profrun.errors import UnavailableError, UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.load import load_text
from profrun.plans.make import make_plan
from profrun.plans.model import Plan
from profrun.store.events import Handle
from profrun.store.files import write_json
from profrun.store.runs import Run
from tests.backends.kubernetes.server import Fault, Server
from tests.backends.plans import plan, prepared

Connect = Callable[[str | None, str | None], Api]
INDEX = "batch.kubernetes.io/job-completion-index"
FORBIDDEN = 'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'


@pytest.fixture
def backend(connect: Connect) -> KubernetesBackend:
    return KubernetesBackend(connect, lag_s=0.0, stuck_s=0.0)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "runs" / "transformer-20260101T000000Z-abcd")


@pytest.fixture
def handles(server: Server, backend: KubernetesBackend, run: Run) -> dict[str, Handle]:
    """Eight trials, submitted to a cluster that has the claim."""
    ready(server)
    found = made(run)
    return dict(backend.submit(prepared(found), found.trials, run))


def made(run: Run, cluster: str = "", resources: str = "gpus: 1", **more: str) -> Plan:
    """A plan whose trial folders are there."""
    found = plan(
        image="python:3.12",
        resources=resources,
        cluster=f"pvc: runs, vendor: nvidia, parallel: 4, {cluster}",
        **more,
    )
    for trial in found.trials:
        run.trial(trial.id).folder.mkdir(parents=True)
    return found


def end(run: Run, ended: Exit) -> None:
    """What a trial's wrapper writes last."""
    write_json(run.trial(ended.trial).exit, to_json(ended))


def _prepare(backend: KubernetesBackend, found: Plan, run: Run) -> None:
    backend.prepare(found, found.trials, run, run.path.parent)


def ready(server: Server) -> None:
    """A cluster that has the claim."""
    server.put("persistentvolumeclaims", {"metadata": {"name": "runs"}}, "ADDED")


def job(server: Server, number: int = 0) -> dict[str, Any]:
    return sorted(server.of("jobs"), key=lambda job: len(job["metadata"]["name"]))[number]


def pod(server: Server, index: int, phase: str, state: dict[str, Any], **status: Any) -> None:
    """A pod of the first Job."""
    owner = job(server)
    labels = {
        **owner["spec"]["template"]["metadata"]["labels"],
        "batch.kubernetes.io/job-name": owner["metadata"]["name"],
    }
    value = {
        "metadata": {"name": f"pod-{index}", "labels": labels, "annotations": {INDEX: str(index)}},
        "status": {"phase": phase, "containerStatuses": [{"name": "trial", "state": state}], **status},
    }
    server.put("pods", value, "ADDED")


def test_submit_makes_the_job_and_then_what_it_owns(
    server: Server, backend: KubernetesBackend, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(server)
    monkeypatch.setenv("HF_TOKEN", "hf-secret")
    found = made(run)
    found = Plan(type(found.job)(**{**vars(found.job), "secrets": ("HF_TOKEN",)}), found.trials, found.vendor)
    handles = backend.submit(prepared(found), found.trials, run)
    assert [handle.data["index"] for handle in handles.values()] == list(range(8))
    json.dumps([dict(handle.data) for handle in handles.values()])
    (secret,) = server.of("secrets")
    owner = job(server)
    assert secret["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    assert secret["data"] == {"HF_TOKEN": "aGYtc2VjcmV0"}
    posts = [path.rsplit("/", 1)[1] for method, path, _ in server.requests if method == "POST"]
    assert posts == ["jobs", "networkpolicies", "secrets"]
    kept = "".join(path.read_text() for path in run.path.rglob("*") if path.is_file())
    assert "HF_TOKEN" in kept
    assert "hf-secret" not in kept
    assert "aGYtc2VjcmV0" not in kept


def test_the_network_is_off_unless_the_job_wants_one(
    server: Server, backend: KubernetesBackend, run: Run
) -> None:
    """The policy selects this Job's pods by a label that Kubernetes gives them, and goes with the Job."""
    ready(server)
    found = made(run)
    backend.submit(prepared(found), found.trials, run)
    (closed,) = server.of("networkpolicies")
    assert closed["spec"] == {
        "podSelector": {"matchLabels": {"batch.kubernetes.io/job-name": job(server)["metadata"]["name"]}},
        "policyTypes": ["Ingress", "Egress"],
    }
    assert closed["metadata"]["ownerReferences"][0]["uid"] == job(server)["metadata"]["uid"]
    open_ = Plan(type(found.job)(**{**vars(found.job), "network": True}), found.trials, found.vendor)
    backend.submit(prepared(open_), found.trials, run)
    assert (len(server.of("jobs")), len(server.of("networkpolicies"))) == (2, 1)


def test_without_the_right_to_turn_the_network_off_nothing_runs(
    server: Server, backend: KubernetesBackend, run: Run
) -> None:
    ready(server)
    server.faults = [Fault("POST", "networkpolicies", 403, {"message": "cannot create networkpolicies"})]
    found = made(run)
    with pytest.raises(UnavailableError, match=r"cannot be turned off: .*; ask for .* or set network: true"):
        backend.submit(prepared(found), found.trials, run)
    assert server.of("jobs") == []


def test_a_claim_that_is_not_there_is_said_before_anything_is_made(
    server: Server, backend: KubernetesBackend, run: Run
) -> None:
    found = made(run)
    with pytest.raises(UsageError, match="namespace team has no persistent volume claim 'runs'"):
        backend.prepare(found, found.trials, run, run.path.parent)
    assert server.of("jobs") == []


def test_who_may_not_look_at_claims_may_submit(server: Server, backend: KubernetesBackend, run: Run) -> None:
    server.faults = [Fault("GET", "persistentvolumeclaims", 403)]
    found = made(run)
    ready_to_go = backend.prepare(found, found.trials, run, run.path.parent)
    assert len(backend.submit(ready_to_go, found.trials, run)) == 8


def test_when_the_second_job_is_refused_the_first_is_deleted(
    server: Server, backend: KubernetesBackend, run: Run
) -> None:
    ready(server)
    found = made(run, resources="gpus: 1, nodes: 2")
    server.faults = [Fault("POST", "/services", 403, {"message": "services is forbidden"})]
    with pytest.raises(UnavailableError, match="your account may not do this"):
        backend.submit(prepared(found), found.trials, run)
    assert server.of("jobs") == []


def test_exit_json_counts_whatever_the_cluster_says(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    first, second, third, *_ = handles
    pod(server, 0, "Failed", {"terminated": {"exitCode": 3}})
    pod(server, 1, "Succeeded", {"terminated": {"exitCode": 0}})
    pod(server, 2, "Failed", {"terminated": {"exitCode": 3}})
    server.logs["pod-2"] = ["2026-01-01T00:00:00Z first", "2026-01-01T00:00:01Z Segmentation fault"]
    end(run, Exit(first, "finished", exit_code=0))
    states = backend.status(handles, run)
    assert states[first].state == "finished"
    assert states[second].state == "finished"
    assert "not to be seen from here" in (states[second].reason or "")
    assert (states[third].state, states[third].exit_code) == ("failed", 3)
    assert (states[third].reason or "").endswith("the last line of its log: Segmentation fault")
    assert {status.state for trial, status in list(states.items())[3:]} == {"queued"}


def test_a_preempted_trial_that_wrote_how_it_ended_waits_for_its_next_pod(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    trial = next(iter(handles))
    end(run, Exit(trial, "timeout", stopped_by="SIGTERM", reason="ended from outside", exit_code=143))
    taken = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    over = {"terminated": {"exitCode": 124}}

    def state() -> tuple[str, str]:
        status = backend.status({trial: handles[trial]}, run)[trial]
        return status.state, status.reason or ""

    pod(server, 0, "Running", {"running": {}}, conditions=[taken])
    assert state()[0] == "running"
    pod(server, 0, "Failed", over, conditions=[taken])
    assert state()[0] == "queued"
    assert "PreemptionByScheduler" in state()[1]
    assert "starts it again" in state()[1]
    server.put("pods", server.objects["pods", "pod-0"], "DELETED")
    assert state()[0] == "queued"  # the Job makes another
    pod(server, 0, "Failed", over)  # nothing took it away: Kubernetes' own deadline, for one
    assert state() == ("timeout", "ended from outside")
    pod(server, 0, "Failed", over, conditions=[taken])
    job(server)["status"] = {"conditions": [{"type": "Failed", "status": "True"}]}
    assert state() == ("timeout", "ended from outside")


def two_nodes(server: Server, backend: KubernetesBackend, run: Run) -> tuple[str, dict[str, Handle]]:
    """A trial of two nodes whose rank 0 has not heard from rank 1."""
    ready(server)
    found = made(run, resources="gpus: 1, nodes: 2")
    trial = found.trials[0]
    handles = dict(backend.submit(prepared(found), [trial], run))
    end(run, Exit(trial.id, "failed", code="rank-silent", reason="rank 1", wrappers=2, silent=(1,)))
    pod(server, 0, "Succeeded", {"terminated": {"exitCode": 0}})
    return trial.id, handles


@pytest.mark.parametrize(
    ("phase", "state", "more", "reason"),
    [
        ("Failed", {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, {}, "rank 1: out of memory"),
        (
            "Running",
            {"running": {}},
            {"conditions": [{"type": "Ready", "status": "False"}]},
            "rank 1: its node does not answer",
        ),
    ],
)
def test_what_became_of_the_pod_of_a_silent_rank_is_the_reason(
    server: Server,
    backend: KubernetesBackend,
    run: Run,
    phase: str,
    state: dict[str, Any],
    more: dict[str, Any],
    reason: str,
) -> None:
    trial, handles = two_nodes(server, backend, run)
    pod(server, 1, "Running", {"running": {}}, conditions=[{"type": "Ready", "status": "True"}])
    assert backend.status(handles, run)[trial].state == "running"  # it may still say how it ended
    pod(server, 1, phase, state, **more)
    status = backend.status(handles, run)[trial]
    assert (status.state, status.code) == ("failed", "rank-silent")
    assert (status.reason or "").startswith(reason)


def test_a_trial_without_an_end_is_given_up_when_its_node_does_not_answer(
    server: Server, connect: Connect, run: Run
) -> None:
    backend = KubernetesBackend(connect, lag_s=0, stuck_s=0)
    trial, handles = two_nodes(server, backend, run)
    run.trial(trial).exit.unlink()
    pod(server, 0, "Running", {"running": {}}, conditions=[{"type": "Ready", "status": "False"}])
    pod(server, 1, "Running", {"running": {}})
    status = backend.status(handles, run)[trial]
    assert (status.state, status.reason) == ("failed", "1 of 2 nodes does not answer")


def test_an_ended_pod_is_given_time_for_its_file(server: Server, connect: Connect, run: Run) -> None:
    ready(server)
    patient = KubernetesBackend(connect, lag_s=60)
    found = made(run)
    handles = patient.submit(prepared(found), found.trials, run)
    pod(server, 0, "Failed", {"terminated": {"exitCode": 3}})
    assert patient.status(handles, run)[found.trials[0].id].state == "finalising"


def test_two_questions_a_round_and_fewer_while_nothing_changes(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    for index in range(8):
        pod(server, index, "Running", {"running": {}})
    server.requests.clear()
    for _ in range(6):
        assert {status.state for status in backend.status(handles, run).values()} == {"running"}
    assert len(server.requests) == 12
    assert backend.poll_s == 30.0
    pod(server, 0, "Running", {"running": {}})
    backend.status(handles, run)
    assert backend.poll_s == 2.0


def test_writing_the_report_is_finalising(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    pod(server, 0, "Running", {"running": {}})
    write_json(run.trial(next(iter(handles))).phase, {"phase": "finalise"})
    assert backend.status(handles, run)[next(iter(handles))].state == "finalising"


def test_pod_security_refuses_pods_not_jobs_and_the_job_is_given_up(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    about = {"name": job(server)["metadata"]["name"]}
    for name, message, when in (("new", FORBIDDEN, "2026-01-02"), ("old", "exceeded quota", "2026-01-01")):
        event = {
            "metadata": {"name": name},
            "involvedObject": about,
            "message": message,
            "lastTimestamp": when,
        }
        server.put("events", event, "ADDED")
    states = backend.status(handles, run)
    assert {status.state for status in states.values()} == {"failed"}
    assert "Pod Security does not allow the pod" in (states[next(iter(handles))].reason or "")
    assert server.of("jobs") == []
    assert {status.state for status in backend.status(handles, run).values()} == {"failed"}


def test_an_image_that_never_comes_ends_the_wait(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    pod(server, 0, "Pending", {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}})
    states = backend.status(handles, run)
    assert states[next(iter(handles))].state == "failed"
    assert states[next(iter(handles))].reason == "ImagePullBackOff: not found"
    assert server.of("jobs") == []


def test_a_job_that_vanished_is_lost(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    server.put("jobs", job(server), "DELETED")
    assert {status.state for status in backend.status(handles, run).values()} == {"lost"}


def test_a_killed_driver_finds_its_job_again(server: Server, connect: Connect, run: Run) -> None:
    ready(server)
    found = made(run)
    KubernetesBackend(connect).submit(prepared(found), found.trials, run)
    pod(server, 5, "Running", {"running": {}})
    fresh = KubernetesBackend(connect, lag_s=0.0)
    nothing = {trial.id: Handle("kubernetes", {}) for trial in found.trials}
    states = fresh.status(nothing, run)
    assert states[found.trials[5].id].state == "running"
    assert states[found.trials[0].id].state == "queued"
    other = fresh.status({"x": Handle("kubernetes", {})}, run)
    assert (other["x"].state, other["x"].reason) == ("lost", "it was never queued")


def test_a_server_that_cannot_be_reached_is_no_verdict(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    server.faults = [Fault("GET", "/jobs", "drop")] * 5
    with pytest.raises(UnavailableError, match="cannot be reached"):
        backend.status(handles, run)
    assert {status.state for status in backend.status(handles, run).values()} == {"queued"}


def test_logs_of_a_pod_that_has_no_files_yet_survive_a_broken_stream(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    trial = next(iter(handles))
    pod(server, 0, "Running", {"running": {}})
    server.logs["pod-0"] = [f"2026-01-01T00:00:0{number}Z line {number}" for number in range(4)]
    server.faults = [Fault("GET", "/log", "cut")]
    lines = backend.logs(handles[trial], run, trial, follow=True)
    got = [next(lines) for _ in range(4)]
    assert got == ["line 0", "line 1", "line 2", "line 3"]
    assert server.asked("GET", "/log.*sinceTime=") == 1
    end(run, Exit(trial, "finished", exit_code=0))
    assert list(lines) == []
    run.trial(trial).stdout.write_text("from the file\n")
    assert list(backend.logs(handles[trial], run, trial, follow=False)) == ["from the file"]


def test_cancelling_some_trials_ends_their_pods_and_leaves_the_others(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    for index in range(3):
        pod(server, index, "Running", {"running": {}})
    first, second, third, *_ = handles
    some = {trial: handles[trial] for trial in (first, second)}
    backend.cancel(some, run, grace=7.0)
    asked = [(path.rsplit("/", 1)[1], body) for method, path, body in server.requests if method == "DELETE"]
    # 7 s of grace and what the slowest profiler needs: twice 120 s and a minute.
    assert [(name, body["gracePeriodSeconds"]) for name, body in asked] == [("pod-0", 307), ("pod-1", 307)]
    assert len(server.of("jobs")) == 1
    assert run.trial(first).cancel.exists()
    assert not run.trial(third).cancel.exists()


def test_cancelling_all_deletes_the_job(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    backend.cancel(handles, run, grace=0.0)
    assert server.of("jobs") == []
    assert {status.state for status in backend.status(handles, run).values()} == {"cancelled"}


def test_a_cancelled_trial_that_had_begun_is_given_time_for_its_file(
    server: Server, connect: Connect, run: Run
) -> None:
    ready(server)
    patient = KubernetesBackend(connect, lag_s=60)
    found = made(run)
    handles = patient.submit(prepared(found), found.trials, run)
    begun, waiting = (trial.id for trial in found.trials[:2])
    (run.trial(begun).folder / "pod").write_text("uid")
    patient.cancel(handles, run, grace=0.0)
    states = patient.status(handles, run)
    assert states[begun].state == "finalising"
    assert (states[waiting].state, states[waiting].reason) == ("cancelled", "ended before it was started")


def test_a_pinned_image_and_profile_are_part_of_the_job(
    server: Server, backend: KubernetesBackend, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(server)
    (tmp_path / "clusters.yaml").write_text("lab: {pvc: runs, vendor: amd, namespace: ml}\n")
    monkeypatch.setenv("PROFRUN_CLUSTERS", str(tmp_path / "clusters.yaml"))
    found = plan(image="auto", cluster="profile: lab, parallel: 2")
    pinned = backend.prepare(found, found.trials, run, run.path.parent).plan
    assert pinned.job.cluster == ClusterSettings(
        pvc="runs", vendor="amd", namespace="ml", parallel=2, allocation="each"
    )
    assert pinned.job.image.startswith("rocm/")


def test_what_cannot_work_is_said_before_there_is_a_run_folder(
    server: Server, backend: KubernetesBackend, run: Run
) -> None:
    with pytest.raises(UsageError, match="needs a persistent volume claim"):
        _prepare(backend, plan(image="python:3.12", cluster="vendor: amd"), run)
    with pytest.raises(UsageError, match="has no persistent volume claim 'runs'"):
        _prepare(backend, plan(image="python:3.12", cluster="pvc: runs, vendor: amd"), run)
    with pytest.raises(UsageError, match="nothing says whose"):
        _prepare(backend, plan(image="python:3.12", cluster="pvc: runs"), run)


def test_the_digest_that_ran_is_kept(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    pod(server, 2, "Running", {"running": {}})
    server.of("pods")[0]["status"]["containerStatuses"][0]["imageID"] = "python@sha256:abc"
    backend.status(handles, run)
    kept = json.loads((run.path / "kubernetes/images.json").read_text())
    assert kept == {[*handles][2]: "python@sha256:abc"}


def test_the_digest_of_a_trial_that_ended_between_two_questions_is_kept(
    server: Server, backend: KubernetesBackend, run: Run, handles: dict[str, Handle]
) -> None:
    """It is asked for once; a server that does not answer holds up no trial that has said how it ended."""
    first, second, *_ = handles
    for place, trial in enumerate((first, second)):
        pod(server, place, "Succeeded", {"terminated": {"exitCode": 0}})
        server.of("pods")[place]["status"]["containerStatuses"][0]["imageID"] = f"python@sha256:{place}"
        end(run, Exit(trial, "finished", exit_code=0))
    assert backend.status({first: handles[first]}, run)[first].state == "finished"
    kept = json.loads((run.path / "kubernetes/images.json").read_text())
    assert kept == {first: "python@sha256:0"}
    server.requests.clear()
    backend.status({first: handles[first]}, run)
    assert server.asked("GET", "/pods") == 0
    server.faults = [Fault("GET", "/pods", "drop")] * 9
    assert backend.status({second: handles[second]}, run)[second].state == "finished"


def test_five_hundred_trials_are_one_job(server: Server, backend: KubernetesBackend, run: Run) -> None:
    ready(server)
    variants = ", ".join(f"v{index}: {{n: {index}}}" for index in range(500))
    text = f"name: t\nimage: a\ncommand: sleep {{n}}\nvariants: {{{variants}}}\ncollectors: [none]\n"
    found = make_plan(load_text(text + "cluster: {pvc: runs, parallel: 50}\nresources: {gpus: 0}\n"))
    for trial in found.trials:
        run.trial(trial.id).folder.mkdir(parents=True)
    handles = backend.submit(prepared(found), found.trials, run)
    assert job(server)["spec"]["completions"] == 500
    assert server.asked("POST", "/jobs") == 1
    server.requests.clear()
    states = backend.status(handles, run)
    assert {status.state for status in states.values()} == {"queued"}
    assert len(server.requests) == 3  # Jobs, pods, and the events that would say why there is no pod yet
