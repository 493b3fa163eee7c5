"""From a spec to a run folder, and from a run folder back to its plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profrun.errors import InputError, UnavailableError
from profrun.plans.model import Plan
from profrun.store.runs import Run, create, read_plan


def plan_job(spec: Path, overrides: Sequence[str] = (), *, vendor: str = "auto") -> Plan:
    """Load and plan a job: strict, and nothing is started.

    Raises:
        UsageError: the spec or an override is wrong; names file, line, column and the nearest valid value.
    """
    from profrun.jobs.load import load_job
    from profrun.plans.make import make_plan

    return make_plan(load_job(spec, overrides), vendor=vendor)


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


def new_run(root: Path, spec: Path, plan: Plan, *, backend: str, cwd: Path) -> Run:
    """Make the run folder of a plan.

    Raises:
        UnavailableError: the runs folder cannot be written or the disk is full.
    """
    from profrun import __version__
    from profrun.contract.codec import to_json
    from profrun.jobs.dump import dump_job
    from profrun.plans.make import plan_file

    return create(
        root,
        plan.job.name,
        spec_text=spec.read_text(encoding="utf-8"),
        resolved_text=dump_job(plan.job),
        plan=to_json(plan_file(plan)),
        backend=backend,
        cwd=cwd,
        version=__version__,
    )


def plan_of(run: Run) -> Plan:
    """The plan of a run, made again from its ``resolved.yaml``.

    Raises:
        InputError: the run was never planned to the end, or this profrun plans it differently.
    """
    kept = read_plan(run)
    planned = [item.id for item in kept.trials]
    plan = plan_job(run.resolved, vendor=kept.vendor)
    if [trial.id for trial in plan.trials] != planned:
        raise InputError(
            f"{run.name} cannot be carried on",
            why="this profrun plans its resolved.yaml differently from plan.json",
            fix="use the profrun version named in its events.jsonl, or submit it as a new run",
        )
    return plan
