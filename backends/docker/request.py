"""A trial's container as a value: what the engine is asked for. Pure."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from profrun.backends.docker.gpus import Gpus, gpus
from profrun.backends.host import HostFacts
from profrun.backends.mounts import Mount, parse_mount, workdir_outside
from profrun.backends.privileges import DROP_ROOT, become_caller, capabilities, needs_of, tmpfs
from profrun.backends.profilers import finalise_s
from profrun.errors import UnavailableError, UsageError
from profrun.images.engine_kind import EngineKind
from profrun.jobs.model import Job
from profrun.plans.model import Plan, Trial
from profrun.store.runs import Run

LABEL_ROLE = "profrun.role"
LABEL_RUN = "profrun.run"
LABEL_TRIAL = "profrun.trial"
LABEL_PATH = "profrun.path"
"""Labels of every container of profrun: its role (trial, probe), run, trial, and the trial's folder."""

HOSTNAME = "profrun"
"""Host name in every container, because profilers name folders after the host."""
LOG_DRIVER = "json-file"
LOG_OPTIONS = {"max-size": "10m"}
"""The engine's own copy of the output has a limit; it is removed with the container."""
MEMLOCK = ("memlock", -1, -1)
STACK = ("stack", 67108864, 67108864)
"""Limits: name, soft, hard. NCCL registers memory, deep graphs need stack; values are NVIDIA's own advice."""
_RAISE = f"ulimit -s {STACK[1] // 1024}"
RAISE_STACK = ("sh", "-c", f'({_RAISE}) 2>/dev/null && {_RAISE}; exec "$0" "$@"')
"""The words before a command that raise its stack themselves: rootless Podman before 5.5 ignores limits that
are asked for by its Docker-compatible API. Where it may not be raised, it stays."""
LEAVE_S = 15.0
"""Seconds that the wrapper needs to end, after the profiler."""
_PATH = re.compile(r"/[^\x00-\x1f]*")
_SYSTEM = frozenset(
    {
        *("/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/root"),
        *("/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var"),
    }
)
"""Folders that must not be mounted over, because the image's own are needed."""


