"""When the trials of a site share one allocation, and the one that ``profrun submit`` may run in. Pure.

A and B run on the same nodes, after one wait in the queue. It is the default where all fit one time limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from profrun.backends.base import PreparedPlan
from profrun.backends.cluster import Choice, gpus_per_node, is_launcher, settle_allocation
from profrun.backends.profilers import margin_s
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.plans.model import Plan, Trial

EARLY_S = 60
"""Slurm may send the announcement of the end up to a minute too early (man sbatch, --signal)."""
LONGEST_S = 4 * 3600.0
"""The longest allocation that is made without being asked for: longer ones wait longer in a queue."""


@dataclass(frozen=True)
class Inside:
    """The allocation in which profrun runs.

    Attributes:
        nodes: how many it has.
        gpus: of each node; None where Slurm does not say.
    """

    job: str
    nodes: int
    gpus: int | None = None


@dataclass(frozen=True)
class SlurmPlan(PreparedPlan):
    """A plan for Slurm; its job says for each site whether the trials share an allocation.

    Attributes:
        inside: the allocation that they run in; None: they are queued.
    """

    inside: Inside | None = None


def need_s(plan: Plan, trials: Sequence[Trial]) -> float:
    """Seconds that these trials may take one after another, each up to its limit, with its report."""
    several: dict[str, list[Trial]] = {}
    for trial in trials:
        several.setdefault(trial.collector, []).append(trial)
    limit = plan.job.resources.timeout
    return EARLY_S + sum((limit + margin_s(plan, some[:1])) * len(some) for some in several.values())


def settled(plan: Plan, limits: Mapping[str, float], inside: Inside | None = None) -> Plan:
    """The plan whose cluster block says for each site whether its trials share an allocation.

    Args:
        limits: longest job in seconds, of each partition (``parse_limits``).

    Raises:
        UsageError: the trials are to share an allocation and to run at the same time.
    """
    return settle_allocation(
        plan,
        lambda trials, settings: "one" if inside else _default(plan, trials, settings, limits),
    )


def _default(
    plan: Plan, trials: Sequence[Trial], settings: ClusterSettings, limits: Mapping[str, float]
) -> Choice:
    """``one`` for several trials that fit one time limit and are not to run at the same time."""
    if len(trials) < 2 or (settings.parallel or 1) > 1:
        return "each"
    names = (settings.partition or "").split(",")
    partition = max((limits[name] for name in names if name in limits), default=LONGEST_S)
    longest = settings.time or min(LONGEST_S, partition)
    return "one" if need_s(plan, trials) <= longest else "each"


def parse_limits(text: str) -> dict[str, float]:
    """``sinfo -h -o '%P|%l'``: longest job of each partition in seconds; '' is the default partition."""
    found = {}
    for line in text.splitlines():
        name, _, limit = line.strip().partition("|")
        seconds = clock_seconds(limit)
        if seconds is not None:
            found[name.rstrip("*")] = seconds
            if name.endswith("*"):
                found[""] = seconds
    return found


def clock_seconds(text: str) -> float | None:
    """Slurm's ``[days-]hours:minutes:seconds`` (or ``minutes:seconds``); None for 'infinite' and the like."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def inside_of(environ: Mapping[str, str], plan: Plan) -> Inside | None:
    """The allocation of this process by its environment, if the job's trials are to run in it.

    A job with sites needs several, and with ``cluster.allocation: each`` it queues its own.
    """
    job = environ.get("SLURM_JOB_ID", "")
    if not job.isdigit() or plan.job.cluster.sites or plan.job.cluster.allocation == "each":
        return None
    nodes = environ.get("SLURM_JOB_NUM_NODES") or environ.get("SLURM_NNODES") or "1"
    gpus = re.fullmatch(r"(?:[^:,]+:)?(\d+)", environ.get("SLURM_GPUS_PER_NODE", ""))
    return Inside(job, int(nodes) if nodes.isdigit() else 1, int(gpus.group(1)) if gpus else None)


def told(inside: Inside, text: str) -> Inside:
    """The same with what ``scontrol show job -o`` says of it.

    Raises:
        UsageError: it does not run any more.
    """
    state = re.search(r"\bJobState=(\w+)", text)
    if state is None or state.group(1) != "RUNNING":
        raise UsageError(
            f"this shell says that it is in Slurm's job {inside.job}, which does not run",
            fix="`unset SLURM_JOB_ID`, or start a new allocation with salloc",
        )
    nodes = re.search(r"\bNumNodes=(\d+)", text)
    gpus = re.search(r"\bTresPerNode=\S*?gpu(?::[A-Za-z]\w*)?[:=](\d+)", text)
    return replace(
        inside,
        nodes=int(nodes.group(1)) if nodes else inside.nodes,
        gpus=int(gpus.group(1)) if gpus else inside.gpus,
    )


def check_fits(plan: Plan, inside: Inside) -> None:
    """Refuse trials that need more than the allocation has.

    Raises:
        UsageError: with the command that makes one they fit into.
    """
    resources = plan.job.resources
    settings = plan.job.cluster.of_site(None)
    gpus = gpus_per_node(plan.job, settings)
    missing = []
    if resources.nodes > inside.nodes:
        missing.append(f"{resources.nodes} nodes, and it has {inside.nodes}")
    if inside.gpus is not None and gpus > inside.gpus:
        missing.append(f"{gpus} GPUs on a node, and it has {inside.gpus}")
    if not missing:
        return
    tasks = 1 if is_launcher(plan.trials[0]) else resources.ranks_per_node
    wanted = f"salloc --nodes={resources.nodes} --ntasks-per-node={tasks}"
    wanted += f" --gpus-per-node={gpus}" if gpus else ""
    raise UsageError(
        f"the trials do not fit into the allocation {inside.job}, in which profrun runs",
        why=f"they need {' and '.join(missing)}",
        fix=f"leave it and run `{wanted}`, or set cluster.allocation to each to queue jobs",
    )
