"""From a spec to a plan, and from a run folder back to its plan; which folder a spec's paths count from."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profrun.contract.private import NAME as PRIVATE
from profrun.contract.redact import HIDDEN, Redactor
from profrun.contract.secret_shapes import find_shapes
from profrun.errors import InputError, UsageError
from profrun.plans.model import Plan, Trial, read_plan_file
from profrun.plans.public import hidden_in, public_plan, public_trial, redactor_of
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
    texts = {run.job: "job", run.resolved: "resolved", run.user_job: "user_job"}
    private = read_private(path.parent) if path in texts and is_run(path.parent) else None
    text: str | None = None if private is None else getattr(private, texts[path])
    return text


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
        InputError: the run was never planned to the end, or ``plan.json`` says something else: this profrun
            plans it differently, or one of the two files was changed.
    """
    kept = read_plan(run)
    plan = plan_job(spec_at(run.resolved), vendor=kept.vendor)
    if [trial.id for trial in plan.trials] != [trial.id for trial in kept.trials]:
        raise InputError(
            f"{run.name} cannot be carried on",
            why="this profrun plans its resolved.yaml differently from plan.json",
            fix="use the profrun version named in its events.jsonl, or submit it as a new run",
        )
    redactor = redactor_of(plan)
    again = read_plan_file(json.loads(json.dumps(plan_document(plan, redactor))))
    for now, was in zip(again.trials, kept.trials, strict=True):
        _need_same(run, now, public_trial(was, redactor))  # an older profrun hid nothing in plan.json
    return plan


def plan_document(plan: Plan, redactor: Redactor) -> dict[str, Any]:
    """What ``plan.json`` says of a plan.

    Args:
        redactor: hides its secrets.
    """
    from profrun.contract.codec import to_json
    from profrun.plans.make import plan_file

    document: dict[str, Any] = to_json(plan_file(public_plan(plan, redactor)))
    return document


_RUN = ("index", "variant", "collector", "blocking", "repeat", "argv", "env", "site")
"""Fields of a trial that say what is run. The options of profilers may get new ones in a later version."""


def _need_same(run: Run, now: Trial, was: Trial) -> None:
    """Refuse a trial of which ``plan.json`` and ``resolved.yaml`` do not say the same.

    Args:
        now: as ``resolved.yaml`` has it. was: as ``plan.json`` has it.

    Raises:
        InputError: they differ; names the first difference.
    """
    for name in _RUN:
        one, other = getattr(was, name), getattr(now, name)
        if one != other:
            raise InputError(
                f"{run.name} cannot be carried on",
                why=f"plan.json and resolved.yaml differ in {name} of trial {now.id}: "
                f"{_shown(one)} and {_shown(other)}",
                fix="one of the two files was changed: submit the job that you mean as a new run",
            )


def _shown(value: object) -> str:
    """A value of a plan for a message, on one line."""
    text = shlex.join(value) if isinstance(value, tuple) else repr(value)
    return repr(text[:200]) if not text.isprintable() else text[:200]
