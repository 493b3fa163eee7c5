"""Job -> plan: which trials a run consists of, in which order, with which arguments and environment.

Order. A machine drifts while a run goes on: it warms up, clocks step down, neighbours come and go. Trials
that will be compared are close together::

    for each repeat                  1, 2, ...        so every repeat samples the whole run's drift
      for each collector             as in the job    none beside torch: the overhead of profiling
        for each launch-blocking     off, on          twins side by side
          for each variant           A B              A B A B ... over the run
            for each cluster site    h200, mi300x     its own machines, so they do not disturb each other

The plan is a pure function of the job and the vendor: the same job makes the same ids.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import cast

from profrun.contract.changes import parse
from profrun.contract.command import Command, ImageUsed, Vendor
from profrun.contract.launch_blocking import BLOCKING_ENV
from profrun.contract.points import trial_id
from profrun.contract.profilers import (
    COUNTERS,
    MAPPING,
    NEUTRAL,
    TIMELINE,
    UNPROFILED,
    all_serial,
    become,
    profiler,
)
from profrun.contract.units import counted
from profrun.errors import UsageError
from profrun.jobs.command import fill, fill_command, split
from profrun.jobs.model import Job
from profrun.jobs.nodes import Scalar
from profrun.jobs.profilers import options_of
from profrun.plans.model import Plan, PlanFile, Trial

HASH_SEED = "PYTHONHASHSEED"
"""Python reads it when it starts: from then on the order of a set of texts is the same in each process."""
VENDORS = ("auto", "nvidia", "amd", "none")


def make_plan(job: Job, *, vendor: str = "auto") -> Plan:
    """All trials of a job.

    Args:
        vendor: of the GPUs the run will see: nvidia, amd, none, or auto when only the job will know.

    Raises:
        UsageError: the vendor is none of these, or a collector cannot run on it.
    """
    if vendor not in VENDORS:
        raise UsageError(f"no vendor '{vendor}'", fix=f"use one of {', '.join(VENDORS)}")
    if vendor in ("nvidia", "amd"):
        _refuse_foreign(job, vendor)
    points = sorted(_points(job, vendor), key=lambda point: _comes_last(job, point[1]))
    kept = [point for point in points if not _is_idle_twin(job, vendor, *point)]
    gone = len(points) - len(kept)
    left_out = (f"{counted(gone, 'launch-blocking twin')} left out: no GPU",) if gone else ()
    width = max(3, len(str(len(kept) - 1)))
    trials = (_trial(job, vendor, index, width, *point) for index, point in enumerate(kept))
    return Plan(job=job, trials=tuple(trials), vendor=vendor, left_out=left_out)


def _comes_last(job: Job, collector: str) -> bool:
    """Whether the trials of a collector come after those that measure, which then follow one another.

    Of a sequential job only variants that are proven to be faster are recorded.
    """
    return collector == MAPPING or (job.sequential is not None and collector != UNPROFILED)


def _refuse_foreign(job: Job, vendor: str) -> None:
    """Refuse a profiler that does not run on this vendor's GPUs."""
    for name in job.collectors:
        if name in NEUTRAL or vendor in profiler(name).vendors:
            continue
        found = profiler(name)
        neutral = TIMELINE if found.timeline_on else COUNTERS if found.counters_on else None
        fix = f"use '{neutral}', which fits either vendor" if neutral else "leave it out"
        raise UsageError(f"'{name}' does not run on {vendor} GPUs", fix=fix)


def _points(job: Job, vendor: str) -> Iterator[tuple[int, str, bool, str, str | None]]:
    """(repeat, collector, blocking, variant, site) in the order of execution.

    Where kernels run one at a time anyway there is no launch-blocking twin.
    """
    modes = {"off": (False,), "on": (True,), "both": (False, True)}[job.launch_blocking]
    sites: tuple[str | None, ...] = tuple(job.cluster.sites) or (None,)
    for repeat in range(1, max(map(job.repeats_of, job.collectors)) + 1):
        for collector in (name for name in job.collectors if repeat <= job.repeats_of(name)):
            serial = {site: _is_serial(job, collector, _vendor(job, site, vendor)) for site in sites}
            for blocking in modes:
                for variant in job.variants:
                    for site in sites:
                        if blocking == modes[0] or not (serial[site] or collector == MAPPING):
                            yield repeat, collector, blocking, variant, site


