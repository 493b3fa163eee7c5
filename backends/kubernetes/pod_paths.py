"""Where a run is for the pods: paths on this machine as paths in the mounted claim. Pure."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from profrun.backends.kubernetes.objects import Manifest
from profrun.backends.mounts import Mount, parse_mount
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.model import Job

CLAIM_PATH = "/runs"


def shared_root(settings: ClusterSettings, run: Path) -> Path:
    """The folder of this machine where the claim is mounted: ``cluster.shared``, else the runs folder."""
    if not settings.shared:
        return run.absolute().parent
    return Path(os.path.normpath(Path(settings.shared).expanduser().absolute()))


def in_pod(path: Path, settings: ClusterSettings, run: Path) -> str | None:
    """The same folder or file as a pod sees it; None when it is not in the claim."""
    absolute = Path(os.path.normpath(path.absolute()))
    try:
        inner = absolute.relative_to(shared_root(settings, run))
    except ValueError:
        return None
    return str(PurePosixPath(settings.pvc_path or CLAIM_PATH) / inner)


def run_in_pod(settings: ClusterSettings, run: Path) -> str:
    """The run's folder as a pod sees it.

    Raises:
        UsageError: there is no claim, or the run is not in it.
    """
    name = claim(settings)
    path = in_pod(run, settings, run)
    if path is None:
        raise UsageError(
            f"the run folder {run} is not in {shared_root(settings, run)}, which the claim {name} holds "
            "(cluster.shared)",
            fix=f"submit with --runs {shared_root(settings, run)}/...",
        )
    return path


def claim(settings: ClusterSettings) -> str:
    """Name of the claim.

    Raises:
        UsageError: there is none.
    """
    if not settings.pvc:
        raise UsageError(
            "backend kubernetes needs a persistent volume claim for the run folder",
            why="the pods read the trial and write their profiles there; nothing is copied out of pods",
            fix="set cluster.pvc to a claim that several nodes may write to, and cluster.shared to where its "
            "volume is mounted on this machine",
        )
    return settings.pvc


def workdir(cwd: str, job: Job, settings: ClusterSettings, run: Path) -> str:
    """The folder in which the command runs, as a pod sees it: in the claim, else ``workdir`` of the image.

    Raises:
        UsageError: it is neither.
    """
    path = in_pod(Path(cwd), settings, run)
    if path is not None:
        return path
    if job.workdir and job.workdir.startswith("/"):
        return job.workdir
    raise UsageError(
        f"the pods do not see {cwd}, where the command is to run",
        why=f"it is not in {shared_root(settings, run)} (cluster.shared)",
        fix="keep the job's file in that volume, name a folder of it with --cwd DIR, or set workdir to an "
        "absolute path inside the image",
    )


def mounts_of(job: Job, cwd: Path) -> list[Mount]:
    """The job's mounts, as paths of this machine."""
    return [parse_mount(text, cwd) for text in job.mounts]


def volume_mounts(job: Job, settings: ClusterSettings, run: Path, cwd: Path) -> list[Manifest]:
    """``mounts`` of the job as parts of the claim.

    Raises:
        UsageError: a source is not in the claim: a pod cannot mount a folder of this machine.
    """
    found = []
    for mount in mounts_of(job, cwd):
        try:
            inner = Path(mount.source).relative_to(shared_root(settings, run))
        except ValueError:
            raise UsageError(
                f"{mount.source} cannot be mounted in a pod",
                why=f"it is not in {shared_root(settings, run)} (cluster.shared)",
                fix="copy it there, or into the image",
            ) from None
        found.append(
            {
                "name": "runs",
                "mountPath": mount.target,
                "subPath": str(inner),
                **({"readOnly": True} if mount.read_only else {}),
            }
        )
    return found
