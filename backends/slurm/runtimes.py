"""What runs the image on a node: the part of the command between ``srun`` and the wrapper. Pure.

The run folder and the job's folder are the same paths inside and outside, so ``command.json`` needs no
translation. No runtime here can add a capability: a collector that needs one says so in its preflight.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profrun.backends.cluster import by_site
from profrun.backends.mounts import Mount, parse_mount, workdir_outside
from profrun.backends.slurm.docker_step import docker_words
from profrun.backends.slurm.image_file import VARIABLE, ImageFile, image_file
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.model import Job
from profrun.plans.model import Plan

RUNTIMES = ("none", "pyxis", "apptainer", "charliecloud", "docker")


@dataclass(frozen=True)
class Runtime:
    """How the wrapper gets into the image.

    Attributes:
        srun: options of srun (pyxis adds its own there), quoted for the shell.
        prefix: words before ``python3 .../run.py``, quoted for the shell.
        before: shell lines ahead of srun.
        after: shell lines behind the last srun of a run.
        signal: what reaches the wrapper through this runtime. Only the wrapper handles SIGURG; the docker
            client does not pass it on (Go uses it for itself), so there it is SIGTERM.
        sees_tmp: the wrapper sees the node's own /tmp: apptainer and ch-run mount it unless they are told not
            to, enroot and docker do not.
    """

    srun: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    signal: str = "URG"
    sees_tmp: bool = True


def runtime(
    job: Job, settings: ClusterSettings, run: Path, cwd: Path, vendor: str, *, once: bool = False
) -> Runtime:
    """The runtime that the cluster block names.

    Args:
        vendor: nvidia, amd, none or auto.
        once: pyxis and apptainer use a file of the image that is made once for the run.

    Raises:
        UsageError: image and runtime do not fit together.
    """
    name = settings.runtime or "none"
    if name == "none":
        if job.image not in ("auto", "none"):
            raise UsageError(
                f"image {job.image!r} needs a container runtime on the cluster",
                fix=f"set cluster.runtime to one of {', '.join(RUNTIMES[1:])}, or image: none",
            )
        return Runtime()
    mounts = _mounts(job, run, cwd)
    if name == "pyxis":
        reference = _enroot(_image(job, settings, vendor))
        file = image_file("pyxis", reference, run) if once else None
        return _of_file(_pyxis(job, reference if file is None else None, mounts, cwd), job, file)
    if name == "apptainer":
        reference = _apptainer_image(_image(job, settings, vendor))
        file = image_file("apptainer", reference, run) if once else None
        return _of_file(_apptainer(reference if file is None else None, mounts, cwd, vendor), job, file)
    if name == "charliecloud":
        return _charliecloud(_rootfs(job, settings), mounts, cwd)
    return _docker(job, settings, _image(job, settings, vendor), mounts, cwd, vendor)


def _image(job: Job, settings: ClusterSettings, vendor: str) -> str:
    if settings.rootfs:
        return settings.rootfs
    if job.image in ("auto", "cuda", "rocm", "none"):
        from profrun.images.catalogue import default_base

        wanted = job.image if job.image in ("cuda", "rocm") else {"nvidia": "cuda", "amd": "rocm"}.get(vendor)
        if wanted is None or job.image == "none":
            raise UsageError(
                f"image: {job.image} names no image for the cluster's nodes",
                why="this machine cannot see what GPUs they have",
                fix="give image a reference, or set cluster.vendor or cluster.gpu_type",
            )
        return default_base("rocm" if wanted == "rocm" else "cuda").reference
    return job.image


def _rootfs(job: Job, settings: ClusterSettings) -> str:
    if settings.rootfs:
        return settings.rootfs
    if job.image.startswith("/"):
        return job.image
    raise UsageError(
        f"charliecloud runs an unpacked image, and {job.image!r} is none",
        fix="set cluster.rootfs to its folder on the nodes (ch-image pull and ch-convert make one)",
    )


def _mounts(job: Job, run: Path, cwd: Path) -> list[tuple[str, str, bool]]:
    """(source, target, read only); the run folder is the only one that is written to."""
    found = [(str(cwd), str(cwd), True), (str(run), str(run), False)]
    workdir = workdir_outside(job, cwd)
    if workdir is not None and not Path(job.workdir or "").is_absolute():  # that may lie in the image
        found.insert(1, (workdir, workdir, True))
    for text in job.mounts:
        mount = parse_mount(text, cwd)
        found.append((mount.source, mount.target, mount.read_only))
    return found


def shared_mounts(job: Job, settings: ClusterSettings, cwd: Path) -> list[Mount]:
    """Mounts whose source this machine sees as the nodes do: below the job's folder or ``cluster.shared``.

    Others may lie on the nodes' own disks.
    """
    roots = [cwd.absolute(), *([Path(settings.shared).expanduser()] if settings.shared else ())]
    mounts = [parse_mount(text, cwd) for text in job.mounts]
    return [mount for mount in mounts if any(Path(mount.source).is_relative_to(root) for root in roots)]


def check_shared(plan: Plan, run: Path) -> None:
    """Refuse a run in a folder that the nodes do not see.

    Args:
        run: the run's folder.

    Raises:
        UsageError: with the option that names another folder.
    """
    for site in by_site(plan.trials):
        shared = plan.job.cluster.of_site(site).shared
        if shared and not run.resolve().is_relative_to(Path(shared).expanduser().resolve()):
            raise UsageError(
                f"the run folder {run} is not in {shared}, which the nodes see (cluster.shared)",
                fix=f"submit with --runs {shared}/...",
            )


def _quoted(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(shlex.quote(word) for word in words)


def _of_file(how: Runtime, job: Job, file: ImageFile | None) -> Runtime:
    """The runtime with the lines that make the image's file, and those that remove it."""
    if file is None:
        return how
    after = () if job.cluster.sites else (file.remove,)  # another site may still use it
    return replace(how, before=(*how.before, file.lines), after=after)


