"""From a spec to a plan, and from a run folder back to its plan."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from profrun.errors import InputError
from profrun.plans.model import Plan
from profrun.store.runs import Run, read_plan


def plan_job(spec: Path, overrides: Sequence[str] = (), *, vendor: str = "auto") -> Plan:
    """Load and plan a job: strict, and nothing is started.

    Raises:
        UsageError: the spec or an override is wrong; names file, line, column and the nearest valid value.
    """
    from profrun.jobs.load import load_job
    from profrun.plans.make import make_plan

    return make_plan(load_job(spec, overrides), vendor=vendor)


def vendor_seen(backend: str) -> str:
    """Vendor of the GPUs that the trials will see; ``auto`` where only the job can know."""
    from profrun.backends.local import machine_vendor

    here = backend == "local" or (backend == "docker" and not os.environ.get("DOCKER_HOST"))
    return machine_vendor() if here else "auto"


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
