"""What of a job, its plan and its commands may be shown and kept: the same without secrets. Pure.

``secrets_of`` finds the values of a plan's secrets, by the names and the forms of ``contract.redact``. The
other functions hide them. Where a job has no secret they change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from profrun.contract.codec import to_json
from profrun.contract.private import Private
from profrun.contract.redact import HIDDEN, Redactor, secrets_of_arguments, secrets_of_text
from profrun.jobs.command import text_of
from profrun.jobs.dump import dump_job
from profrun.jobs.model import Job
from profrun.jobs.nodes import Scalar
from profrun.plans.model import Plan, Trial


def redactor_of(plan: Plan) -> Redactor:
    """What hides the secrets of a plan."""
    return Redactor(secrets_of(plan))


def secrets_of(plan: Plan) -> tuple[str, ...]:
    """The values in a plan that are secrets: of variants and variables by their names, of the command by its
    options, what has the form of a secret, and both in the ``cluster`` block (``setup``, ``pod_patch``).
    Sorted, each once, without what is empty or hidden already."""
    found = set(_of_document(to_json(plan.job.cluster)))
    for values in plan.job.variants.values():
        found.update(_of_mapping(values))
    for trial in plan.trials:
        found.update(_of_trial(trial))
    return tuple(sorted(found - {"", HIDDEN}))


def redactor_of_trial(trial: Trial) -> Redactor:
    """What hides the secrets of one trial."""
    return Redactor(tuple(sorted({*_of_trial(trial)} - {"", HIDDEN})))


def _of_trial(trial: Trial) -> Iterator[str]:
    yield from _of_mapping(trial.env)
    yield from _of_mapping(trial.values)
    yield from secrets_of_arguments(trial.argv)


def _of_mapping(values: Mapping[str, Scalar]) -> Iterator[str]:
    for name, value in values.items():
        text = text_of(value)
        if Redactor().named(name, value) == HIDDEN:
            yield text
        elif isinstance(value, str):
            yield from secrets_of_text(text)


def _of_document(value: object) -> Iterator[str]:
    """The secrets of settings that are handed to a cluster: texts are shell lines, and a mapping of ``name``
    and ``value`` is a variable of a manifest. ``key`` is a word of manifests and tells nothing."""
    if isinstance(value, str):
        yield from secrets_of_text(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _of_document(item)
    elif isinstance(value, dict):
        texts = {str(name): item for name, item in value.items() if isinstance(item, str) and name != "key"}
        if {"name", "value"} <= texts.keys():
            texts[texts["name"]] = texts["value"]
        yield from _of_mapping(texts)
        for item in value.values():
            yield from _of_document(item)


def public_job(job: Job, redactor: Redactor) -> Job:
    """The job without secrets: a valid job that says what was run, and that cannot repeat it."""
    return replace(
        job,
        command=redactor.text(job.command),
        variants={name: _mapping(values, redactor) for name, values in job.variants.items()},
        env=cast("dict[str, str]", _mapping(job.env, redactor)),
    )


def public_trial(trial: Trial, redactor: Redactor) -> Trial:
    """A trial of ``plan.json`` without secrets."""
    return replace(
        trial,
        values=_mapping(trial.values, redactor),
        argv=redactor.arguments(trial.argv),
        env=cast("dict[str, str]", _mapping(trial.env, redactor)),
        options=cast("dict[str, dict[str, object]]", redactor.value(to_json(trial.options))),
    )


def public_plan(plan: Plan, redactor: Redactor) -> Plan:
    """A plan without secrets."""
    trials = tuple(public_trial(trial, redactor) for trial in plan.trials)
    return replace(plan, job=public_job(plan.job, redactor), trials=trials)


def kept_texts(spec: str, plan: Plan, redactor: Redactor) -> tuple[str, str, Private | None]:
    """``job.yaml`` and ``resolved.yaml`` of a run without secrets, comments included, and ``private.json``,
    which holds both as they are; None where they hold no secret."""
    resolved = dump_job(plan.job)
    shown = (redactor.text(spec), redactor.text(dump_job(public_job(plan.job, redactor))))
    hides = shown != (spec, resolved)
    return *shown, Private(values=redactor.values, job=spec, resolved=resolved) if hides else None


def _mapping(values: Mapping[str, Scalar], redactor: Redactor) -> dict[str, Scalar]:
    return {name: cast("Scalar", redactor.named(name, value)) for name, value in values.items()}


def hidden_in(plan: Plan) -> bool:
    """Whether a plan was made of a spec whose secrets are hidden, so that it cannot be run."""
    trials = (
        text
        for trial in plan.trials
        for text in (*trial.argv, *trial.env.values(), *map(text_of, trial.values.values()))
    )
    return any(HIDDEN in text for text in (*trials, json.dumps(to_json(plan.job.cluster))))