@dataclass(frozen=True)
class Container:
    """Everything that is asked of the engine for one trial. Values of secrets are not in it.

    Attributes:
        image: reference or id.
        argv: the whole command, entry point included; the image's own entry point is not run.
        user: uid:gid inside.
        groups: further numeric groups.
        env: variables with their values.
        secrets: names of variables whose values come from the caller.
        env_file: file of further variables, or None.
        stop_s: how long a stopped container gets before it is killed, whole seconds.
        ulimits: name, soft, hard.
        shm, memory: bytes, None for the engine's.
        read_only: the root file system cannot be written to, by root neither.
        tmpfs: folder in memory -> its mount options.
        cpus: cores, None for all.
    """

    name: str
    image: str
    argv: tuple[str, ...]
    user: str
    workdir: str
    groups: tuple[int, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    env_file: str | None = None
    mounts: tuple[Mount, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    cap_add: tuple[str, ...] = ()
    security_opt: tuple[str, ...] = ("no-new-privileges",)
    network: str = "none"
    hostname: str = HOSTNAME
    shm: int | None = None
    memory: int | None = None
    read_only: bool = True
    tmpfs: Mapping[str, str] = field(default_factory=dict)
    cpus: int | None = None
    stop_s: int = 60
    ulimits: tuple[tuple[str, int, int], ...] = (STACK,)
    gpus: Gpus = field(default_factory=Gpus)


def container(
    plan: Plan, trial: Trial, run: Run, cwd: Path, facts: HostFacts, image: str, ids: Sequence[str] = ()
) -> Container:
    """The container of a trial.

    The trial's folder is the only place it may write to; the run's bundle and the folder that the job's paths
    count from are there read-only. All have the same paths inside as outside.

    Args:
        cwd: the folder that the job's relative paths count from.
        image: reference or id of the image.
        ids: the GPUs that it gets, as ``gpu_choice.choose`` names them.

    Raises:
        UnavailableError: the engine is on another machine.
        UsageError: a path that cannot be mounted, or several nodes.
    """
    job = plan.job
    _check_possible(job, facts)
    folder = run.trial(trial.id).folder
    given = capabilities(needs_of(trial, facts.vendor), facts)
    devices = gpus(ids, facts)
    user, wrapper = user_and_prefix(given, devices, facts)
    itself = facts.engine is EngineKind.ROOTLESS_PODMAN
    argv = (*wrapper, *(RAISE_STACK if itself else ()), "python3", str(run.wrapper), str(folder))
    return Container(
        name=container_name(run, trial.id),
        image=image,
        argv=argv,
        user=user,
        workdir=str(folder),
        groups=devices.groups,
        env={"HOME": "/tmp", "USER": facts.user, "LOGNAME": facts.user, **devices.env},
        secrets=tuple(job.secrets),
        env_file=str((cwd / job.env_file).absolute()) if job.env_file else None,
        mounts=_mounts(job, run, folder, cwd.absolute()),
        labels={LABEL_ROLE: "trial", LABEL_RUN: run.name, LABEL_TRIAL: trial.id, LABEL_PATH: str(folder)},
        cap_add=tuple(sorted({*given, *(DROP_ROOT if wrapper else ())})),
        security_opt=("no-new-privileges", *(("label=disable",) if facts.selinux else ())),
        network=_network(facts) if job.network else "none",
        shm=job.resources.shm,
        memory=None if "memory" in facts.unlimited else job.resources.memory,
        read_only=not job.resources.writable_root,
        tmpfs=tmpfs(job.resources),
        cpus=None if "cpus" in facts.unlimited else job.resources.cpus,
        stop_s=math.ceil(job.resources.grace + finalise_s(plan, [trial], facts.vendor) + LEAVE_S),
        ulimits=(*((MEMLOCK,) if facts.raise_limits else ()), *(() if itself else (STACK,))),
        gpus=devices,
    )


def _network(facts: HostFacts) -> str:
    """The network of a job that wants one. Rootless Podman 4.3 made no bridge where it was tried; what
    it uses by itself works: slirp4netns, from Podman 5 on pasta."""
    if facts.engine is not EngineKind.ROOTLESS_PODMAN:
        return "bridge"
    return "pasta" if facts.engine_version and facts.engine_version >= (5,) else "slirp4netns"


def container_name(run: Run, trial_id: str) -> str:
    """A name that the engine accepts; every process computes the same one for a trial.

    Run names are unique in their folder only, so a few digits of the folder's path are in it.
    """
    place = hashlib.sha256(os.fsencode(run.path)).hexdigest()[:6]
    return re.sub(r"[^A-Za-z0-9_.-]", "-", f"profrun-{run.name}-{trial_id}-{place}")


def _check_possible(job: Job, facts: HostFacts) -> None:
    if facts.remote:
        raise UnavailableError(
            f"the engine at {facts.remote} is on another machine",
            why="a trial writes into folders of this one",
            fix="run profrun there, or use --backend slurm or kubernetes",
        )
    if job.resources.nodes > 1:
        raise UsageError(
            f"the docker backend runs on one machine, and the job asks for {job.resources.nodes} nodes",
            fix="set resources.nodes to 1, or use --backend slurm or kubernetes",
        )


def not_limited(job: Job, facts: HostFacts) -> tuple[str, ...]:
    """What the job limits and this engine does not, a sentence each."""
    asked = {"memory": job.resources.memory, "cpus": job.resources.cpus}
    return tuple(
        f"resources.{name}: this {facts.engine.value} may not limit it, so the trials run without that limit"
        for name in facts.unlimited
        if asked[name] is not None
    )


def user_and_prefix(given: Sequence[str], devices: Gpus, facts: HostFacts) -> tuple[str, tuple[str, ...]]:
    """Who runs inside, as ``uid:gid``, and the words before the command.

    Args:
        given: capabilities. A container that needs one starts as root with it and becomes the caller.
    """
    if facts.engine.rootless:
        return "0:0", ()  # root of a rootless engine is the caller
    if not given or facts.uid == 0:
        return f"{facts.uid}:{facts.gid}", ()
    return "0:0", become_caller(given, facts.uid, facts.gid, devices.groups)


def _mounts(job: Job, run: Run, folder: Path, cwd: Path) -> tuple[Mount, ...]:
    """The job's folder, bundle and trial at their own paths, then the job's mounts; each target once."""
    found = {
        str(cwd): Mount(str(cwd), str(cwd), True),
        str(run.bundle): Mount(str(run.bundle), str(run.bundle), True),
        str(folder): Mount(str(folder), str(folder), False),
    }
    workdir = workdir_outside(job, cwd)
    if workdir is not None:
        found[workdir] = Mount(workdir, workdir, True)
    for text in job.mounts:
        mount = parse_mount(text, cwd)
        found[mount.target] = mount
    for mount in found.values():
        hides = mount.target in _SYSTEM
        if hides or not _PATH.fullmatch(mount.source):
            raise UsageError(
                f"{mount.source} cannot be mounted at {mount.target!r}",
                why="it would hide the image's own" if hides else "engines take no control characters",
                fix="keep the job in a folder of its own" if mount.target == str(cwd) else "change `mounts`",
            )
    return tuple(found.values())
