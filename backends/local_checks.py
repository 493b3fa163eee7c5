"""What the local backend can tell of a job before it starts: what cannot work, and what it leaves out."""

from __future__ import annotations

import shutil
from pathlib import Path

from profrun.backends.host import probe_host
from profrun.errors import UnavailableError, UsageError
from profrun.jobs.model import Job, Resources

_SIGNS = ("dev/nvidiactl", "dev/kfd", "dev/dxg", "dev/nvhost-gpu", "dev/nvgpu")
"""Device files of GPUs: NVIDIA's and AMD's drivers, WSL's, and two of NVIDIA's embedded boards."""


def check_machine(job: Job, root: Path = Path("/")) -> None:
    """Say what cannot work on this machine.

    Raises:
        UsageError: several nodes.
        UnavailableError: more GPUs are asked for than there are, or the working directory is not there.
    """
    if job.resources.nodes > 1:
        raise UsageError(
            f"the local backend runs on one machine, and the job asks for {job.resources.nodes} nodes",
            fix="set resources.nodes to 1, or use --backend slurm or kubernetes",
        )
    if job.workdir and Path(job.workdir).is_absolute() and not Path(job.workdir).is_dir():
        raise UnavailableError(f"workdir {job.workdir} is not a folder here", fix="make it, or mend the job")
    _need_gpus(job.resources, root)


def _need_gpus(resources: Resources, root: Path) -> None:
    """Only where it is sure: some machines have GPUs that leave no trace in these places."""
    asked = resources.gpus
    there = probe_host(root, {}).gpus
    if asked == "auto" or asked <= there or not (there or surely_no_gpu(root)):
        return
    found = f"this machine has {there}" if there else "no GPU was found here"
    raise UnavailableError(
        f"the job asks for {asked} GPU{'s' * (asked > 1)}, and {found}",
        fix="set resources.gpus to auto, or run it where the GPUs are; `profrun doctor` says more",
    )


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
