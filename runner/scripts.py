"""The scripts that a plan's commands name, looked for before many trials fail one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profrun.errors import UnavailableError
from profrun.plans.model import Plan

_TAKES_ONE = ("-W", "-X", "--check-hash-based-pycs")
_NOT_A_FILE = ("-c", "-m")


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


def need_scripts(plan: Plan, cwd: Path) -> None:
    """Look for the scripts of a plan submitted from ``cwd``, before many trials fail one by one.

    Only relative paths: an absolute one may lie in an image.

    Raises:
        UnavailableError: one is not there.
    """
    folder = cwd / (plan.job.workdir or "")
    if plan.job.workdir and Path(plan.job.workdir).is_absolute():
        return  # it may lie in an image too
    for trial in plan.trials:
        script = script_of(trial.argv)
        if script is None or Path(script).is_absolute() or (folder / script).exists():
            continue
        where = "the job's workdir" if plan.job.workdir else "the folder that profrun was started in"
        raise UnavailableError(
            f"{script} is not in {folder}",
            why=f"{trial.variant}'s command runs there, in {where}",
            fix="start profrun in the folder that the path is relative to, or mend the job's command",
        )
