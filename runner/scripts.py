"""The programs and scripts that a plan's commands name, looked for before many trials fail one by one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from profrun.backends.mounts import parse_mount
from profrun.errors import UnavailableError
from profrun.jobs.model import Job
from profrun.jobs.problems import nearest
from profrun.plans.model import Plan, Trial

_TAKES_ONE = ("-W", "-X", "--check-hash-based-pycs")
_NOT_A_FILE = ("-c", "-m")
_CORRECT = "correct the path in the command, or name the folder that it counts from with --cwd DIR"


def script_of(argv: Sequence[str]) -> str | None:
    """The script of a ``python [options] script.py ...`` command; None for every other kind of command."""
    if not argv or not Path(argv[0]).name.startswith("python"):
        return None
    rest = iter(argv[1:])
    for word in rest:
        if word in _TAKES_ONE:
            next(rest, None)
        elif word.startswith(_NOT_A_FILE):
            return None
        elif not word.startswith("-"):
            return word
    return None


def need_programs(plan: Plan, cwd: Path, backend: str) -> None:
    """Look for the programs and scripts that a plan's commands name, before many trials fail one by one.

    Programs are looked for only where trials run on this machine, and scripts where they see its folders.
    Only relative paths of scripts: an absolute one may lie in an image.

    Args:
        cwd: the folder that the job's relative paths count from.
        backend: local, docker, slurm or kubernetes.

    Raises:
        UnavailableError: one is not there.
    """
    if backend == "kubernetes":
        return
    folder = cwd / (plan.job.workdir or "")
    if backend == "local" and folder.is_dir():
        for trial in plan.trials:
            _need_program(trial, folder)
    if plan.job.workdir and Path(plan.job.workdir).is_absolute() and not folder.is_dir():
        return  # it may lie in an image too
    for trial in plan.trials:
        script = script_of(trial.argv)
        if script is None or Path(script).is_absolute():
            continue
        if not (folder / script).exists():
            raise UnavailableError(
                f"cannot find {script} in {folder}",
                why=f"the command runs there, because {_reason(plan.job.workdir)}",
                fix=_CORRECT,
            )
        if backend == "docker":
            _need_inside(script, folder, plan.job, cwd)


def _need_inside(script: str, folder: Path, job: Job, cwd: Path) -> None:
    """Refuse a script that containers do not see: they see the job's folder, its workdir and its mounts."""
    place = Path(os.path.normpath(folder / script))
    seen = [
        cwd,
        Path(os.path.normpath(folder)),
        *(Path(parse_mount(text, cwd).target) for text in job.mounts),
    ]
    if not any(place.is_relative_to(root) for root in seen):
        raise UnavailableError(
            f"the container does not see {place}",
            why=f"it sees the folder of the job, {cwd}, and what the job mounts",
            fix=f"set `workdir: {os.path.relpath(place.parent, cwd)}` in the job, and run {place.name}",
        )


def _reason(workdir: str | None) -> str:
    return "`workdir` of the job names that folder" if workdir else "the job's paths count from that folder"


def _need_program(trial: Trial, folder: Path) -> None:
    """Refuse a command whose first word is no program of this machine."""
    name = trial.argv[0]
    if "/" in name:
        found = folder / name
        if found.exists() and (found.is_dir() or not os.access(found, os.X_OK)):
            raise UnavailableError(
                f"{name} cannot be started", why="it is not executable", fix=_how_to_start(name)
            )
        if found.exists():
            return
        raise UnavailableError(f"cannot find the program {name} in {folder}", fix=_CORRECT)
    if shutil.which(name, path=trial.env.get("PATH")):
        return
    if (folder / name).exists():
        fix = _how_to_start(f"./{name}")
        raise UnavailableError(f"{name} is a file, not a program on the PATH", fix=fix)
    near = nearest(name, ("python3", "python", "torchrun", "accelerate", "deepspeed"))
    there = near if near and shutil.which(near, path=trial.env.get("PATH")) else None
    raise UnavailableError(
        f"there is no program {name!r}",
        why="it is not on the PATH",
        fix=f"did you mean {there!r}?" if there else "install it, activate its environment, or give its path",
    )


def _how_to_start(name: str) -> str:
    """How to run a file that is not executable."""
    if name.endswith(".py"):
        return f"run it with its interpreter: python {name.removeprefix('./')}"
    return f"give its path ({name}), and make it executable (chmod +x)"
