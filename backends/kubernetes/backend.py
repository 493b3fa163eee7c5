"""The Kubernetes backend: Jobs made, two questions a round for all of them, ended so that reports survive."""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from profrun.backends.base import PreparedPlan, Request
from profrun.backends.cluster import by_site, settle, site_settings
from profrun.backends.environ import secret_env
from profrun.backends.kubernetes import pod_paths as place
from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.ending import end
from profrun.backends.kubernetes.job_polling import Looks, indexes, nothing_follows
from profrun.backends.kubernetes.logs import pod_lines
from profrun.backends.kubernetes.manifest import (
    RUN_LABEL,
    Bundle,
    image_of,
    manifests,
    run_label,
    to_yaml,
)
from profrun.backends.kubernetes.network import not_allowed
from profrun.backends.kubernetes.refusals import http_status
from profrun.backends.kubernetes.resource_groups import NOBODY, shapes, vendor
from profrun.backends.kubernetes.states import newest
from profrun.backends.mounts import need_sources
from profrun.backends.profilers import margin_s
from profrun.backends.tail import follow as follow_logs
from profrun.contract.command import Command, ImageUsed
from profrun.contract.states import TERMINAL, Status
from profrun.errors import InputError, ProfrunError, UnavailableError, UsageError
from profrun.plans.model import Plan, Trial
from profrun.store.documents import interrupted, read_exit, request_cancel, status_of
from profrun.store.events import Handle
from profrun.store.files import explained, make_dir, read_json, write_json, write_text
from profrun.store.runs import Run

_LAG_S, _STUCK_S = 15.0, 600.0


