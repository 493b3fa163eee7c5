"""What one look at the cluster means for each trial, once waiting is taken into account."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from profrun.backends.cluster import phase_of
from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.logs import last_words
from profrun.backends.kubernetes.refusals import forbidden_pod, http_status
from profrun.backends.kubernetes.states import Seen, again, job_seen, newest, pod_seen, together
from profrun.contract.states import Status
from profrun.errors import ProfrunError
from profrun.store.events import Handle
from profrun.store.runs import Run


class Looks:
    """Remembers since when a trial has waited for its ``exit.json``, its image or its Secret.

    Args:
        lag_s: how long ``exit.json`` may take to appear through a network filesystem after the pod has ended.
        stuck_s: how long a pod may fail to get its image or Secret before its Job is given up.
    """

    def __init__(self, *, lag_s: float, stuck_s: float) -> None:
        self._lag_s, self._stuck_s = lag_s, stuck_s
        self._since: dict[tuple[str, str], float] = {}  # (trial, what) -> monotonic time since when
        self._given_up: dict[str, Status] = {}  # Job -> why none of its pods will ever start

    def look(
        self,
        api: Api,
        members: Mapping[str, Handle],
        jobs: Mapping[str, Mapping[str, Any]],
        pods: Sequence[Mapping[str, Any]],
        run: Run,
    ) -> dict[str, Status]:
        """State of these trials, all of one API's namespace, none of which has an ``exit.json``.

        Args:
            jobs: by name.
        """
        last = newest(pods)
        seen, without = {}, []
        for trial, handle in members.items():
            name, mine = str(handle.data["job"]), indexes(handle)
            seen[trial] = together([_seen(last.get((name, i)), jobs.get(name), i, handle) for i in mine])
            if seen[trial].status == Status("queued") and not any((name, i) in last for i in mine):
                without.append(trial)
        self._look_at_refusals(api, {trial: members[trial] for trial in without}, jobs, seen)
        found = {}
        for trial, handle in members.items():
            podded = last.get((str(handle.data["job"]), indexes(handle)[0]))
            found[trial] = self._settled(api, trial, handle, seen[trial], podded, run)
        return found

    def _look_at_refusals(
        self,
        api: Api,
        waiting: Mapping[str, Handle],
        jobs: Mapping[str, Mapping[str, Any]],
        seen: dict[str, Seen],
    ) -> None:
        """Pod Security and quotas refuse pods, not Jobs: only the Job's events say so."""
        idle = {
            str(handle.data["job"])
            for handle in waiting.values()
            if not (jobs[str(handle.data["job"])].get("status") or {}).get("active")
        }
        if not idle:
            return
        try:
            told = api.refusals()
        except ProfrunError as error:
            if http_status(error) != 403:
                raise
            return
        for trial, handle in waiting.items():
            message = told.get(str(handle.data["job"])) if handle.data["job"] in idle else None
            if message:
                never = forbidden_pod(message)
                reason = never or f"the pod cannot be made yet: {' '.join(message.split())}"
                seen[trial] = Seen(Status("queued", reason), hopeless=never is not None)

    def _settled(
        self,
        api: Api,
        trial: str,
        handle: Handle,
        seen: Seen,
        pod: Mapping[str, Any] | None,
        run: Run,
    ) -> Status:
        """What a look means once waiting for files, images and Secrets is taken into account."""
        job, paths = str(handle.data["job"]), run.trial(trial)
        if job in self._given_up and not seen.ended and seen.status.state == "queued":
            return self._given_up[job]
        if not seen.ended:
            self._since.pop((trial, "ended"), None)
            if seen.hopeless or (seen.stuck and self._waited(trial, "stuck") >= self._stuck_s):
                self._given_up[job] = Status("failed", seen.status.reason)
                api.delete_job(job)
                return self._given_up[job]
            return phase_of(seen.status, paths)
        if job in self._given_up:
            return self._given_up[job]
        cancelled = paths.cancel.exists() and seen.status.state == "lost"
        if cancelled and not any(paths.folder.glob("pod*")):
            return Status("cancelled", "ended before it was started")
        if self._waited(trial, "ended") < self._lag_s:
            return Status("finalising", "the pod has ended; waiting for exit.json")
        if cancelled:
            return Status("cancelled", "ended before the wrapper wrote how", seen.status.exit_code)
        if pod is None or seen.status.state == "finished":
            return seen.status
        words = last_words(api, str(pod["metadata"]["name"]))
        reason = f"{seen.status.reason}; the last words: {words}" if words else seen.status.reason
        return replace(seen.status, reason=reason)

    def _waited(self, trial: str, what: str) -> float:
        """Seconds since this was first asked."""
        now = time.monotonic()
        return now - self._since.setdefault((trial, what), now)


def _seen(pod: Mapping[str, Any] | None, job: Mapping[str, Any] | None, index: int, handle: Handle) -> Seen:
    """One index: its pod's word, else its Job's."""
    if pod is None:
        return job_seen(job, [index])
    seen = pod_seen(pod)
    if seen.ended and again(pod, job, one_node=int(handle.data["nodes"]) == 1):
        return Seen(Status("queued", f"{seen.status.reason}; Kubernetes starts it again"))
    return seen


def nothing_follows(
    handle: Handle, jobs: Mapping[str, Mapping[str, Any]], pods: Sequence[Mapping[str, Any]]
) -> bool:
    """Have all pods of this trial ended, and will Kubernetes make no other?"""
    name, last = str(handle.data["job"]), newest(pods)
    return together([_seen(last.get((name, i)), jobs.get(name), i, handle) for i in indexes(handle)]).ended


def indexes(handle: Handle) -> list[int]:
    """Indexes of a trial's pods in its Job: its nodes, or its place among the Job's trials."""
    nodes = int(handle.data["nodes"])
    return list(range(nodes)) if nodes > 1 else [int(handle.data["index"])]
