"""What the trials of a stage of ``profrun improve`` say of each experiment: ``results``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from profrun.analysis.compare.same_result import same_result
from profrun.analysis.compare.sequential import verdicts
from profrun.analysis.step_time import side_value
from profrun.analysis.trial_times import mean_ns
from profrun.contract.change_findings import CODES
from profrun.contract.changes import parse
from profrun.contract.profilers import UNPROFILED
from profrun.jobs.model import Job
from profrun.reports.same_result_text import same_result_text
from profrun.runner.rounds import changed_nothing, decisions, sequential_plan
from profrun.store.improvement import ExperimentResult, ExperimentState, SameAnswer
from profrun.store.results import read_results
from profrun.store.run_result import read_findings
from profrun.store.state import RunState, TrialRecord

if TYPE_CHECKING:
    from profrun.analysis.compare.sequential import Decision

Records = Mapping[str, Sequence[TrialRecord]]


def results(
    job: Job, experiments: Sequence[ExperimentResult], state: RunState, accept: float | None
) -> tuple[ExperimentResult, ...]:
    """The experiments of a stage with what its trials say, in the same order.

    Args:
        job: of the stage, a sequential one.
        experiments: as they were planned.
        state: the run of the stage.
        accept: largest relative difference of what the program computes that counts as the same; None: what
            the kind of the change allows.
    """
    assert job.sequential is not None
    found = decisions(job, state.trials)
    proven = verdicts([found[one.name] for one in experiments], sequential_plan(job, job.sequential))
    records = {
        variant: [one for one in state.trials if one.variant == variant and one.collector == UNPROFILED]
        for variant in job.variants
    }
    pairs = read_findings(state.run)[0].comparisons
    base = job.sequential.base
    explained = {
        pair.b_variant: pair.changed for pair in pairs if pair.kind == "change" and pair.a_variant == base
    }
    return tuple(
        _result(one, found[one.name], faster, records, base, accept, explained)
        for one, faster in zip(experiments, proven, strict=True)
    )


def _result(
    planned: ExperimentResult,
    decision: Decision,
    verdict: str,
    records: Records,
    base: str,
    accept: float | None,
    explained: Mapping[str, Sequence[str]],
) -> ExperimentResult:
    """One experiment with what its trials say.

    Args:
        verdict: faster, slower or neither, after the correction for many experiments.
        base: the variant of the base.
    """
    mine, theirs = (
        [one for one in records[name] if one.state == "finished" and mean_ns(one) is not None]
        for name in (planned.name, base)
    )
    rounds = {one.repeat for one in mine} & {one.repeat for one in theirs}
    pair = [[one for one in side if one.repeat in rounds] for side in (theirs, mine)]
    times = [_step_ns(side) for side in pair]
    same = _same(planned, pair[0], pair[1], accept)
    state, why = _state(planned, decision, verdict, same, records[planned.name])
    return replace(
        planned,
        state=state,
        why=why,
        ratio=decision.ratio,
        interval=decision.interval,
        p_value=decision.p_value,
        rounds=len(rounds),
        base_ns=times[0],
        step_ns=times[1],
        start_ns=_longer_start(pair[0], pair[1]),
        same=same,
        said=_said(records[planned.name]),
        explained=tuple(explained.get(planned.name, ())),
    )


def _step_ns(records: Sequence[TrialRecord]) -> int | None:
    """Step time of the trials of a side, ns, as the decision takes it; None where there are none."""
    means = [[mean] for one in records if (mean := mean_ns(one)) is not None]
    return round(side_value(means, "mean")) if means else None


def _state(
    planned: ExperimentResult,
    decision: Decision,
    verdict: str,
    same: SameAnswer,
    records: Sequence[TrialRecord],
) -> tuple[ExperimentState, str]:
    """What is known of an experiment, and why where that needs a reason."""
    failed = next((one for one in records if one.failed), None)
    if failed is not None:
        return "failed", failed.reason or f"its trial ended as {failed.state}"
    skipped = next((one.reason or "" for one in records if one.state == "skipped"), "")
    if not any(one.attempt for one in records):
        return "not tried", skipped
    without = _not_applied(planned, records)
    if without is not None:
        return "not applied", without
    if verdict == "faster":
        return ("not the same", same.text) if same.verdict == "differs" else ("proven", "")
    if verdict == "slower":
        return "slower", ""
    if verdict in ("no effect", "no gain"):
        return "no gain", ""
    return "not proven", skipped if verdict == "go on" else ""


def _not_applied(planned: ExperimentResult, records: Sequence[TrialRecord]) -> str | None:
    """Why the changes of an experiment changed nothing; None where one of them did, or if that is not known.

    A variant with values of its own is always made.
    """
    return None if planned.values else changed_nothing(planned.changes, records)


def _same(
    planned: ExperimentResult,
    base: Sequence[TrialRecord],
    changed: Sequence[TrialRecord],
    accept: float | None,
) -> SameAnswer:
    """Whether the trials of both sides computed the same."""
    exactness = [parse(text).kind.exactness for text in planned.changes]
    sides = [[read_results(one.paths) for one in side] for side in (base, changed)]
    found = same_result(sides[0], sides[1], exactness, accept=accept)
    return SameAnswer(found.verdict, found.kind, found.difference, found.tolerance, same_result_text(found))


def _said(records: Sequence[TrialRecord]) -> tuple[str, ...]:
    """What the hook said of the changes, each once."""
    said = (one.what for record in records for one in record.warnings if one.code in CODES)
    return tuple(dict.fromkeys(said))


def _longer_start(base: Sequence[TrialRecord], changed: Sequence[TrialRecord]) -> int | None:
    """How much longer the changed program is outside of its steady steps, ns: it starts, or compiles."""
    sides = [[rest for one in side if (rest := _outside(one)) is not None] for side in (base, changed)]
    if not all(sides):
        return None
    return round(median(sides[1]) - median(sides[0]))


def _outside(record: TrialRecord) -> float | None:
    """Time of a trial that its steps would not take if all of them were as the steady ones, ns."""
    mean, took_ns = mean_ns(record), record.took_ns
    if took_ns is None or mean is None:
        return None
    outside = took_ns - record.steps.count * mean
    return outside if math.isfinite(outside) else None
