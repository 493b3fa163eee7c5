"""The Kubernetes backend: makes Jobs, asks two questions per round for all of them, and ends them so that
reports are kept."""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from profrun.backends.base import Lane, PreparedPlan, Request
from profrun.backends.cluster import by_site, settle
from profrun.backends.environ import secret_env
from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.checks import check_site
from profrun.backends.kubernetes.ending import end, wait_for_pods
from profrun.backends.kubernetes.job_files import (
    deletable_jobs,
    jobs_folder,
    jobs_that_said_all,
    keep,
    note_images,
    pod_handle,
)
from profrun.backends.kubernetes.job_polling import JobPolling, all_ended
from profrun.backends.kubernetes.logs import pod_lines
from profrun.backends.kubernetes.manifest import (
    RUN_LABEL,
    JobObjects,
    image_of,
    job_objects,
    run_label,
    to_yaml,
)
from profrun.backends.kubernetes.network import not_allowed
from profrun.backends.kubernetes.objects import ApiObject, Manifest, PodHandle, name_of
from profrun.backends.kubernetes.pod_paths import mounts_of, workdir
from profrun.backends.kubernetes.resource_groups import (
    NOBODY,
    ResourceGroup,
    lane_of,
    resource_groups,
    vendor,
)
from profrun.backends.kubernetes.same_nodes import choose_nodes, note_nodes, settled
from profrun.backends.mounts import need_sources
from profrun.backends.profilers import margin_s, patience_s
from profrun.backends.tail import has_ended, trial_lines
from profrun.contract.command import Command, ImageUsed
from profrun.contract.exit import Exit
from profrun.contract.states import Status
from profrun.errors import ProfrunError, UnavailableError
from profrun.plans.model import Plan, Trial
from profrun.store.documents import read_exit, request_cancel, status_of, unsettled
from profrun.store.events import Handle
from profrun.store.files import explained, make_dir
from profrun.store.runs import Run

_LAG_S, _STUCK_S = 15.0, 600.0


