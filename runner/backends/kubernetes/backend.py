"""The Kubernetes backend: Jobs made, two questions a round for all of them, ended so that reports survive."""

from __future__ import annotations

import base64
import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from profrun.errors import InputError, ProfrunError, UnavailableError, UsageError
from profrun.runner.backends.base import TERMINAL, Handle, Request, Status
from profrun.runner.backends.cluster import margin_s, settle, site_settings
from profrun.runner.backends.environ import secret_env
from profrun.runner.backends.kubernetes import place
from profrun.runner.backends.kubernetes.api import Api
from profrun.runner.backends.kubernetes.ending import end
from profrun.runner.backends.kubernetes.logs import last_words, pod_lines
from profrun.runner.backends.kubernetes.manifest import (
    RUN_LABEL,
    Bundle,
    image_of,
    job_name,
    manifests,
    run_label,
    to_yaml,
)
from profrun.runner.backends.kubernetes.refusals import forbidden_pod
from profrun.runner.backends.kubernetes.shapes import NOBODY, shapes, vendor
from profrun.runner.backends.kubernetes.states import (
    Seen,
    again,
    index_of,
    job_of,
    job_seen,
    newest,
    pod_seen,
    together,
)
from profrun.runner.backends.tail import follow as follow_logs
from profrun.runner.model import Plan, Trial
from profrun.runner.store.files import explained, make_dir, read_json, write_json, write_text
from profrun.runner.store.results import read_exit
from profrun.runner.store.runs import Run, created

_LAG_S = 15.0
"""How long ``exit.json`` may take to appear through a network filesystem after the pod has ended."""
_STUCK_S = 600.0
"""How long a pod may fail to get its image or Secret before its Job is given up."""


