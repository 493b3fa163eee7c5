"""From a spec to a plan, and from a run folder back to its plan; which folder a spec's paths count from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.contract.private import NAME as PRIVATE
from profrun.contract.redact import HIDDEN
from profrun.contract.secret_shapes import find_shapes
from profrun.errors import InputError, UsageError
from profrun.plans.model import Plan
from profrun.plans.public import hidden_in
from profrun.store.private import read_private
from profrun.store.runs import Run, created, is_run, read_plan

if TYPE_CHECKING:
    from profrun.jobs.load import Spec
    from profrun.jobs.model import Job
    from profrun.jobs.overrides import Override


def spec_at(path: Path, cwd: Path | None = None) -> Spec:
    """The job spec in a file.

    Args:
        cwd: the folder that its relative paths count from. None: the folder of the file; for a spec in the
            folder of a run, the folder that the run's paths counted from, so that it repeats the run.

    Raises:
        UsageError: the file cannot be read, it is no job spec, or ``cwd`` is no folder.
    """
    from profrun.jobs.load import Spec, read_spec

    text = _private_text(path) or read_spec(path)
    if cwd is not None and not cwd.is_dir():
        raise UsageError(
            f"--cwd {cwd} is not a folder", fix="name the folder that the job's paths count from"
        )
    if cwd is None and is_run(path.parent):
        cwd = Path(str(created(Run(path.parent)).get("cwd", path.parent)))
    return Spec(text, str(path), (cwd or path.parent).resolve())


def _private_text(path: Path) -> str | None:
    """The text of a spec in the folder of a run with its secrets, where this is one and they are there."""
    run = Run(path.parent)
    private = read_private(path.parent) if path in (run.job, run.resolved) and is_run(path.parent) else None
    return None if private is None else private.job if path == run.job else private.resolved


def need_secrets(plan: Plan, name: str) -> None:
    """Refuse to run a plan in which a secret is hidden.

    Args:
        name: of the spec or the run.

    Raises:
        UsageError: it is of a spec that profrun has kept without its secrets.
    """
    if hidden_in(plan):
        raise UsageError(
            f"{name} cannot be run: it has {HIDDEN} in the place of a secret",
            why=f"profrun keeps secrets in {PRIVATE} of the run's folder, and that file is not beside it",
            fix=f"write the values in the places of {HIDDEN} in a copy of the job, and submit that",
        )


def refuse_secret_names(plan: Plan) -> None:
    """Refuse a job whose name, or the name of a variant, has the form of a secret: folders are named so.

    Raises:
        UsageError: one has; says of what kind it is, and not the name.
    """
    for what, name in (("job", plan.job.name), *(("variant", name) for name in plan.job.variants)):
        found = next(find_shapes(name), None)
        if found is not None:
            raise UsageError(
                f"the name of a {what} has the form of a secret: {found.shape}",
                why="folders, reports and traces have these names",
                fix=f"give the {what} another name, and the secret to `secrets` or a value of a variant",
            )


def plan_job(
    spec: Spec,
    overrides: Sequence[str | Override] = (),
    *,
    only: Sequence[str] = (),
    vendor: str = "auto",
) -> Plan:
    """Load and plan a job: strict, and nothing is started.

    Args:
        overrides: ``path=value``, as of ``--set``.
        only: names or globs of the variants to keep; empty: all.
        vendor: see ``plans.make.make_plan``.

    Raises:
        UsageError: the spec or an override is wrong; names file, line, column and the nearest valid value.
    """
    from profrun.jobs.load import load_text
    from profrun.jobs.points import keep_only
    from profrun.plans.make import make_plan

    job = load_text(spec.text, spec.name, overrides)
    _know_rules(job, spec.name)
    return make_plan(keep_only(job, only) if only else job, vendor=vendor)


def _know_rules(job: Job, name: str) -> None:
    """Refuse expectations of findings by rules that do not exist: the job spec itself knows no rules."""
    named = [(number, rule) for number, one in enumerate(job.expect) for rule in one.rules]
    if not named:
        return
    from profrun.analysis.rules.catalogue import all_rules
    from profrun.jobs.problems import suggest

    known = [rule.id for rule in all_rules()]
    for number, rule in named:
        if rule not in known:
            raise UsageError(
                f"{name}: expect[{number}]: there is no rule '{rule}'", fix=suggest(rule, known, "rules")
            )


def vendor_seen(backend: str) -> str:
    """Vendor of the GPUs that the trials will see; ``none`` where this machine runs them and surely has no
    GPU, ``auto`` where only the job can know."""
    from profrun.backends.local import machine_vendor
    from profrun.backends.local_checks import surely_no_gpu

    here = backend == "local" or (backend == "docker" and not os.environ.get("DOCKER_HOST"))
    seen = machine_vendor() if here else "auto"
    return "none" if seen == "auto" and backend == "local" and surely_no_gpu() else seen


def plan_of(run: Run) -> Plan:
    """The plan of a run, made again from its ``resolved.yaml``.

    Raises:
        InputError: the run was never planned to the end, or this profrun plans it differently.
    """
    kept = read_plan(run)
    planned = [item.id for item in kept.trials]
    plan = plan_job(spec_at(run.resolved), vendor=kept.vendor)
    if [trial.id for trial in plan.trials] != planned:
        raise InputError(
            f"{run.name} cannot be carried on",
            why="this profrun plans its resolved.yaml differently from plan.json",
            fix="use the profrun version named in its events.jsonl, or submit it as a new run",
        )
    return plan
