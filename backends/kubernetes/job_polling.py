"""From what one question to the cluster found to the state of each trial: ``JobPolling`` counts how long a
trial has waited for its ``exit.json``, its image or its Secret."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from profrun.backends.cluster import phase_of
from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.logs import last_line_of_log
from profrun.backends.kubernetes.objects import ApiObject, PodHandle, name_of, status_part
from profrun.backends.kubernetes.refusals import awaited_pod, forbidden_pod, http_status
from profrun.backends.kubernetes.states import (
    Observed,
    combined,
    from_job,
    from_pod,
    is_restarted,
    newest_pods,
)
from profrun.contract.exit import Exit
from profrun.contract.states import Status
from profrun.errors import ProfrunError
from profrun.in_job.rank_answers import RANK_SILENT, rank_list
from profrun.store.documents import status_of
from profrun.store.runs import Run


class JobPolling:
    """Remembers since when a trial has waited, and which Jobs were given up.

    Args:
        lag_s: how long ``exit.json`` may take to appear through a network filesystem after the pod has ended.
        stuck_s: how long a pod may fail to get its image or Secret before its Job is given up.
    """

    def __init__(self, *, lag_s: float, stuck_s: float) -> None:
        self._lag_s, self._stuck_s = lag_s, stuck_s
        self._since: dict[tuple[str, str], float] = {}  # (trial, what) -> monotonic time since when
        self._given_up: dict[str, Status] = {}  # Job -> why none of its pods will ever start

    def states(
        self,
        api: Api,
        members: Mapping[str, PodHandle],
        jobs: Mapping[str, ApiObject],
        pods: Sequence[ApiObject],
        run: Run,
    ) -> dict[str, Status]:
        """State of these trials, all of one API's namespace, none of which has an ``exit.json``.

        Args:
            jobs: by name.
        """
        last = newest_pods(pods)
        observed = {trial: _of_trial(handle, jobs, last) for trial, handle in members.items()}
        waiting = {
            trial: handle
            for trial, handle in members.items()
            if observed[trial].status == Status("queued")
            and not any((handle.job, index) in last for index in handle.indexes)
        }
        observed |= self._refused(api, waiting, jobs)
        found = {}
        for trial, handle in members.items():
            pod = last.get((handle.job, handle.indexes[0]))
            found[trial] = self._settled(api, trial, handle.job, observed[trial], pod, run)
        return found

    def _refused(
        self, api: Api, waiting: Mapping[str, PodHandle], jobs: Mapping[str, ApiObject]
    ) -> dict[str, Observed]:
        """Trials whose pods were refused. Pod Security and quotas refuse pods and not Jobs: only the Job's
        events say so."""
        idle = {handle.job for handle in waiting.values() if not status_part(jobs[handle.job]).get("active")}
        if not idle:
            return {}
        try:
            told = api.refusals()
        except ProfrunError as error:
            if http_status(error) != 403:
                raise
            return {}
        found = {}
        for trial, handle in waiting.items():
            message = told.get(handle.job) if handle.job in idle else None
            if message:
                never = forbidden_pod(message)
                reason = never or awaited_pod(message)
                found[trial] = Observed(Status("queued", reason), hopeless=never is not None)
        return found

    def _settled(
        self, api: Api, trial: str, job: str, observed: Observed, pod: ApiObject | None, run: Run
    ) -> Status:
        """The state once waiting for files, images and Secrets is taken into account."""
        paths = run.trial(trial)
        if job in self._given_up and (observed.ended or observed.status.state == "queued"):
            return self._given_up[job]
        if not observed.ended:
            self._since.pop((trial, "ended"), None)
            if not observed.stuck:
                self._since.pop((trial, "stuck"), None)
            if observed.hopeless or (observed.stuck and self._waited(trial, "stuck") >= self._stuck_s):
                self._given_up[job] = Status("failed", observed.status.reason)
                api.delete_job(job)
                return self._given_up[job]
            return phase_of(observed.status, paths)
        cancelled = paths.cancel.exists() and observed.status.state == "lost"
        if cancelled and not any(paths.folder.glob("pod*")):
            return Status("cancelled", "ended before it was started")
        if self._waited(trial, "ended") < self._lag_s:
            return Status("finalising", "the pod has ended; waiting for exit.json")
        if cancelled:
            return Status("cancelled", "ended before the wrapper wrote how", observed.status.exit_code)
        if pod is None or observed.status.state == "finished":
            return observed.status
        line = last_line_of_log(api, name_of(pod))
        reason = f"{observed.status.reason}; the last line of its log: {line}" if line else None
        return replace(observed.status, reason=reason or observed.status.reason)

    def silent(
        self,
        api: Api,
        trial: str,
        handle: PodHandle,
        ended: Exit,
        jobs: Mapping[str, ApiObject],
        pods: Sequence[ApiObject],
    ) -> Status | None:
        """How a trial ended whose ``exit.json`` lacks some ranks, by what became of their pods; None while
        these may still say it themselves. The Job of a node that does not answer is deleted: what runs there
        may come back.

        Args:
            ended: the trial's ``exit.json``.
        """
        last = newest_pods(pods)
        seen = [
            _of_index(last.get((handle.job, index)), jobs.get(handle.job), index, handle)
            for index in handle.indexes
            if index in ended.silent
        ]
        if not all(each.ended or each.unreachable for each in seen):
            self._since.pop((trial, "silent"), None)
            return None
        if self._waited(trial, "silent") < self._lag_s:
            return None
        if any(each.unreachable for each in seen):
            api.delete_job(handle.job)
        if ended.state == "cancelled" or not seen:
            return status_of(ended)
        worst = next((each.status for each in seen if each.status.reason), Status("lost"))
        reason = f"{rank_list(ended.silent)}: {worst.reason or 'its pod is gone'}"
        return Status("failed", reason, worst.exit_code, RANK_SILENT)

    def _waited(self, trial: str, what: str) -> float:
        """Seconds since this was first asked."""
        now = time.monotonic()
        return now - self._since.setdefault((trial, what), now)


def all_ended(handle: PodHandle, jobs: Mapping[str, ApiObject], pods: Sequence[ApiObject]) -> bool:
    """Have all pods of this trial ended, and will Kubernetes make no other?"""
    return _of_trial(handle, jobs, newest_pods(pods)).ended


def _of_trial(
    handle: PodHandle, jobs: Mapping[str, ApiObject], last: Mapping[tuple[str, int], ApiObject]
) -> Observed:
    """What the cluster says of a trial: each index by its newest pod, else by its Job."""
    job = jobs.get(handle.job)
    return combined(
        [_of_index(last.get((handle.job, index)), job, index, handle) for index in handle.indexes]
    )


def _of_index(pod: ApiObject | None, job: ApiObject | None, index: int, handle: PodHandle) -> Observed:
    if pod is None:
        return from_job(job, [index])
    observed = from_pod(pod)
    if observed.ended and is_restarted(pod, job, one_node=handle.nodes == 1):
        return Observed(Status("queued", f"{observed.status.reason}; Kubernetes starts it again"))
    return observed
