"""The jobs of the stages of ``profrun improve``, made of the user's job. Pure.

Each stage is an ordinary run: the *base* (what a step costs, and findings), the *experiments* (the base and
one variant for each experiment, in rounds), and all that helped *together* with the base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from profrun.analysis.rules.experiments import Experiment
from profrun.contract.changes import with_own
from profrun.contract.profilers import COUNTERS, MAPPING, TIMELINE, UNPROFILED, profiler
from profrun.contract.results import Results
from profrun.errors import UsageError
from profrun.jobs.change_kinds import Sequential
from profrun.jobs.dump import dump_job
from profrun.jobs.load import load_text
from profrun.jobs.model import Job
from profrun.jobs.problems import suggest
from profrun.jobs.spec_kinds import Point
from profrun.plans.make import make_plan
from profrun.plans.public import kept_texts, redactor_of

BASE_TRIALS = 2
"""Trials without a profiler of the base stage."""
SEED = 0
TOGETHER = "together"
"""Name of the variant with everything that helped."""
IMPROVED = "improved"
"""Name of that variant in the job that the user keeps."""


def base_variant(job: Job, wanted: str | None) -> str:
    """The variant that is to be improved: the first, or the one that is named.

    Raises:
        UsageError: the job has no variant of that name.
    """
    if wanted is not None and wanted not in job.variants:
        raise UsageError(f"there is no variant '{wanted}'", fix=suggest(wanted, job.variants, "variants are"))
    return wanted or next(iter(job.variants))


def own_experiments(job: Job, base: str) -> tuple[Experiment, ...]:
    """The other variants of a job: each may be an experiment of the user's own."""
    return tuple(
        Experiment(name, job.changes.get(name, ()), values)
        for name, values in job.variants.items()
        if name != base
    )


def base_job(job: Job, base: str) -> Job:
    """The job of the base stage: one variant, without a profiler and under the job's own ones."""
    collectors = tuple(dict.fromkeys((UNPROFILED, *job.collectors)))
    if not any(_is_timeline(name) for name in collectors):
        collectors = tuple(dict.fromkeys((*collectors, *Job.collectors)))
    return replace(
        _only(job, {base: dict(job.variants[base])}, {base: job.changes.get(base, ())}),
        collectors=collectors,
        repeats={name: BASE_TRIALS if name == UNPROFILED else 1 for name in collectors if name != MAPPING},
    )


def rounds_job(
    job: Job,
    base: str,
    experiments: Sequence[Experiment],
    *,
    stage: str,
    rounds: int,
    worth: float,
    budget_s: float | None,
    recorded: bool = True,
    narrow: float | None = None,
) -> Job:
    """The job of a stage that runs in rounds: the base, and a variant for each experiment.

    Args:
        stage: ends the job's name: ``experiments`` or ``together``.
        rounds: the most trials of each variant.
        worth: the smallest gain that matters, as a part of the step.
        budget_s: seconds after which no new round begins; None: no limit.
        recorded: a profiler records what is faster.
        narrow: as in ``jobs.change_kinds.Sequential``.
    """
    own = job.changes.get(base, ())
    variants: dict[str, Point] = {base: dict(job.variants[base])}
    changes = {base: own}
    for one in experiments:
        variants[one.name] = {**job.variants[base], **one.values}
        changes[one.name] = one.changes if one.name in job.variants else with_own(own, one.changes)
    collectors = tuple(name for name in base_job(job, base).collectors if name != MAPPING)
    timeline = next(name for name in collectors if _is_timeline(name))
    found = replace(
        _only(job, variants, changes),
        name=f"{job.name[: 63 - len(stage)]}-{stage}",
        collectors=(UNPROFILED, timeline) if recorded else (UNPROFILED,),
        repeats={UNPROFILED: rounds, timeline: 1} if recorded else rounds,
        ranges=replace(job.ranges, lines=False),
        sequential=Sequential(base=base, worth=worth, budget=budget_s, narrow=narrow),
    )
    return load_text(dump_job(found), f"{job.source or job.name} ({stage})")


def free_name(job: Job, name: str) -> str:
    """This name, or a longer one that no variant of the job has."""
    while name in job.variants:
        name += "-again"
    return name


def public_text(job: Job) -> str:
    """The spec of a job with its secrets hidden, as profrun keeps it in a run's folder."""
    plan = make_plan(job)
    return kept_texts("", plan, redactor_of(plan))[1]


def improved_name(job: Job) -> str:
    """The name of the variant that ``improved_job`` adds."""
    return free_name(job, IMPROVED)


def improved_job(job: Job, base: str, kept: Experiment) -> Job:
    """The user's job with one more variant, ``improved``: the base with everything that helped."""
    name = improved_name(job)
    values = {**job.variants[base], **kept.values}
    changes = with_own(job.changes.get(base, ()), kept.changes)
    return replace(
        job,
        variants={**job.variants, name: values},
        changes={**job.changes, **({name: changes} if changes else {})},
        sequential=None,
    )


def _only(job: Job, variants: Mapping[str, Point], changes: Mapping[str, tuple[str, ...]]) -> Job:
    """The job with these variants, asked for what it computes; without what is about its other variants."""
    return replace(
        job,
        variants=variants,
        changes={name: given for name, given in changes.items() if given},
        launch_blocking="off",
        expect=(),
        results=job.results or Results(seed=SEED),
        sequential=None,
    )


def _is_timeline(name: str) -> bool:
    """Whether a collector records the program as it runs, with a time axis."""
    if name in (UNPROFILED, MAPPING, COUNTERS):
        return False
    return name == TIMELINE or not profiler(name).serial
