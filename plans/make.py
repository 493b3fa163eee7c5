"""Job -> plan: which trials a run consists of, in which order, with which arguments and environment.

Order. A machine drifts while a run goes on: it warms up, clocks step down, neighbours come and go. What will
be compared stands close together::

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
from typing import Any

from profrun.errors import UsageError
from profrun.jobs.command import fill, fill_command, split
from profrun.jobs.model import NEUTRAL, Job, Scalar
from profrun.plans.model import Plan, Trial

VENDORS = ("auto", "nvidia", "amd", "none")

BLOCKING_ENV: Mapping[str, Mapping[str, str]] = {
    "nvidia": {"CUDA_LAUNCH_BLOCKING": "1"},
    # AMD documents both; CUDA_LAUNCH_BLOCKING is not among HIP's variables
    "amd": {"HIP_LAUNCH_BLOCKING": "1", "AMD_SERIALIZE_KERNEL": "3"},
    "none": {},
    "auto": {},  # the wrapper sets them when it has seen the GPU
}
"""What a blocking trial sets. Other trials must have none of them, whatever the caller has."""

BLOCKING_VARIABLES = ("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL")

RESOLVED: Mapping[str, Mapping[str, str]] = {
    "nvidia": {"timeline": "nsys", "counters": "ncu"},
    "amd": {"timeline": "rocprof", "counters": "rocprof"},
}
"""Vendor-neutral collectors by vendor; without a known vendor the wrapper chooses inside the job."""

FOREIGN = {"nsys": "amd", "ncu": "amd", "rocprof": "nvidia"}
"""Collectors that cannot run on a vendor's GPUs."""

SERIAL = ("ncu", "counters")
"""Collectors under which kernels run one at a time anyway: they get no launch-blocking twin."""

AMD_COUNTERS = (
    ("SQ_WAVES", "SQ_INSTS_VALU", "SQ_BUSY_CYCLES", "GRBM_GUI_ACTIVE"),
    ("TCC_HIT_sum", "TCC_MISS_sum"),
)
"""Passes of a ``counters`` trial on AMD when the job names none: counters of MI200 and MI300 alike."""


def make_plan(job: Job, *, vendor: str = "auto") -> Plan:
    """All trials of a job.

    Args:
        vendor: of the GPUs the run will see: nvidia, amd, none, or auto when only the job will know.

    Raises:
        UsageError: the vendor is none of these, or a collector cannot run on it.
    """
    if vendor not in VENDORS:
        raise UsageError(f"no vendor '{vendor}'", fix=f"use one of {', '.join(VENDORS)}")
    for name in job.collectors:
        if FOREIGN.get(name) == vendor:
            neutral = "counters" if name == "ncu" else "timeline"
            raise UsageError(
                f"'{name}' does not run on {vendor} GPUs",
                fix=f"use '{neutral}', which fits either vendor",
            )
    points = list(_points(job))
    width = max(3, len(str(len(points) - 1)))
    trials = (_trial(job, vendor, index, width, *point) for index, point in enumerate(points))
    return Plan(job=job, trials=tuple(trials), vendor=vendor)


def _points(job: Job) -> Iterator[tuple[int, str, bool, str, str | None]]:
    """(repeat, collector, blocking, variant, site) in the order of execution."""
    modes = {"off": (False,), "on": (True,), "both": (False, True)}[job.launch_blocking]
    for repeat in range(1, job.repeats + 1):
        for collector in job.collectors:
            for blocking in modes[:1] if collector in SERIAL else modes:
                for variant in job.variants:
                    for site in job.cluster.get("sites") or (None,):
                        yield repeat, collector, blocking, variant, site


def _trial(
    job: Job,
    vendor: str,
    index: int,
    width: int,
    repeat: int,
    named: str,
    blocking: bool,
    variant: str,
    site: str | None,
) -> Trial:
    values: Mapping[str, Scalar] = job.variants[variant]
    if site is not None:
        vendor = job.cluster["sites"][site].get("vendor", vendor)
        variant = f"{variant}@{site}"
    collector = RESOLVED.get(vendor, {}).get(named, named)
    env = {name: fill(text, values) for name, text in job.env.items()}
    if blocking:
        env.update(BLOCKING_ENV[vendor])
    return Trial(
        index=index,
        id=f"{index:0{width}d}-{variant}-{collector}{'-blocking' if blocking else ''}-r{repeat}",
        variant=variant,
        values=dict(values),
        collector=collector,
        blocking=blocking,
        repeat=repeat,
        argv=split(fill_command(job.command, values)),
        env=env,
        options=_options(job, named, collector),
        site=site,
    )