class KubernetesBackend:
    """Trials as indexes of Jobs.

    Args:
        connect: makes the connection to (context, namespace).
        fastest, slowest: bounds of the time between two questions, seconds; it doubles while nothing changes.
    """

    name = "kubernetes"
    concurrent = True

    def __init__(
        self,
        connect: Callable[[str | None, str | None], Api] = Api,
        *,
        fastest: float = 2.0,
        slowest: float = 30.0,
        lag_s: float = _LAG_S,
        stuck_s: float = _STUCK_S,
    ) -> None:
        self._connect = connect
        self._apis: dict[tuple[str | None, str | None], Api] = {}
        self.poll_s = fastest
        self._fastest, self._slowest, self._lag, self._patience = fastest, slowest, lag_s, stuck_s
        self._last: object = None
        self._since: dict[tuple[str, str], float] = {}  # (trial, what) -> monotonic time since when
        self._given_up: dict[str, Status] = {}  # Job -> why none of its pods will ever start

    def pin(self, plan: Plan) -> Plan:
        """Cluster profiles become part of the job, and ``auto`` the image it stands for, where it is one."""
        plan = settle(plan)
        if plan.job.image == "none" or plan.job.cluster.get("sites"):
            return plan
        whose = vendor(plan, site_settings(plan.job, None))
        return replace(plan, job=replace(plan.job, image=image_of(plan.job, whose)))

    def adapt(self, plan: Plan, trial: Trial, run: Path, command: Mapping[str, Any]) -> dict[str, Any]:
        """Paths as the pod sees them, and whose GPUs it gets."""
        plan = settle(plan)
        settings = site_settings(plan.job, trial.site)
        told = dict(command)
        told["vendor"] = vendor(plan, settings)
        told["cwd"] = place.workdir(str(told["cwd"]), plan.job, settings, run)
        told["image"] = {"reference": image_of(plan.job, told["vendor"]), "digest": None}
        return told

    def render(self, plan: Plan, trials: Sequence[Trial], run: Path) -> Sequence[Request]:
        """One request a Job; without the values of secrets."""
        plan, cwd = settle(plan), _submitted_from(run)
        return [
            self._request(plan, manifests(plan, shape, run, cwd, number=number))
            for number, shape in enumerate(shapes(plan, trials))
        ]

    def _request(self, plan: Plan, bundle: Bundle) -> Request:
        body = {
            "objects": bundle.objects,
            "secret": bundle.secret,
            "trials": [trial.id for trial in bundle.trials],
        }
        return Request(to_yaml(bundle, plan.job.secrets), body)

    def submit(self, plan: Plan, trials: Sequence[Trial], run: Path) -> Mapping[str, Handle]:
        """Make the Jobs.

        Raises:
            UsageError: the cluster block is wrong, or the run folder is not in the claim.
            UnavailableError: the API server refuses, with its reason; what was made before is deleted.
        """
        plan, cwd = settle(plan), _submitted_from(run)
        secret = secret_env(plan.job, cwd)
        make_dir(run / "kubernetes")
        taken = len(list((run / "kubernetes").glob("job*.json")))
        bundles = [
            (shape, manifests(plan, shape, run, cwd, number=taken + number))
            for number, shape in enumerate(shapes(plan, trials))
        ]
        for shape, bundle in bundles:
            self._check_claim(self._api(shape.settings), str(shape.settings["pvc"]))
            _give_away(run, bundle.trials)
        handles: dict[str, Handle] = {}
        made: list[tuple[Api, str]] = []
        try:
            for number, (shape, bundle) in enumerate(bundles, start=taken):
                api = self._api(shape.settings)
                made.append((api, bundle.name))
                handles |= self._make(api, plan, bundle, run, number, secret, shape.settings)
        except ProfrunError:
            for api, name in made:
                with contextlib.suppress(ProfrunError):
                    api.delete_job(name)
            raise
        self.poll_s = self._fastest
        return handles

    def _make(
        self,
        api: Api,
        plan: Plan,
        bundle: Bundle,
        run: Path,
        number: int,
        secret: Mapping[str, str],
        settings: Mapping[str, Any],
    ) -> dict[str, Handle]:
        """The Job, then what it owns: whatever happens in between, deleting the Job deletes all of it."""
        folder = run / "kubernetes"
        data = {
            "job": bundle.name,
            "context": settings.get("context"),
            "namespace": api.namespace,
            "nodes": plan.job.resources.nodes,
            "grace_s": margin_s(plan.job, bundle.trials),
        }
        # Known before the Job is made: should we be killed after it, it can be found.
        write_json(folder / f"job{number}.json", {"trials": [t.id for t in bundle.trials], **data})
        write_text(folder / f"job{number}.yaml", to_yaml(bundle, plan.job.secrets))
        job = api.create(bundle.job)
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": bundle.name,
            "uid": job["metadata"]["uid"],
        }
        for manifest in (bundle.service, _secret(bundle, secret)):
            if manifest is not None:
                api.create({**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}})
        return {
            trial.id: Handle(self.name, {**data, "index": index}) for index, trial in enumerate(bundle.trials)
        }

    def _check_claim(self, api: Api, name: str) -> None:
        """A claim that is not there would leave the pods waiting without end."""
        try:
            api.claim(name)
        except ProfrunError as error:
            if getattr(error, "status", None) == 403:  # not everybody may look at claims
                return
            if getattr(error, "status", None) == 404:
                raise UsageError(
                    f"namespace {api.namespace} has no persistent volume claim {name!r}",
                    fix="check cluster.pvc and cluster.namespace",
                ) from None
            raise

    def status(self, handles: Mapping[str, Handle], run: Path) -> Mapping[str, Status]:
        """State of all, with one list of Jobs and one of pods for each namespace.

        Raises:
            UnavailableError: the API server cannot be reached.
        """
        found: dict[str, Status] = {}
        known = {trial: self._handle(trial, handle, run) for trial, handle in handles.items()}
        rest = {}
        for trial, handle in known.items():
            document = read_exit(run / "trials" / trial)
            if document is not None:
                found[trial] = Status(document["state"], document.get("reason"), document.get("exit_code"))
            elif handle is None:
                found[trial] = Status("lost", "it was never queued")
            else:
                rest[trial] = handle
        versions = []
        for api, members in self._by_api(rest):
            jobs = {job["metadata"]["name"]: job for job in api.jobs(_selector(run))}
            pods, _ = api.pods(_selector(run))
            versions += [pod["metadata"].get("resourceVersion") for pod in pods]
            found |= self._round(api, members, jobs, pods, run)
        self._back_off(versions)
        return {trial: found[trial] for trial in handles}

    def _round(
        self,
        api: Api,
        members: Mapping[str, Handle],
        jobs: Mapping[str, Mapping[str, Any]],
        pods: Sequence[Mapping[str, Any]],
        run: Path,
    ) -> dict[str, Status]:
        last = newest(pods)
        seen, without = {}, []
        for trial, handle in members.items():
            name, indexes = str(handle.data["job"]), _indexes(handle)
            seen[trial] = together([_seen(last.get((name, i)), jobs.get(name), i, handle) for i in indexes])
            if seen[trial].status == Status("queued") and not any((name, i) in last for i in indexes):
                without.append(trial)
        self._look_at_refusals(api, {trial: members[trial] for trial in without}, jobs, seen)
        found = {}
        for trial, handle in members.items():
            podded = last.get((str(handle.data["job"]), _indexes(handle)[0]))
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
            if getattr(error, "status", None) != 403:
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
        run: Path,
    ) -> Status:
        """What a look means once waiting for files, images and Secrets is taken into account."""
        job, folder = str(handle.data["job"]), run / "trials" / trial
        if job in self._given_up and not seen.ended and seen.status.state == "queued":
            return self._given_up[job]
        if not seen.ended:
            self._since.pop((trial, "ended"), None)
            if seen.hopeless or (seen.stuck and self._waited(trial, "stuck") > self._patience):
                self._given_up[job] = Status("failed", seen.status.reason)
                api.delete_job(job)
                return self._given_up[job]
            return _phase(seen.status, folder)
        if job in self._given_up:
            return self._given_up[job]
        if (folder / "cancel").exists() and seen.status.state == "lost":
            return Status("cancelled", "ended before the wrapper wrote how", seen.status.exit_code)
        if self._waited(trial, "ended") < self._lag:
            return Status("finalising", "the pod has ended; waiting for exit.json")
        if pod is None or seen.status.state == "finished":
            return seen.status
        words = last_words(api, str(pod["metadata"]["name"]))
        reason = f"{seen.status.reason}; the last words: {words}" if words else seen.status.reason
        return replace(seen.status, reason=reason)

    def _waited(self, trial: str, what: str) -> float:
        """Seconds since this was first asked."""
        return time.monotonic() - self._since.setdefault((trial, what), time.monotonic())

    def _back_off(self, versions: Sequence[object]) -> None:
        """Ask less and less often while nothing changes."""
        now = tuple(versions)
        self.poll_s = min(self.poll_s * 2, self._slowest) if now == self._last else self._fastest
        self._last = now

    def _handle(self, trial: str, handle: Handle, run: Path) -> Handle | None:
        """The handle, found again when the driver was killed before it wrote it down."""
        if handle.data.get("job"):
            return handle
        for file in sorted((run / "kubernetes").glob("job*.json"), key=_number, reverse=True):
            with contextlib.suppress(InputError):
                data = read_json(file) or {}
                if trial in data.get("trials", ()):
                    index = data["trials"].index(trial)
                    return Handle(
                        self.name,
                        {key: value for key, value in data.items() if key != "trials"} | {"index": index},
                    )
        return None

    def logs(self, handle: Handle, run: Path, trial_id: str, *, follow: bool) -> Iterator[str]:
        """Lines of the wrapper's logs in the run folder; before there are any, the pod's own."""
        known = self._handle(trial_id, handle, run)
        folder = run / "trials" / trial_id

        def ended() -> bool:
            with contextlib.suppress(UnavailableError):
                return self.status({trial_id: handle}, run)[trial_id].state in TERMINAL
            return False

        if known is not None and not any(folder.glob("std*.log")):
            yield from pod_lines(self._api(known.data), _selector(run), known, follow=follow, ended=ended)
            return
        yield from follow_logs(folder, follow=follow, ended=ended, pause_s=0.5)

    def cancel(self, handles: Mapping[str, Handle], run: Path, *, grace: float) -> None:
        """Tell the wrappers by a file and SIGTERM; SIGKILL only after the grace and the time for reports."""
        self.poll_s = self._fastest
        found = {trial: self._handle(trial, handle, run) for trial, handle in handles.items()}
        for trial in found:
            folder = run / "trials" / trial
            if not (folder / "exit.json").exists():
                write_json(folder / "cancel", {"grace_s": grace, "requested_ns": time.time_ns()})
        known = {trial: handle for trial, handle in found.items() if handle is not None}
        for api, members in self._by_api(known):
            end(api, _selector(run), members, _whole(members, run), grace=grace)

    def _by_api(self, handles: Mapping[str, Handle]) -> list[tuple[Api, dict[str, Handle]]]:
        grouped: dict[tuple[object, object], dict[str, Handle]] = {}
        for trial, handle in handles.items():
            key = (handle.data.get("context"), handle.data.get("namespace"))
            grouped.setdefault(key, {})[trial] = handle
        return [(self._api(next(iter(members.values())).data), members) for members in grouped.values()]

    def _api(self, settings: Mapping[str, Any]) -> Api:
        key = (settings.get("context"), settings.get("namespace"))
        if key not in self._apis:
            self._apis[key] = self._connect(*key)
        return self._apis[key]