class KubernetesBackend:
    """Trials as indexes of Jobs.

    Args:
        connect: makes the connection to (context, namespace).
        fastest, slowest: bounds of the time between two questions, seconds; it doubles while nothing changes.
        lag_s, stuck_s: as ``JobPolling`` has them.
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
        self._placed: set[tuple[str, object]] = set()  # (pod, node) that are written down
        self._imaged: set[str] = set()  # trials that have ended, whose images were asked for
        self._polling = JobPolling(lag_s=lag_s, stuck_s=stuck_s)

    def lane(self, prepared: PreparedPlan, trial: Trial) -> Lane:
        """The trials of a site wait for one another, by its Job where they share one."""
        return lane_of(prepared.plan, trial)

    def prepare(
        self, plan: Plan, trials: Sequence[Trial], run: Run, cwd: Path, *, ask: bool = True
    ) -> PreparedPlan:
        """Cluster profiles become part of the job, and ``auto`` the image it stands for, where it is one.
        Manifests that cannot be made and folders that the pods will not see are refused.

        Raises:
            UsageError: the cluster block is wrong, a folder is not in the claim, or the claim or the queue is
                not there.
            UnavailableError: a mount's source is not in the volume (Kubernetes would make an empty folder),
                the client is not installed, or the cluster cannot be used.
        """
        plan = settled(settle(plan))
        for group in resource_groups(plan, trials):
            job_objects(plan, group, run.path, cwd)
            workdir(str(cwd / (plan.job.workdir or "")), plan.job, group.settings, run.path)
        need_sources(mounts_of(plan.job, cwd))
        if ask:
            for site in by_site(trials):
                settings = plan.job.cluster.of_site(site)
                check_site(self._api(settings.context, settings.namespace), settings)
        if plan.job.image != "none" and not plan.job.cluster.sites:
            whose = vendor(plan, plan.job.cluster.of_site(None))
            plan = replace(plan, job=replace(plan.job, image=image_of(plan.job, whose)))
        return PreparedPlan(plan, cwd)

    def adapt(self, prepared: PreparedPlan, trial: Trial, run: Run, command: Command) -> Command:
        """Paths as the pod sees them, and whose GPUs it gets."""
        plan = prepared.plan
        settings = plan.job.cluster.of_site(trial.site)
        whose = vendor(plan, settings)
        return replace(
            command,
            vendor=whose,
            scratch=settings.scratch,
            patience_s=patience_s(plan, trial),
            cwd=workdir(command.cwd, plan.job, settings, run.path),
            image=ImageUsed(image_of(plan.job, whose)),
        )

    def trace_words(self, plan: Plan, site: str | None) -> tuple[str, ...]:
        """Traces are made in this process."""
        return ()

    def render(self, prepared: PreparedPlan, trials: Sequence[Trial], run: Run) -> Sequence[Request]:
        """One request for each Job; without the values of secrets."""
        plan = prepared.plan
        return [
            _request(plan, job_objects(plan, group, run.path, prepared.cwd, number=number))
            for number, group in enumerate(resource_groups(plan, trials))
        ]

    def submit(self, prepared: PreparedPlan, trials: Sequence[Trial], run: Run) -> Mapping[str, Handle]:
        """Make the Jobs.

        Raises:
            UsageError: the cluster block is wrong, or the run folder is not in the claim.
            UnavailableError: the API server refuses, with its reason; what was made before is deleted.
        """
        plan = prepared.plan
        secret = secret_env(plan.job, prepared.cwd)
        make_dir(jobs_folder(run))
        taken = len(list(jobs_folder(run).glob("job*.json")))
        _change_owner(run, trials)
        self._wait_for_room(run)
        wanted = []
        for number, free in enumerate(resource_groups(plan, trials), start=taken):
            group = self._on_nodes(free, run, number)
            wanted.append((number, group, job_objects(plan, group, run.path, prepared.cwd, number=number)))
        handles: dict[str, Handle] = {}
        made: list[tuple[Api, str]] = []
        try:
            for number, group, objects in wanted:
                api = self._api(group.settings.context, group.settings.namespace)
                made.append((api, objects.name))
                known = PodHandle(
                    job=objects.name,
                    index=0,
                    nodes=plan.job.resources.nodes,
                    context=group.settings.context,
                    namespace=api.namespace,
                    room_s=margin_s(plan, group.trials) - plan.job.resources.grace,
                    site=group.trials[0].site,
                    note=group.nodes.note,
                )
                # Written before the Job is made: if profrun is killed after that, the Job can be found.
                keep(
                    run,
                    number,
                    known,
                    [trial.id for trial in group.trials],
                    prepared.redactor.text(to_yaml(objects, plan.job.secrets)),
                )
                _make(api, objects, secret)
                for index, trial in enumerate(group.trials):
                    handles[trial.id] = replace(known, index=index).handle
        except ProfrunError:
            for api, name in made:
                with contextlib.suppress(ProfrunError):
                    api.delete_job(name)
            raise
        self.poll_s = self._fastest
        return handles

    def _on_nodes(self, group: ResourceGroup, run: Run, number: int) -> ResourceGroup:
        """The group with the nodes that its trials share with those before, where they do."""
        settings = group.settings
        if settings.allocation != "one":
            return group
        api = self._api(settings.context, settings.namespace)
        pods, _ = api.pods(_selector(run))
        return replace(group, nodes=choose_nodes(api, run, group.trials[0].site, number, pods))

    def _wait_for_room(self, run: Run) -> None:
        """Until the pods of the trials that have said how they ended have gone: they hold their nodes."""
        said = {handle.job: handle for handle in jobs_that_said_all(run)}
        for api, members in self._by_api(said):
            wait_for_pods(api, _selector(run), list(members.values()))

    def status(self, handles: Mapping[str, Handle], run: Run) -> Mapping[str, Status]:
        """State of all, with one list of Jobs and one of pods for each namespace.

        Raises:
            UnavailableError: the API server cannot be reached.
        """
        found: dict[str, Status] = {}
        open_: dict[str, Exit] = {}  # it may be started again, or some of its ranks may still run
        rest: dict[str, PodHandle] = {}
        told: dict[str, PodHandle] = {}  # ended: a short one may have ended before its image was seen
        for trial, handle in handles.items():
            known = pod_handle(trial, handle, run)
            ended = read_exit(run.trial(trial))
            if ended is not None:
                found[trial] = status_of(ended)
                if known is not None and unsettled(ended):
                    open_[trial], rest[trial] = ended, known
                elif known is not None and trial not in self._imaged:
                    told[trial] = known
            elif known is None:
                found[trial] = Status("lost", "it was never queued")
            else:
                rest[trial] = known
        versions, asked = [], list[Api]()
        for api, members in self._by_api(rest):
            asked.append(api)
            jobs = {name_of(job): job for job in api.jobs(_selector(run))}
            pods, _ = api.pods(_selector(run))
            versions += [pod["metadata"].get("resourceVersion") for pod in pods]
            over = {
                trial: self._last_word(api, trial, known, open_[trial], jobs, pods)
                for trial, known in members.items()
                if trial in open_
            }
            going = {trial: known for trial, known in members.items() if over.get(trial) is None}
            found |= self._polling.states(api, going, jobs, pods, run)
            found |= {trial: status for trial, status in over.items() if status is not None}
            note_images({**members, **told}, pods, run)
            self._note_nodes(run, pods)
        self._note_last_images(told, asked, run)
        self._back_off(versions)
        return {trial: found[trial] for trial in handles}

    def _last_word(
        self,
        api: Api,
        trial: str,
        known: PodHandle,
        ended: Exit,
        jobs: Mapping[str, ApiObject],
        pods: Sequence[ApiObject],
    ) -> Status | None:
        """The end of a trial whose ``exit.json`` may not be the last word; None while it is not."""
        if ended.silent:
            return self._polling.silent(api, trial, known, ended, jobs, pods)
        return status_of(ended) if all_ended(known, jobs, pods) else None

    def _note_last_images(self, ended: Mapping[str, PodHandle], asked: Sequence[Api], run: Run) -> None:
        """Note the images of trials that have ended, of clusters whose pods were not listed already.

        Without an answer of the API server nothing is noted: the trials have said how they ended.

        Args:
            asked: the clusters whose pods were listed.
        """
        with contextlib.suppress(UnavailableError):
            for api, members in self._by_api(ended):
                if api not in asked:
                    pods, _ = api.pods(_selector(run))
                    note_images(members, pods, run)
        self._imaged |= ended.keys()

    def _note_nodes(self, run: Run, pods: Sequence[ApiObject]) -> None:
        """Which nodes the pods have, whenever one has got its own."""
        found = {(name_of(pod), (pod.get("spec") or {}).get("nodeName")) for pod in pods}
        if not found <= self._placed:
            note_nodes(run, pods)
            self._placed |= found

    def _back_off(self, versions: Sequence[object]) -> None:
        """Ask less and less often while nothing changes."""
        now = tuple(versions)
        self.poll_s = min(self.poll_s * 2, self._slowest) if now == self._last else self._fastest
        self._last = now

    def end_leftovers(self, run: Run, trials: Sequence[str], *, grace: float) -> str | None:
        """Nothing: the kernel ends all processes of a container with its first one, the wrapper."""
        return None

    def logs(self, handle: Handle, run: Run, trial_id: str, *, follow: bool) -> Iterator[str]:
        """Lines of the wrapper's logs in the run folder; before there are any, the pod's own."""
        known = pod_handle(trial_id, handle, run)
        if known is None or any(run.trial(trial_id).folder.glob("std*.log")):
            return trial_lines(self, handle, run, trial_id, follow=follow, pause_s=0.5)

        def ended() -> bool:
            return has_ended(self, handle, run, trial_id)

        api = self._api(known.context, known.namespace)
        return pod_lines(api, _selector(run), known, follow=follow, ended=ended)

    def cancel(self, handles: Mapping[str, Handle], run: Run, *, grace: float) -> None:
        """Tell the wrappers by a file and SIGTERM; SIGKILL only after the grace and the time for reports."""
        self.poll_s = self._fastest
        known: dict[str, PodHandle] = {}
        for trial, handle in handles.items():
            request_cancel(run.trial(trial), grace)
            found = pod_handle(trial, handle, run)
            if found is not None:
                known[trial] = found
        for api, members in self._by_api(known):
            end(api, _selector(run), list(members.values()), deletable_jobs(members, run), grace=grace)

    def _by_api(self, handles: Mapping[str, PodHandle]) -> list[tuple[Api, dict[str, PodHandle]]]:
        grouped: dict[tuple[str | None, str | None], dict[str, PodHandle]] = {}
        for trial, known in handles.items():
            grouped.setdefault((known.context, known.namespace), {})[trial] = known
        return [(self._api(*key), members) for key, members in grouped.items()]

    def _api(self, context: str | None, namespace: str | None) -> Api:
        key = (context, namespace)
        if key not in self._apis:
            self._apis[key] = self._connect(context, namespace)
        return self._apis[key]


def _make(api: Api, objects: JobObjects, secret: Mapping[str, str]) -> None:
    """The Job, then what it owns: whatever happens in between, deleting the Job deletes all of it."""
    uid = api.create(objects.job)["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": objects.name, "uid": uid}
    for manifest in (objects.policy, objects.service, _secret(objects, secret)):
        if manifest is None:
            continue
        try:
            api.create({**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}})
        except ProfrunError as error:
            if manifest is objects.policy:
                raise not_allowed(error) from None
            raise


def _secret(objects: JobObjects, values: Mapping[str, str]) -> Manifest | None:
    """The only place where values of secrets are put into an object."""
    if objects.secret is None:
        return None
    metadata = {key: value for key, value in objects.job["metadata"].items() if key != "name"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": objects.secret, **metadata},
        "type": "Opaque",
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in values.items()},
    }


def _change_owner(run: Run, trials: Sequence[Trial]) -> None:
    """Root's pods do not run as root: the trial's folder becomes that user's.

    Raises:
        UnavailableError: the folder cannot be given away, e.g. where the volume maps root to nobody.
    """
    if os.getuid():
        return
    for trial in trials:
        folder = run.trial(trial.id).folder
        with explained(folder):
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def _selector(run: Run) -> str:
    return f"{RUN_LABEL}={run_label(run.path)}"


def _request(plan: Plan, objects: JobObjects) -> Request:
    body = {
        "objects": objects.objects,
        "secret": objects.secret,
        "trials": [trial.id for trial in objects.trials],
    }
    return Request(to_yaml(objects, plan.job.secrets), body)