def _options(job: Job, named: str, collector: str) -> dict[str, Any]:
    """The block of a trial's collector.

    ``timeline`` and ``counters`` lay their own sub-blocks over the tools' blocks. While the vendor is not
    known the options are one block for each tool (``{"nsys": {...}, "rocprof": {...}}``) and the wrapper
    takes the one it needs.
    """
    tools = NEUTRAL.get(named)
    if tools is None:
        return dict(job.options.get(collector, {}))
    blocks: dict[str, dict[str, Any]] = {}
    for tool in tools:
        own = job.options.get(named, {}).get(tool, {})
        blocks[tool] = {**job.options.get(tool, {}), **own}
        if tool == "rocprof" and named == "timeline" and "pmc" not in own:
            blocks[tool].pop("pmc", None)  # counters serialise kernels: no timeline would come of it
        elif tool == "rocprof" and named == "counters":
            blocks[tool].setdefault("pmc", AMD_COUNTERS)
    return blocks if collector == named else blocks[collector]


def plan_json(plan: Plan) -> dict[str, Any]:
    """``plan.json``: what ``--dry-run --json`` prints and a run folder keeps. JSON-safe values only."""
    return {
        "format": 1,
        "job": plan.job.name,
        "vendor": plan.vendor,
        "warnings": list(plan.job.warnings),
        "trials": [
            {
                "index": trial.index,
                "id": trial.id,
                "variant": trial.variant,
                "values": dict(trial.values),
                "collector": trial.collector,
                "blocking": trial.blocking,
                "repeat": trial.repeat,
                "argv": list(trial.argv),
                "env": dict(trial.env),
                "options": _plain(trial.options),
            }
            for trial in plan.trials
        ],
    }


def command_json(
    plan: Plan,
    trial: Trial,
    run_name: str,
    *,
    cwd: str | None = None,
    attempt: int = 1,
    image: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """``command.json`` of a trial: what the wrapper is told (docs/architecture.md).

    Args:
        cwd: folder the job was submitted from, default this process's; the job's ``workdir`` counts from it.
        attempt: from 1; a resumed or requeued trial is a new attempt.
        image: ``reference`` and ``digest`` of the image, None where none is used.
    """
    job = plan.job
    folder = os.path.join(cwd if cwd is not None else os.getcwd(), job.workdir or "")  # noqa: PTH109, PTH118
    return {
        "format": 1,
        "trial": trial.id,
        "attempt": attempt,
        "run": run_name,
        "job": job.name,
        "variant": trial.variant,
        "values": dict(trial.values),
        "repeat": trial.repeat,
        "collector": trial.collector,
        "vendor": site_vendor(plan, trial),
        "blocking": trial.blocking,
        "argv": list(trial.argv),
        "cwd": folder.rstrip("/") or "/",
        "env": dict(trial.env),
        "schedule": {
            "wait": job.schedule.wait,
            "warmup": job.schedule.warmup,
            "active": job.schedule.active,
            "repeat": job.schedule.repeat,
            "skip_first": job.schedule.skip_first,
        },
        "ranges": {"modules": job.ranges.modules, "steps": job.ranges.steps},
        "options": _plain(trial.options),
        "ranks": job.resources.nodes * job.resources.ranks_per_node,
        "timeout_s": job.resources.timeout,
        "grace_s": job.resources.grace,
        **({"secrets": list(job.secrets)} if job.secrets else {}),
        "image": {"reference": None, "digest": None, **(image or {})},
    }


def site_vendor(plan: Plan, trial: Trial) -> str:
    """Whose GPUs this trial will see: its site's word, the cluster block's, the plan's."""
    cluster = plan.job.cluster
    site = (cluster.get("sites") or {}).get(trial.site or "", {})
    return str(site.get("vendor") or cluster.get("vendor") or plan.vendor)


def _plain(value: Any) -> Any:
    """Tuples and mappings as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