def _seen(pod: Mapping[str, Any] | None, job: Mapping[str, Any] | None, index: int, handle: Handle) -> Seen:
    """One index: its pod's word, else its Job's."""
    if pod is None:
        return job_seen(job, [index])
    if again(pod, job, one_node=int(handle.data["nodes"]) == 1):
        return Seen(Status("queued", f"{pod_seen(pod).status.reason}; Kubernetes starts it again"))
    return pod_seen(pod)


def _indexes(handle: Handle) -> list[int]:
    """Indexes of a trial's pods in its Job: its nodes, or its place among the Job's trials."""
    nodes = int(handle.data["nodes"])
    return list(range(nodes)) if nodes > 1 else [int(handle.data["index"])]


def _whole(members: Mapping[str, Handle], run: Path) -> set[str]:
    """Jobs of which no other trial is still to come: those may be deleted."""
    wanted = {str(handle.data["job"]) for handle in members.values()}
    found = set(wanted)
    for file in (run / "kubernetes").glob("job*.json"):
        with contextlib.suppress(InputError):
            data = read_json(file) or {}
            others = [trial for trial in data.get("trials", ()) if trial not in members]
            if any(read_exit(run / "trials" / trial) is None for trial in others):
                found.discard(str(data.get("job")))
    return found


def _secret(bundle: Bundle, values: Mapping[str, str]) -> dict[str, Any] | None:
    """The only place where values of secrets are put into an object."""
    if bundle.secret is None:
        return None
    marks = {key: value for key, value in bundle.job["metadata"].items() if key != "name"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": bundle.secret, **marks},
        "type": "Opaque",
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in values.items()},
    }


def _give_away(run: Path, trials: Sequence[Trial]) -> None:
    """Root's pods do not run as root: the trial's folder becomes that user's.

    Raises:
        UnavailableError: it cannot, e.g. where the volume maps root to nobody.
    """
    if os.getuid():
        return
    for trial in trials:
        folder = run / "trials" / trial.id
        with explained(folder):
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def _selector(run: Path) -> str:
    return f"{RUN_LABEL}={run_label(run)}"


def _number(file: Path) -> int:
    return int(file.stem.removeprefix("job") or 0)


def _phase(status: Status, folder: Path) -> Status:
    """A running trial that writes its report is finalising."""
    if status.state != "running":
        return status
    phase = None
    with contextlib.suppress(InputError):
        phase = (read_json(folder / "phase") or {}).get("phase")
    return Status("finalising") if phase in ("finalise", "export") else status


def _submitted_from(run: Path) -> Path:
    """The folder the job was submitted from: the run's, or this process's for a dry run."""
    try:
        return Path(str(created(Run(run))["cwd"]))
    except (ProfrunError, KeyError, OSError):
        return Path.cwd()


__all__ = ["KubernetesBackend", "index_of", "job_name", "job_of"]
