"""States of pods and Jobs, and what they mean for a trial. Pure.

kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle and .../controllers/job. The exit codes are the
wrapper's (docs/in-job.md) and those of the script before it (``launch``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from profrun.backends.kubernetes.launch import CANCELLED, INTERRUPTED, NOT_THERE
from profrun.backends.kubernetes.objects import TRIAL, ApiObject, status_part
from profrun.contract.states import Status, TrialState

INDEX = "batch.kubernetes.io/job-completion-index"
JOB = "batch.kubernetes.io/job-name"
NEVER = frozenset({"InvalidImageName", "ErrImageNeverPull"})
"""Waiting reasons that do not go away."""
STUCK = frozenset(
    {
        *("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "CreateContainerConfigError"),
        *("CreateContainerError", "RunContainerError"),
    }
)
"""Waiting reasons that may go away: a registry that is down, a Secret that comes a moment later."""

STARTING = frozenset({"ContainerCreating", "PodInitializing"})
"""Waiting reasons of a pod that starts as it should: its node gets the image and the volumes."""

EXITS: Mapping[int, tuple[TrialState, str]] = {
    0: ("finished", "the wrapper's exit code says so; its exit.json is not to be seen from here"),
    65: ("failed", "the wrapper found no readable command.json, or the program exited with 65"),
    69: ("failed", "the collector cannot run there, or the program exited with 69"),
    73: ("failed", "the trial folder cannot be written, or the program exited with 73"),
    74: ("failed", "exit.json could not be written, or the program exited with 74"),
    124: ("timeout", "the time limit"),
    127: ("failed", "the command, or python3, is not in the image"),
    CANCELLED: ("cancelled", "cancelled"),
    INTERRUPTED: ("lost", "one of its nodes was interrupted"),
    NOT_THERE: (
        "failed",
        "the pod does not find the run in its volume; cluster.shared must be the claim here",
    ),
}
"""What a container's exit code means while there is no ``exit.json``."""


@dataclass(frozen=True)
class Observed:
    """What a pod or a Job says of a trial.

    Attributes:
        status: what it means.
        ended: nothing more comes from it but ``exit.json``, perhaps.
        hopeless: it will never start, and no other pod of the Job will.
        stuck: it may never start, or never end.
        unreachable: its node does not answer: as things are, nothing more comes from it.
    """

    status: Status
    ended: bool = False
    hopeless: bool = False
    stuck: bool = False
    unreachable: bool = False


def job_of(pod: ApiObject) -> str:
    """Name of the Job that a pod belongs to."""
    return str((pod["metadata"].get("labels") or {}).get(JOB, ""))


def index_of(pod: ApiObject) -> int:
    """Its completion index; -1 when it has none. The annotation is older than the label."""
    marks = {**(pod["metadata"].get("labels") or {}), **(pod["metadata"].get("annotations") or {})}
    return int(marks.get(INDEX, -1))


def newest_pods(pods: Iterable[ApiObject]) -> dict[tuple[str, int], ApiObject]:
    """(Job, index) -> the pod that was made last: an evicted one has a successor."""
    found: dict[tuple[str, int], ApiObject] = {}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or "")):
        found[job_of(pod), index_of(pod)] = pod
    return found


def from_pod(pod: ApiObject) -> Observed:
    """What a pod says."""
    status = status_part(pod)
    phase = status.get("phase")
    state = _container_state(status)
    if phase in ("Succeeded", "Failed"):
        return Observed(_ended(status, state), ended=True)
    if "running" in state and _is_ready(status) is False:
        # A pod without probes is ready while it runs, unless its node has fallen silent.
        return Observed(Status("running", "its node does not answer"), unreachable=True)
    if pod["metadata"].get("deletionTimestamp"):
        return Observed(Status("finalising", "Kubernetes ends the pod"))
    if phase == "Unknown":
        return Observed(Status("running", "its node does not answer"))
    if "running" in state:
        return Observed(Status("running"))
    if "terminated" in state:
        return Observed(Status("finalising"))
    return _waiting(status, state)


def _is_ready(status: ApiObject) -> bool | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "True")
    return None


def _waiting(status: ApiObject, state: ApiObject) -> Observed:
    waiting = _held_by(status) or state.get("waiting") or {}
    reason, message = waiting.get("reason"), _one_line(waiting.get("message"))
    if reason in NEVER or reason in STUCK:
        said = Status("queued", f"{reason}: {message}" if message else str(reason))
        return Observed(said, hopeless=reason in NEVER, stuck=reason in STUCK)
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return Observed(Status("queued", f"no node yet: {_one_line(condition.get('message'))}"))
    # Every pod says for a moment that its container is being made: that is no reason to tell.
    return Observed(Status("queued", str(reason) if reason and reason not in STARTING else None))


def _held_by(status: ApiObject) -> ApiObject | None:
    """Why an init container does not start: until it does, the trial's container only says that it waits."""
    for container in status.get("initContainerStatuses") or ():
        found: ApiObject = (container.get("state") or {}).get("waiting") or {}
        if found.get("reason") in NEVER or found.get("reason") in STUCK:
            said = f"init container {container.get('name')}: {_one_line(found.get('message'))}"
            return {"reason": found["reason"], "message": said}
    return None


def _container_state(status: ApiObject) -> ApiObject:
    for container in status.get("containerStatuses") or ():
        if container.get("name") == TRIAL:
            found: ApiObject = container.get("state") or {}
            return found
    return {}