def _quoted_image(image: str | None) -> str:
    """A reference quoted for the shell; the variable of the file where it is None."""
    return f'"{VARIABLE}"' if image is None else shlex.quote(image)


def _pyxis(job: Job, image: str | None, mounts: list[tuple[str, str, bool]], cwd: Path) -> Runtime:
    listed = ",".join(f"{source}:{target}{':ro' if ro else ''}" for source, target, ro in mounts)
    # An image's own variables win over the host's unless they are named; the job's are in command.json.
    secrets = (f"--container-env={','.join(job.secrets)}",) if job.secrets else ()
    return Runtime(
        srun=(
            f"--container-image={_quoted_image(image)}",
            *_quoted((f"--container-mounts={listed}", f"--container-workdir={cwd}")),
            *_quoted(("--no-container-mount-home", *secrets)),
        ),
        sees_tmp=False,
    )


def _enroot(image: str) -> str:
    """enroot writes REGISTRY#IMAGE:TAG; files stay as they are (pyxis README)."""
    if image.startswith("/") or image.endswith(".sqsh") or "#" in image:
        return image
    first, slash, rest = image.removeprefix("docker://").partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return f"{first}#{rest}"
    return image.removeprefix("docker://")


def _apptainer_image(image: str) -> str:
    return image if image.startswith("/") or "://" in image else f"docker://{image}"


def _apptainer(image: str | None, mounts: list[tuple[str, str, bool]], cwd: Path, vendor: str) -> Runtime:
    gpu = {"nvidia": ("--nv",), "amd": ("--rocm",)}.get(vendor, ())
    binds = tuple(f"--bind={source}:{target}{':ro' if ro else ''}" for source, target, ro in mounts)
    words = _quoted(("apptainer", "exec", *gpu, "--no-home", *binds, f"--pwd={cwd}"))
    return Runtime(prefix=(*words, _quoted_image(image)))


def _charliecloud(rootfs: str, mounts: list[tuple[str, str, bool]], cwd: Path) -> Runtime:
    # ch-run has no read-only binds, and makes no mount point in an image it may not write to.
    binds = tuple(f"--bind={source}:{target}" for source, target, _ in mounts)
    return Runtime(
        prefix=_quoted(("ch-run", "--write", *binds, f"--cd={cwd}", rootfs, "--")),
        before=('export USER="${USER:-$(id -un)}"  # ch-run refuses to start without it',),
    )


def _docker(
    job: Job,
    settings: ClusterSettings,
    image: str,
    mounts: list[tuple[str, str, bool]],
    cwd: Path,
    vendor: str,
) -> Runtime:
    binds = [
        f"type=bind,src={source},dst={target}{',readonly' if ro else ''}" for source, target, ro in mounts
    ]
    return Runtime(
        prefix=docker_words(job, settings, image, binds, cwd, vendor), signal="TERM", sees_tmp=False
    )
