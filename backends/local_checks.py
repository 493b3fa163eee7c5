"""What the local backend can tell of a job before it starts: what cannot work, and what it leaves out."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.backends.host import probe_host
from profrun.contract.visible_devices import VISIBLE_DEVICES
from profrun.errors import UnavailableError, UsageError
from profrun.jobs.model import Job

if TYPE_CHECKING:
    from profrun.backends.gpu_choice import GpuChoice, GpuSurvey
    from profrun.in_job.gpu_use import GpuUse

_SIGNS = ("dev/nvidiactl", "dev/kfd", "dev/dxg", "dev/nvhost-gpu", "dev/nvgpu")
"""Device files of GPUs: NVIDIA's and AMD's drivers, WSL's, and two of NVIDIA's embedded boards."""


def check_machine(job: Job, root: Path = Path("/")) -> None:
    """Say what cannot work on this machine.

    Raises:
        UsageError: several nodes.
        UnavailableError: the working directory is not there.
    """
    if job.resources.nodes > 1:
        raise UsageError(
            f"the local backend runs on one machine, and the job asks for {job.resources.nodes} nodes",
            fix="set resources.nodes to 1, or use --backend slurm or kubernetes",
        )
    if job.workdir and Path(job.workdir).is_absolute() and not Path(job.workdir).is_dir():
        raise UnavailableError(f"workdir {job.workdir} is not a folder here", fix="make it, or mend the job")


def choose_gpus(
    job: Job, environ: Mapping[str, str], root: Path = Path("/"), found: GpuSurvey | None = None
) -> GpuChoice | None:
    """The GPUs that the command sees; None leaves that to its environment.

    That is so where the job says ``auto`` (a program on this machine sees its GPUs as it would without
    profrun), where the job's own ``env`` lists GPUs, and where GPUs leave no trace in the places that are
    looked at (WSL).

    Args:
        environ: the caller's.
        root: where this machine's files are.
        found: who uses the GPUs; None asks.

    Raises:
        UnavailableError: a GPU is not there or not the caller's to use, or too few are free.
    """
    asked = job.resources.gpus
    facts = probe_host(root, environ)
    own = any(name in job.env for name in VISIBLE_DEVICES.get(facts.vendor, ()))
    unseen = facts.vendor == "none" and not surely_no_gpu(root) and not isinstance(asked, tuple)
    if asked == "auto" or own or unseen:
        return None
    from profrun.backends.gpu_choice import choose, survey_gpus  # a dry run without a GPU is spared this

    chosen = choose(job.resources, found or survey_gpus(facts, root), facts, environ)
    return chosen if facts.gpus else None


def uses_seen(
    job: Job, environ: Mapping[str, str], root: Path = Path("/"), found: GpuSurvey | None = None
) -> list[GpuUse]:
    """The GPUs that the program sees and that are in use now.

    Args:
        environ: what the program is started with; what the job's own ``env`` lists counts more.
        root: where this machine's files are.
        found: who uses the GPUs; None asks.
    """
    facts = probe_host(root, environ)
    if not facts.gpus:
        return []
    from profrun.backends.gpu_choice import seen_by_caller, survey_gpus

    survey = found or survey_gpus(facts, root)
    seen = seen_by_caller(survey.uses, facts.vendor, {**environ, **job.env})
    return [use for use in survey.uses if use.index in seen and not use.free]


def busy_notes(uses: Sequence[GpuUse]) -> list[str]:
    """GPUs in use that the program sees because ``auto`` leaves the choice to it, a sentence each."""
    return [
        f"{use.text()} is in use, and the program sees it: times and memory are not those of a GPU alone; "
        f"with resources.gpus: 1 it gets a free one"
        for use in uses
    ]


def newcomers(before: Sequence[GpuUse], now: Sequence[GpuUse]) -> list[str]:
    """GPUs whose processes are others than before, a sentence each.

    Args:
        before: the uses that the user was told of.
        now: those when a trial starts, of which no process runs any more or yet.
    """
    told = {process.pid for use in before for process in use.processes}
    new = [use for use in now if any(process.pid not in told for process in use.processes)]
    return [
        f"{use.text()} is in use by a process that is none of this run: times and memory are not those of a "
        "GPU alone"
        for use in new
    ]


def surely_no_gpu(root: Path = Path("/")) -> bool:
    """Whether this machine has no GPU: none is listed, and nothing shows that there may be one."""
    signs = any((root / sign).exists() for sign in _SIGNS) or shutil.which("nvidia-smi")
    return not probe_host(root, {}).gpus and not signs


def left_out(job: Job) -> list[str]:
    """What the job asks for and a process of this machine does not get, a sentence each."""
    found = []
    if job.image not in ("auto", "none"):
        found.append(f"image {job.image} is not used: the local backend runs the command on this machine")
    if job.mounts:
        found.append("mounts are not used: the local backend runs the command on this machine")
    if job.resources.ranks_per_node > 1:
        found.append(
            f"the local backend starts the command once: it must start its "
            f"{job.resources.ranks_per_node} ranks itself, as torchrun does"
        )
    return found