def _ended(status: ApiObject, state: ApiObject) -> Status:
    """How a pod's end is read while there is no ``exit.json``: success only if the wrapper's code is 0."""
    reason, message = status.get("reason"), _one_line(status.get("message"))
    over = state.get("terminated") or {}
    code = over.get("exitCode")
    why = disrupted(status)
    if why:
        return Status("lost", f"the pod was taken away ({why})", code)
    if reason == "DeadlineExceeded":
        return Status("timeout", "the pod's deadline passed (cluster.time)", code)
    if reason:
        return Status("lost", f"{reason}: {message}" if message else str(reason), code)
    if over.get("reason") == "OOMKilled":
        return Status(
            "failed", "out of memory: it used more than resources.memory, in which /dev/shm counts", code
        )
    if over.get("reason") in ("StartError", "ContainerCannotRun"):
        return Status("failed", f"the container could not be started: {_one_line(over.get('message'))}", code)
    if code is None:
        return _never_began(status) or Status("lost", "the pod ended and does not say how")
    if code in EXITS:
        return Status(*EXITS[code], code)
    return Status(
        "failed", f"the container ended with exit code {code} and the wrapper left no exit.json", code
    )


def _never_began(status: ApiObject) -> Status | None:
    """The end of a pod whose init container failed, so that the trial's container was not started."""
    for container in status.get("initContainerStatuses") or ():
        over = (container.get("state") or {}).get("terminated") or {}
        if over.get("exitCode"):
            why = f"the init container {container.get('name')} ended with exit code {over['exitCode']}"
            return Status("failed", why, over["exitCode"])
    return None


def disrupted(status: ApiObject) -> str | None:
    """Why Kubernetes took the pod away (preemption, eviction, a lost node), if it did."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return f"{condition.get('reason')}: {_one_line(condition.get('message'))}"
    return None


def from_job(job: ApiObject | None, indexes: Sequence[int]) -> Observed:
    """What a Job says about indexes that have no pod (any more).

    Args:
        job: None when it is not there.
    """
    if job is None:
        return Observed(
            Status("lost", "the Job is not there any more and the wrapper left no exit.json"), ended=True
        )
    status, spec = status_part(job), job.get("spec") or {}
    if any(index in ranges(status.get("failedIndexes")) for index in indexes):
        return Observed(Status("failed", "Kubernetes counts it as failed, and its pod is gone"), ended=True)
    if any(index in ranges(status.get("completedIndexes")) for index in indexes):
        return Observed(
            Status("lost", "its pod ended and is gone, and the wrapper left no exit.json"), ended=True
        )
    for condition in status.get("conditions") or ():
        if condition.get("type") in ("Failed", "FailureTarget") and condition.get("status") == "True":
            said = f"{condition.get('reason')}: {_one_line(condition.get('message'))}"
            return Observed(Status("lost", f"the Job was given up ({said})"), ended=True)
    if job["metadata"].get("deletionTimestamp"):
        return Observed(Status("lost", "the Job is being deleted"), ended=True)
    if spec.get("suspend"):
        queue = (job["metadata"].get("labels") or {}).get("kueue.x-k8s.io/queue-name")
        return Observed(Status("queued", f"waits in queue {queue}" if queue else "the Job is suspended"))
    return Observed(Status("queued"))


def job_ended(job: ApiObject) -> bool:
    """Has the Job ended, so that it makes no more pods?"""
    return any(
        condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
        for condition in status_part(job).get("conditions") or ()
    )


def is_restarted(pod: ApiObject, job: ApiObject | None, *, one_node: bool) -> bool:
    """Will Kubernetes make another pod for this one's index, because it was taken away?"""
    if job is None or job_ended(job) or not one_node or job["metadata"].get("deletionTimestamp"):
        return False
    return disrupted(status_part(pod)) is not None


def ranges(text: str | None) -> set[int]:
    """``0-2,5`` as numbers (completedIndexes, failedIndexes)."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if first:
            found.update(range(int(first), int(last or first) + 1))
    return found


def combined(observed: Sequence[Observed]) -> Observed:
    """Of a trial's nodes: what still acts counts before what has ended, and then the worst."""
    order = ("running", "finalising", "queued", "lost", "failed", "timeout", "cancelled", "finished")
    ended = all(each.ended for each in observed)
    chosen = [each for each in observed if each.ended == ended]
    held = [each for each in chosen if each.status.state == "queued" and each.status.reason]
    if held and len(observed) > 1 and not any(each.ended for each in observed):
        said = held[0].status  # the others wait for this node, wherever their programs are
        reason = f"{len(held)} of {len(observed)} pods cannot start: {said.reason}"
        chosen = [replace(held[0], status=replace(said, reason=reason))]
    first = min(chosen, key=lambda each: order.index(each.status.state))
    away = [each for each in observed if each.unreachable]
    if len(observed) > 1 and away and first.status.state == "running":
        verb = "does" if len(away) == 1 else "do"
        reason = f"{len(away)} of {len(observed)} nodes {verb} not answer"
        first = replace(first, status=Status("running", reason))
    return Observed(
        first.status,
        ended=ended,
        hopeless=any(each.hopeless for each in observed),
        stuck=any(each.stuck for each in observed) or (len(observed) > 1 and bool(away)),
        unreachable=bool(away) and all(each.ended or each.unreachable for each in observed),
    )


def _one_line(text: object) -> str:
    return " ".join(str(text or "").split())[:300]
