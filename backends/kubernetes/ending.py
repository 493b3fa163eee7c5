"""Ending pods so that their profilers can write, and waiting for it by a watch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.objects import ApiObject, PodHandle, name_of, status_part
from profrun.backends.kubernetes.refusals import Gone, http_status
from profrun.backends.kubernetes.states import index_of, job_of
from profrun.errors import UnavailableError

_SPARE_S = 20.0
_AGAIN_S = 0.2
_KILL_WAIT_S = 15.0
_OVER_WAIT_S = 60.0

Pods = Mapping[str, ApiObject]


def end(api: Api, selector: str, members: Sequence[PodHandle], deletable: set[str], *, grace: float) -> None:
    """End the pods of these trials: SIGTERM, time to write, and SIGKILL when that is over.

    Args:
        members: the trials' handles, all of this API's namespace.
        deletable: Jobs without another trial: they are deleted, so that no pod follows.
        grace: seconds; 0 kills at once.
    """
    ours = {
        (handle.job, handle.index) for handle in members if handle.nodes == 1 and handle.job not in deletable
    }

    def wanted(pod: ApiObject) -> bool:
        return job_of(pod) in deletable or (job_of(pod), index_of(pod)) in ours

    room = max(handle.room_s for handle in members)
    patience = grace + room if grace > 0 else 0.0
    for name in deletable:
        api.delete_job(name)
    pods, _ = api.pods(selector)
    for pod in pods:
        if wanted(pod) and lives(pod):
            api.delete_pod(name_of(pod), int(patience))
    if grace <= 0:
        return

    def over(present: Pods) -> bool:
        return not any(wanted(pod) and lives(pod) for pod in present.values())

    if not until(api, selector, over, patience + _SPARE_S):
        for pod in api.pods(selector)[0]:
            if wanted(pod):
                api.delete_pod(name_of(pod), 0)
        until(api, selector, over, _KILL_WAIT_S)


def wait_for_pods(
    api: Api, selector: str, members: Sequence[PodHandle], seconds: float = _OVER_WAIT_S
) -> None:
    """Until no pod of these Jobs lives, whose trials have all said how they ended; what hangs is ended.

    Args:
        seconds: how long they may take by themselves.
    """
    names = {handle.job for handle in members}

    def over(present: Pods) -> bool:
        return not any(job_of(pod) in names and lives(pod) for pod in present.values())

    if members and not until(api, selector, over, seconds):
        hanging = {job_of(pod) for pod in api.pods(selector)[0] if lives(pod)} & names
        end(api, selector, [handle for handle in members if handle.job in hanging], hanging, grace=0)
        until(api, selector, over, _KILL_WAIT_S)


def lives(pod: ApiObject) -> bool:
    """May something still run in it?"""
    return status_part(pod).get("phase") not in ("Succeeded", "Failed")


def until(api: Api, selector: str, done: Callable[[Pods], bool], seconds: float) -> bool:
    """Watch pods until ``done`` says so; False when ``seconds`` have passed.

    A watch that breaks off goes on from the last version seen; one that is too old (410) starts from a list.
    """
    deadline = time.monotonic() + seconds
    pause = 0.1
    while time.monotonic() < deadline:
        try:
            items, version = api.pods(selector)
            present: dict[str, ApiObject] = {name_of(pod): pod for pod in items}
            if done(present):
                return True
            if _follow(api, selector, version, present, done, deadline):
                return True
        except Gone:
            continue
        except UnavailableError:
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 2, 5.0)
    return False


def _follow(
    api: Api,
    selector: str,
    version: str,
    present: dict[str, ApiObject],
    done: Callable[[Pods], bool],
    deadline: float,
) -> bool:
    """Watches, one after another, each from where the last one ended."""
    while (left := deadline - time.monotonic()) > 0:
        try:
            for kind, pod in api.watch_pods(selector, version, max(1, int(left))):
                version = str(pod["metadata"].get("resourceVersion") or version)
                name = name_of(pod)
                if kind == "DELETED":
                    present.pop(name, None)
                elif kind != "BOOKMARK":
                    present[name] = pod
                if done(present):
                    return True
        except Gone:
            raise
        except UnavailableError as error:
            if http_status(error) is not None:  # it answered: a list may tell more
                raise
        time.sleep(min(_AGAIN_S, max(0.0, deadline - time.monotonic())))
    return False
