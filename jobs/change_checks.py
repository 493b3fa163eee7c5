"""Checks of what a job says of changes of its program: ``changes`` and ``sequential``."""

from __future__ import annotations

from profrun.contract.changes import parse
from profrun.contract.profilers import UNPROFILED
from profrun.contract.rounds import MOST
from profrun.jobs.model import Job
from profrun.jobs.nodes import Node, find
from profrun.jobs.problems import Problems, suggest


def check_changes(job: Job, root: Node, problems: Problems) -> None:
    """Refuse changes of a variant that is not there, or that exclude each other."""
    for variant, changes in job.changes.items():
        if variant not in job.variants:
            problems.bad(
                find(root, "changes", variant),
                f"changes: there is no variant '{variant}'",
                suggest(variant, job.variants, "variants"),
            )
        groups = [parse(text).group for text in changes]
        twice = next((group for group in groups if groups.count(group) > 1), None)
        if twice is not None:
            both = [text for text, group in zip(changes, groups, strict=True) if group == twice]
            problems.bad(
                find(root, "changes", variant),
                f"changes.{variant}: {' and '.join(both)} exclude each other",
                "keep one of them",
            )


def check_sequential(job: Job, root: Node, problems: Problems) -> None:
    """Refuse rounds that can decide nothing, and options that no round has a place for."""
    settings = job.sequential
    if settings is None:
        return
    where = find(root, "sequential")
    if settings.base not in job.variants:
        problems.bad(
            find(root, "sequential", "base"),
            f"sequential.base: there is no variant '{settings.base}'",
            suggest(settings.base, job.variants, "variants"),
        )
    elif len(job.variants) == 1:
        problems.bad(
            where,
            f"sequential: there is no variant beside '{settings.base}'",
            "add the variants that are compared with it",
        )
    if UNPROFILED not in job.collectors:
        problems.bad(
            where,
            "sequential: no trials without a profiler are collected",
            "add 'none' to collectors: its step times decide",
        )
    elif (rounds := job.repeats_of(UNPROFILED)) < settings.first:
        problems.bad(
            find(root, "repeats") if root.get("repeats") else where,
            f"repeats: {rounds} of 'none' is less than sequential.first, {settings.first}",
            f"write repeats: {{none: {max(MOST, settings.first)}}}",
        )
    if job.launch_blocking != "off":
        problems.bad(
            find(root, "launch_blocking"),
            f"launch_blocking: '{job.launch_blocking}' does not go with sequential",
            "use 'launch_blocking: off'",
        )
    if job.cluster.sites:
        problems.bad(
            find(root, "cluster", "sites"),
            "cluster.sites: several sites do not go with sequential",
            "submit one job for each site: the trials of a round are compared with each other",
        )
