"""The docker backend: starts, watches and ends containers, and leaves none behind.

The engine removes a container the moment it ends (``--rm``), whether or not profrun still lives. A thread a
trial keeps what the engine says at the end; ``exit.json`` is believed before it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.backends.base import HERE, Lane, PreparedPlan, Request
from profrun.backends.docker.cli_args import docker_run
from profrun.backends.docker.engine_facts import ask as ask_engine
from profrun.backends.docker.leftovers import clear_dead, end_running, remove
from profrun.backends.docker.request import Container, container, container_name, not_limited
from profrun.backends.docker.sdk_args import create_container, sdk_arguments
from profrun.backends.docker.watch import Watch
from profrun.backends.environ import secret_env
from profrun.backends.gpu_choice import GpuChoice, GpuSurvey, choose, survey_gpus
from profrun.backends.host import HostFacts, probe_host
from profrun.backends.mounts import need_sources
from profrun.backends.tail import trial_lines
from profrun.contract.command import Command, ImageUsed
from profrun.contract.states import Status
from profrun.errors import UnavailableError
from profrun.images.engine import connect, docker_errors
from profrun.images.engine_kind import stated_kind
from profrun.images.pins import known_pins
from profrun.images.resolve import find_pinned, moved, reference, resolve
from profrun.plans.model import Plan, Trial
from profrun.store.documents import finalising, read_exit, request_cancel, status_of
from profrun.store.events import Handle
from profrun.store.files import explained
from profrun.store.runs import Run

if TYPE_CHECKING:
    import docker

_LOOK_S = 0.2
_LEAVE_WAIT_S = 5.0
"""After exit.json, seconds until the engine must have removed the container."""
_AFTER_GRACE_S = 10.0
"""Seconds after the grace, in which the wrapper kills the profiler and writes how the trial ended."""
_KILL_WAIT_S = 10.0
"""After SIGKILL, seconds until the engine must have removed the container."""
_GONE = "its container is gone, and nothing says how it ended"


@dataclass(frozen=True, kw_only=True)
class DockerPlan(PreparedPlan):
    """A plan with this machine as requests need it, and the image that was found.

    Attributes:
        host: this machine, with the version of its engine's API.
        image: what ``command.json`` says; without a digest where no engine has the image yet (dry run).
        image_id: what the engine is asked to run: the image's id, else its reference.
        gpus: the GPUs of every trial.
    """

    host: HostFacts
    image: ImageUsed
    image_id: str
    gpus: GpuChoice = field(default_factory=GpuChoice)


class DockerBackend:
    """Trials as containers of this machine's engine, one at a time.

    Args:
        host: this machine as requests need it; None looks.
        gpus: who uses this machine's GPUs; None asks each time.
    """

    name = "docker"
    concurrent = False
    poll_s = 0.2

    def __init__(self, host: HostFacts | None = None, gpus: GpuSurvey | None = None) -> None:
        self._host = host
        self._gpus = gpus
        self._connection: docker.DockerClient | None = None
        self._watches: dict[str, Watch] = {}
        self._podman: bool | None = None

    def client(self) -> docker.DockerClient:
        """The engine.

        Raises:
            UnavailableError: none answers, or this user may not talk to it.
        """
        if self._connection is None:
            self._connection = connect()
        return self._connection

    def _is_podman(self, client: docker.DockerClient) -> bool:
        if self._podman is None:
            with docker_errors("the engine does not describe itself"):
                self._podman = stated_kind(client.version(), {}).podman
        return self._podman

    def lane(self, prepared: PreparedPlan, trial: Trial) -> Lane:
        """One trial at a time."""
        return HERE

    def prepare(
        self, plan: Plan, trials: Sequence[Trial], run: Run, cwd: Path, *, ask: bool = True
    ) -> DockerPlan:
        """GPUs, nodes and mounts are checked (the same for all trials, so the first one's container tells);
        then the image is replaced by exactly the one meant now, so that the run can be repeated.

        Raises:
            UnavailableError: a GPU or a mount's source is not there, too few GPUs are free, the engine is on
                another machine or does not answer, the image is not there, cannot be pulled, is stale or for
                another processor.
            UsageError: the job wants no image, a path cannot be mounted, or several nodes.
        """
        host = self._host or probe_host()
        named = reference(plan.job.image, host.vendor)
        chosen = choose(plan.job.resources, self._gpus or survey_gpus(host), host, os.environ)
        plan = chosen.resolved(plan)
        prepared = DockerPlan(
            plan, cwd, chosen.notes, host=host, image=ImageUsed(named), image_id=named, gpus=chosen
        )
        for trial in trials[:1]:
            mounts = _container(prepared, trial, run).mounts
            need_sources(mount for mount in mounts if not Path(mount.source).is_relative_to(run.path))
        try:
            client = self.client()
        except UnavailableError:
            if ask:
                raise
            return prepared
        host = ask_engine(host, client)
        prepared = replace(prepared, host=host, left_out=(*prepared.left_out, *not_limited(plan.job, host)))
        for trial in trials[:1]:
            _container(prepared, trial, run)  # what this engine cannot give is refused here
        pins = known_pins()
        found = (
            resolve(client, plan.job.image, host.vendor, pins=pins)
            if ask
            else find_pinned(client, named, pins)
        )
        told = moved(client, named, pins)
        if found is None:
            return prepared
        return replace(
            prepared,
            left_out=(*prepared.left_out, *((told,) if told else ())),
            plan=replace(plan, job=replace(plan.job, image=found.digest)),
            image=ImageUsed(found.reference, found.digest),
            image_id=found.id,
        )

    def adapt(self, prepared: DockerPlan, trial: Trial, run: Run, command: Command) -> Command:
        """Paths are the same inside; only the image is added."""
        return replace(command, image=prepared.image)

    def trace_words(self, plan: Plan, site: str | None) -> tuple[str, ...]:
        """Traces are made in this process."""
        return ()

    def render(self, prepared: DockerPlan, trials: Sequence[Trial], run: Run) -> Sequence[Request]:
        """One `docker run` line for each trial, and the same as arguments of the SDK."""
        made = [_container(prepared, trial, run) for trial in trials]
        return [Request(text=docker_run(what), body=sdk_arguments(what)) for what in made]

    def submit(self, prepared: DockerPlan, trials: Sequence[Trial], run: Run) -> Mapping[str, Handle]:
        """Start these trials now.

        Raises:
            UnavailableError: no engine, no image, a device or a folder that is not there.
        """
        client = self.client()
        clear_dead(client)
        return {trial.id: self._start(client, prepared, trial, run) for trial in trials}

    def _start(self, client: docker.DockerClient, prepared: DockerPlan, trial: Trial, run: Run) -> Handle:
        what = _container(prepared, trial, run)
        need_sources(what.mounts)
        _change_owner(run.trial(trial.id).folder, prepared.host)
        hidden = secret_env(prepared.plan.job, prepared.cwd)
        remove(client, what.name)  # of an earlier attempt whose driver was killed
        with docker_errors(f"{trial.id} cannot be started in {prepared.image.reference}"):
            made = create_container(client, sdk_arguments(what), hidden)
            try:
                watch = Watch(client, made, podman=self._is_podman(client))
                client.api.start(made)
            except BaseException:
                remove(client, made)
                raise
        self._watches[trial.id] = watch
        return Handle(self.name, {"container": what.name, "id": made})

    def status(self, handles: Mapping[str, Handle], run: Run) -> Mapping[str, Status]:
        """State of each: ``exit.json`` if there is one, else what the engine knows."""
        return {trial_id: self._status(run, trial_id) for trial_id in handles}

    def _status(self, run: Run, trial_id: str) -> Status:
        trial = run.trial(trial_id)
        # Asked before the file is read: a container that was removed has written everything by then.
        alive = self._alive(run, trial_id)
        ended = read_exit(trial)
        watch = self._watches.get(trial_id)
        if ended is not None:
            if alive and watch:
                watch.until_gone(_LEAVE_WAIT_S)  # the next trial starts on an empty machine
            return status_of(ended)
        if alive:
            return finalising(trial) or Status("running")
        return Status("lost", watch.why_lost() if watch else _GONE)

    def _alive(self, run: Run, trial_id: str) -> bool:
        """Whether the container exists. One that a killed profrun left is watched from now on, or removed."""
        known = self._watches[trial_id].alive() if trial_id in self._watches else None
        if known is not None:
            return known
        import docker.errors

        client, name = self.client(), container_name(run, trial_id)
        with docker_errors(f"the engine does not say how {name} is"):
            try:
                found = client.containers.get(name)
            except docker.errors.NotFound:
                return False
        if found.status == "removing":
            return True
        if found.status in ("running", "paused"):
            self._watches.setdefault(trial_id, Watch(client, str(found.id), podman=self._is_podman(client)))
            return True
        remove(client, str(found.id))  # it never started, or is dead
        return False

    def end_leftovers(self, run: Run, trials: Sequence[str], *, grace: float) -> str | None:
        """End the containers of these trials that the engine still runs; what is in one ends with it."""
        folders = {str(run.trial(trial).folder) for trial in trials}
        try:
            ended = end_running(self.client(), folders)
        except UnavailableError:  # who starts a trial next says so
            return None
        names = ", ".join(item.trial for item in ended)
        return f"the container of {names} was left running and had to be ended" if ended else None

    def logs(self, handle: Handle, run: Run, trial_id: str, *, follow: bool) -> Iterator[str]:
        """Lines of stdout.log, then of stderr.log; with ``follow`` as they come, until the trial ends."""
        return trial_lines(self, handle, run, trial_id, follow=follow)

    def cancel(self, handles: Mapping[str, Handle], run: Run, *, grace: float) -> None:
        """SIGURG to the wrapper, so that the profiler can write; SIGKILL some time after ``grace`` s."""
        for trial_id in handles:
            request_cancel(run.trial(trial_id), grace)
            self._end(run, trial_id, grace)

    def _end(self, run: Run, trial_id: str, grace: float) -> None:
        client, name = self.client(), container_name(run, trial_id)
        for signal, wait_s in ((("SIGURG", grace + _AFTER_GRACE_S),) if grace > 0 else ()) + (
            ("SIGKILL", _KILL_WAIT_S),
        ):
            if not self._alive(run, trial_id):
                return
            with contextlib.suppress(UnavailableError), docker_errors(f"{name} cannot be signalled"):
                _signal(client, name, signal)
            deadline = time.monotonic() + wait_s
            while self._alive(run, trial_id) and time.monotonic() < deadline:
                time.sleep(_LOOK_S)
        remove(client, name)


def _container(prepared: DockerPlan, trial: Trial, run: Run) -> Container:
    return container(
        prepared.plan, trial, run, prepared.cwd, prepared.host, prepared.image_id, prepared.gpus.ids
    )


def _change_owner(trial: Path, host: HostFacts) -> None:
    """Give the trial's folder to the user behind sudo, as whom the trial runs."""
    if os.getuid() != 0 or host.uid == 0:
        return
    with explained(trial):
        for path in (trial, *trial.rglob("*")):
            os.chown(path, host.uid, host.gid, follow_symlinks=False)


def _signal(client: docker.DockerClient, name: str, signal: str) -> None:
    import docker.errors

    with contextlib.suppress(docker.errors.NotFound):
        try:
            client.api.kill(name, signal=signal)
        except docker.errors.APIError as error:
            if error.response is None or error.response.status_code != 409:  # 409: it has just ended
                raise