def _is_idle_twin(
    job: Job, vendor: str, repeat: int, collector: str, blocking: bool, variant: str, site: str | None
) -> bool:
    """Whether a point is a launch-blocking twin without a GPU, and so the same trial as its twin."""
    return blocking and job.launch_blocking == "both" and _vendor(job, site, vendor) == "none"


def _is_serial(job: Job, collector: str, vendor: str) -> bool:
    """Whether kernels run one at a time in trials of a collector on a vendor's GPUs."""
    return all_serial(options_of(job, collector, become(collector, vendor)))


def _vendor(job: Job, site: str | None, vendor: str) -> str:
    """Whose GPUs the trials of a site see: its own word, the cluster block's, else ``vendor``."""
    return job.cluster.of_site(site).vendor or vendor


def _trial(
    job: Job,
    vendor: str,
    index: int,
    width: int,
    repeat: int,
    collector: str,
    blocking: bool,
    variant: str,
    site: str | None,
) -> Trial:
    values: Mapping[str, Scalar] = job.variants[variant]
    vendor = _vendor(job, site, vendor)
    if site is not None:
        variant = f"{variant}@{site}"
    changes = tuple(map(parse, job.changes.get(variant.partition("@")[0], ())))
    env = {name: fill(text, values) for name, text in job.env.items()}
    for change in changes:
        env.update(change.env)
    if blocking:
        env.update(BLOCKING_ENV.get(vendor, {}))
    if job.results is not None and job.results.seed is not None:
        env.setdefault(HASH_SEED, str(job.results.seed))
    known = become(collector, vendor)
    return Trial(
        index=index,
        id=trial_id(index, variant, collector, blocking, repeat, width),
        variant=variant,
        values=dict(values),
        collector=collector,
        profiler=known.name if known else None,
        blocking=blocking,
        repeat=repeat,
        argv=split(fill_command(job.command, values)),
        env=env,
        options=options_of(job, collector, known),
        site=site,
        changes=tuple(change.text for change in changes),
    )


def plan_file(plan: Plan) -> PlanFile:
    """What ``plan.json`` holds of a plan."""
    return PlanFile(plan.job.name, plan.vendor, plan.job.warnings, plan.trials, plan.left_out)


def make_command(
    plan: Plan,
    trial: Trial,
    run_name: str,
    *,
    cwd: str | None = None,
    attempt: int = 1,
    image: ImageUsed | None = None,
) -> Command:
    """``command.json`` of a trial: what the wrapper is told (docs/architecture.md).

    Args:
        cwd: folder that the job's relative paths count from, its ``workdir`` too; default this process's.
        attempt: from 1; a resumed or requeued trial is a new attempt.
        image: the container image that is used.
    """
    job = plan.job
    folder = os.path.join(cwd if cwd is not None else os.getcwd(), job.workdir or "")  # noqa: PTH109, PTH118
    options = trial.options[trial.profiler] if trial.profiler else trial.options
    vendor = _vendor(job, trial.site, "auto" if plan.vendor == "none" else plan.vendor)  # the job looks again
    return Command(
        trial=trial.id,
        run=run_name,
        job=job.name,
        variant=trial.variant,
        values=dict(trial.values),
        repeat=trial.repeat,
        collector=trial.collector,
        profiler=trial.profiler,
        vendor=cast("Vendor", vendor),
        blocking=trial.blocking,
        argv=trial.argv,
        cwd=folder.rstrip("/") or "/",
        env=dict(trial.env),
        schedule=job.schedule.settled(),
        ranges=job.ranges,
        options=dict(options),
        ranks=job.resources.nodes * job.resources.ranks_per_node,
        recorded=job.ranks,
        timeout_s=job.resources.timeout,
        grace_s=job.resources.grace,
        output_bytes=job.resources.output,
        attempt=attempt,
        sample=job.sample,
        secrets=job.secrets,
        changes=trial.changes if job.changes else None,
        results=job.results,
        image=image or ImageUsed(),
    )
