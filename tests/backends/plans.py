"""Small plans for the cluster backends' tests."""

from __future__ import annotations

from pathlib import Path

from profrun.backends.base import PreparedPlan
from profrun.jobs.load import load_text
from profrun.plans.make import make_plan
from profrun.plans.model import Plan, Trial
from profrun.store.runs import Run

SPEC = """
name: transformer
image: {image}
command: {command}
variants: {{baseline: {{batch: 16}}, optimised: {{batch: 32}}}}
collectors: [none, nsys]
launch_blocking: both
resources: {{{resources}}}
cluster: {{{cluster}}}
"""


def plan(
    *,
    image: str = "none",
    command: str = "python train.py --batch {batch}",
    resources: str = "gpus: 2, timeout: 30m",
    cluster: str = "",
) -> Plan:
    """Eight trials: two variants, two collectors, blocking or not."""
    text = SPEC.format(image=image, command=command, resources=resources, cluster=cluster)
    return make_plan(load_text(text))


def prepared(found: Plan, cwd: Path = Path("/shared/me/project")) -> PreparedPlan:
    """A plan whose settings need no profile, as a cluster's backend prepares it."""
    return PreparedPlan(found, cwd)


def one_trial(folder: Path, gpus: int) -> tuple[Plan, tuple[Trial, ...], Run, Path]:
    """What ``prepare`` is given for a job of one trial that asks for this many GPUs."""
    plan = make_plan(load_text(f"name: t\ncommand: python x.py\nresources: {{gpus: {gpus}}}\n"))
    return plan, plan.trials, Run(folder / "runs/t"), folder