class KubernetesBackend:
    """Trials as indexes of Jobs.

    Args:
        connect: makes the connection to (context, namespace).
        fastest, slowest: bounds of the time between two questions, seconds; it doubles while nothing changes.
        lag_s, stuck_s: as ``Looks`` has them.
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
        self._fastest, self._slowest = fastest, slowest
        self._last: object = None
        self._looks = Looks(lag_s=lag_s, stuck_s=stuck_s)

    def prepare(
        self, plan: Plan, trials: Sequence[Trial], run: Run, cwd: Path, *, ask: bool = True
    ) -> PreparedPlan:
        """Cluster profiles become part of the job, and ``auto`` the image it stands for, where it is one.
        Manifests that cannot be made and folders that the pods will not see are refused.

        Raises:
            UsageError: the cluster block is wrong, a folder is not in the claim, or the claim is not there.
            UnavailableError: a mount's source is not in the volume (Kubernetes would make an empty folder),
                the client is not installed, or the cluster cannot be used.
        """
        plan = settle(plan)
        for shape in shapes(plan, trials):
            manifests(plan, shape, run.path, cwd)
            place.workdir(str(cwd / (plan.job.workdir or "")), plan.job, shape.settings, run.path)
        need_sources(place.mounts_of(plan.job, cwd))
        if ask:
            for site in by_site(trials):
                settings = site_settings(plan.job, site)
                self._check_claim(self._api(settings), place.claim(settings))
        if plan.job.image != "none" and not plan.job.cluster.sites:
            whose = vendor(plan, site_settings(plan.job, None))
            plan = replace(plan, job=replace(plan.job, image=image_of(plan.job, whose)))
        return PreparedPlan(plan, cwd)

    def adapt(self, prepared: PreparedPlan, trial: Trial, run: Run, command: Command) -> Command:
        """Paths as the pod sees them, and whose GPUs it gets."""
        plan = prepared.plan
        settings = site_settings(plan.job, trial.site)
        whose = vendor(plan, settings)
        return replace(
            command,
            vendor=whose,
            cwd=place.workdir(command.cwd, plan.job, settings, run.path),
            image=ImageUsed(image_of(plan.job, whose)),
        )

    def render(self, prepared: PreparedPlan, trials: Sequence[Trial], run: Run) -> Sequence[Request]:
        """One request for each Job; without the values of secrets."""
        plan = prepared.plan
        return [
            _request(plan, manifests(plan, shape, run.path, prepared.cwd, number=number))
            for number, shape in enumerate(shapes(plan, trials))
        ]

    def submit(self, prepared: PreparedPlan, trials: Sequence[Trial], run: Run) -> Mapping[str, Handle]:
        """Make the Jobs.

        Raises:
            UsageError: the cluster block is wrong, or the run folder is not in the claim.
            UnavailableError: the API server refuses, with its reason; what was made before is deleted.
        """
        plan = prepared.plan
        secret = secret_env(plan.job, prepared.cwd)
        make_dir(run.path / "kubernetes")
        taken = len(list((run.path / "kubernetes").glob("job*.json")))
        bundles = [
            (shape, manifests(plan, shape, run.path, prepared.cwd, number=taken + number))
            for number, shape in enumerate(shapes(plan, trials))
        ]
        for _, bundle in bundles:
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
        run: Run,
        number: int,
        secret: Mapping[str, str],
        settings: Mapping[str, Any],
    ) -> dict[str, Handle]:
        """The Job, then what it owns: whatever happens in between, deleting the Job deletes all of it."""
        folder = run.path / "kubernetes"
        data = {
            "job": bundle.name,
            "context": settings.get("context"),
            "namespace": api.namespace,
            "nodes": plan.job.resources.nodes,
            "room_s": margin_s(plan, bundle.trials) - plan.job.resources.grace,
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
        for manifest in (bundle.policy, bundle.service, _secret(bundle, secret)):
            if manifest is None:
                continue
            try:
                api.create({**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}})
            except ProfrunError as error:
                if manifest is bundle.policy:
                    raise not_allowed(error) from None
                raise
        return {
            trial.id: Handle(self.name, {**data, "index": index}) for index, trial in enumerate(bundle.trials)
        }

    def _check_claim(self, api: Api, name: str) -> None:
        """A claim that is not there would leave the pods waiting without end."""
        try:
            api.claim(name)
        except ProfrunError as error:
            if http_status(error) == 403:  # not everybody may look at claims
                return
            if http_status(error) == 404:
                raise UsageError(
                    f"namespace {api.namespace} has no persistent volume claim {name!r}",
                    fix="check cluster.pvc and cluster.namespace",
                ) from None
            raise

    def status(self, handles: Mapping[str, Handle], run: Run) -> Mapping[str, Status]:
        """State of all, with one list of Jobs and one of pods for each namespace.

        Raises:
            UnavailableError: the API server cannot be reached.
        """
        found: dict[str, Status] = {}
        stopped: dict[str, Status] = {}  # by what took the pod away: it may be started again
        known = {trial: self._handle(trial, handle, run) for trial, handle in handles.items()}
        rest = {}
        for trial, handle in known.items():
            ended = read_exit(run.trial(trial))
            if ended is not None:
                found[trial] = status_of(ended)
                if handle is not None and interrupted(ended):
                    stopped[trial], rest[trial] = found.pop(trial), handle
            elif handle is None:
                found[trial] = Status("lost", "it was never queued")
            else:
                rest[trial] = handle
        versions = []
        for api, members in self._by_api(rest):
            jobs = {job["metadata"]["name"]: job for job in api.jobs(_selector(run))}
            pods, _ = api.pods(_selector(run))
            versions += [pod["metadata"].get("resourceVersion") for pod in pods]
            over = {
                trial: stopped[trial]
                for trial, handle in members.items()
                if trial in stopped and nothing_follows(handle, jobs, pods)
            }
            going = {trial: handle for trial, handle in members.items() if trial not in over}
            found |= over | self._looks.look(api, going, jobs, pods, run)
            _note_images(members, pods, run)
        self._back_off(versions)
        return {trial: found[trial] for trial in handles}

    def _back_off(self, versions: Sequence[object]) -> None:
        """Ask less and less often while nothing changes."""
        now = tuple(versions)
        self.poll_s = min(self.poll_s * 2, self._slowest) if now == self._last else self._fastest
        self._last = now

    def _handle(self, trial: str, handle: Handle, run: Run) -> Handle | None:
        """The handle, found again when the driver was killed before it wrote it down."""
        if handle.data.get("job"):
            return handle
        for file in sorted((run.path / "kubernetes").glob("job*.json"), key=_number, reverse=True):
            with contextlib.suppress(InputError):
                data = read_json(file) or {}
                if trial in data.get("trials", ()):
                    index = data["trials"].index(trial)
                    del data["trials"]
                    return Handle(self.name, {**data, "index": index})
        return None

    def logs(self, handle: Handle, run: Run, trial_id: str, *, follow: bool) -> Iterator[str]:
        """Lines of the wrapper's logs in the run folder; before there are any, the pod's own."""
        known = self._handle(trial_id, handle, run)
        paths = run.trial(trial_id)

        def ended() -> bool:
            with contextlib.suppress(UnavailableError):
                return self.status({trial_id: handle}, run)[trial_id].state in TERMINAL
            return False

        if known is not None and not any(paths.folder.glob("std*.log")):
            yield from pod_lines(self._api(known.data), _selector(run), known, follow=follow, ended=ended)
            return
        yield from follow_logs(paths, follow=follow, ended=ended, pause_s=0.5)

    def cancel(self, handles: Mapping[str, Handle], run: Run, *, grace: float) -> None:
        """Tell the wrappers by a file and SIGTERM; SIGKILL only after the grace and the time for reports."""
        self.poll_s = self._fastest
        found = {trial: self._handle(trial, handle, run) for trial, handle in handles.items()}
        for trial in found:
            request_cancel(run.trial(trial), grace)
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


def _whole(members: Mapping[str, Handle], run: Run) -> set[str]:
    """Jobs of which no other trial is still to come: those may be deleted."""
    wanted = {str(handle.data["job"]) for handle in members.values()}
    found = set(wanted)
    for file in (run.path / "kubernetes").glob("job*.json"):
        with contextlib.suppress(InputError):
            data = read_json(file) or {}
            others = [trial for trial in data.get("trials", ()) if trial not in members]
            if any(read_exit(run.trial(trial)) is None for trial in others):
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


def _give_away(run: Run, trials: Sequence[Trial]) -> None:
    """Root's pods do not run as root: the trial's folder becomes that user's.

    Raises:
        UnavailableError: it cannot, e.g. where the volume maps root to nobody.
    """
    if os.getuid():
        return
    for trial in trials:
        folder = run.trial(trial.id).folder
        with explained(folder):
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def _note_images(members: Mapping[str, Handle], pods: Sequence[Mapping[str, Any]], run: Run) -> None:
    """What image each trial really ran, by digest, as its node says: ``kubernetes/images.json``."""
    told = {}
    last = newest(pods)
    for trial, handle in members.items():
        pod = last.get((str(handle.data["job"]), indexes(handle)[0])) or {}
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            if container.get("imageID"):
                told[trial] = str(container["imageID"])
    if not told:
        return
    file = run.path / "kubernetes" / "images.json"
    kept: dict[str, Any] = {}
    with contextlib.suppress(InputError):
        kept = read_json(file) or {}
    if {**kept, **told} != kept:
        write_json(file, {**kept, **told})


def _selector(run: Run) -> str:
    return f"{RUN_LABEL}={run_label(run.path)}"


def _number(file: Path) -> int:
    return int(file.stem.removeprefix("job") or 0)


def _request(plan: Plan, bundle: Bundle) -> Request:
    body = {
        "objects": bundle.objects,
        "secret": bundle.secret,
        "trials": [trial.id for trial in bundle.trials],
    }
    return Request(to_yaml(bundle, plan.job.secrets), body)
