"""Which trials of a sequential job may start, and which are not needed any more: ``Rounds``.

A sequential job (``jobs.change_kinds.Sequential``) runs its trials without a profiler in rounds: one trial of
the base and one of each variant that is not decided yet. A round begins when the one before has ended. Then
profilers record the base and the variants that are faster. Every answer is made of the trials that have ended
alone, so a run that is resumed goes on as if it had not been interrupted.

A trial counts by the mean of its steps, not by the median as elsewhere: what a change gives is told by all of
the time that the program takes, and the steps of a program that waits for workers differ much.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from profrun.analysis.compare.sequential import Decision, SequentialPlan, decide, verdicts
from profrun.analysis.trial_times import mean_ns
from profrun.contract.change_findings import APPLIED, change_of
from profrun.contract.changes import parse
from profrun.contract.profilers import UNPROFILED
from profrun.jobs.change_kinds import Sequential
from profrun.jobs.model import Job
from profrun.plans.model import Plan, Trial
from profrun.runner.round_time import kept_in_time
from profrun.runner.start_order import StartOrder
from profrun.store.state import TrialRecord

TIME_IS_UP = "the time of the budget is used up"
TIME_IS_KEPT = "the time that is left is kept for"
NOT_FASTER = "nothing was proven to be faster"


@dataclass(frozen=True)
class Skip:
    """A trial that is not started, and why, in words that follow the name of its variant."""

    trial: Trial
    why: str


@dataclass(frozen=True)
class Turn:
    """What happens to the trials that wait.

    Attributes:
        may: ids of the trials that may start now.
        skipped: trials that are not needed.
    """

    may: frozenset[str]
    skipped: tuple[Skip, ...] = ()


def decisions(job: Job, records: Sequence[TrialRecord]) -> Mapping[str, Decision]:
    """What the trials so far say of each variant but the base.

    Args:
        job: a sequential job.
        records: the trials of its run; those without a profiler that have finished count.
    """
    assert job.sequential is not None
    base = timed(records, job.sequential.base)
    plan = sequential_plan(job, job.sequential)
    found = {}
    for variant in job.variants:
        if variant != job.sequential.base:
            mine = timed(records, variant)
            both = sorted(base.keys() & mine.keys())
            found[variant] = decide(
                [[base[number].mean_ns] for number in both],
                [[mine[number].mean_ns] for number in both],
                ([base[number].began for number in both], [mine[number].began for number in both]),
                plan,
            )
    return found


def sequential_plan(job: Job, settings: Sequential) -> SequentialPlan:
    """The plan of the decisions of a job: as many rounds as it repeats trials without a profiler."""
    return SequentialPlan(
        rounds=job.repeats_of(UNPROFILED),
        first=settings.first,
        worth=settings.worth,
        narrow=settings.narrow,
        experiments=max(1, len(job.variants) - 1),
    )


@dataclass(frozen=True)
class Timed:
    """A trial without a profiler that measured something.

    Attributes:
        mean_ns: mean of its steps that count, ns.
        began: when it began, unix ns.
    """

    mean_ns: float
    began: float


def timed(records: Iterable[TrialRecord], variant: str) -> dict[int, Timed]:
    """Round -> the trial of a variant, of those that measured something."""
    found = {}
    for record in records:
        mean = mean_ns(record) if _counts(record) and record.variant == variant else None
        if mean is not None:
            found[record.repeat] = Timed(mean, float(record.started_ns or record.index))
    return found


def _counts(record: TrialRecord) -> bool:
    return record.collector == UNPROFILED and record.state == "finished"


def changed_nothing(changes: Sequence[str], records: Iterable[TrialRecord]) -> str | None:
    """Why changes of a program changed nothing; None where one of them did, or if that is not known.

    A change that variables make without the hook is always made.

    Args:
        changes: as jobs write them.
        records: trials of one variant.
    """
    if any(not parse(text).kind.hook for text in changes):
        return None
    told = [one for record in records for one in record.warnings if change_of(one) in changes]
    if not told or any(one.code == APPLIED for one in told):
        return None
    return told[0].why or told[0].what


class Rounds:
    """Tells a driver which trials of a job may start.

    Args:
        plan: of the run.
        read: gives the trials of the run as its folder tells them.
        now_ns: unix time, ns.
    """

    def __init__(
        self,
        plan: Plan,
        read: Callable[[], Sequence[TrialRecord]],
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._plan = plan
        self._read = read
        self._now_ns = now_ns

    def take(
        self, order: StartOrder, active: Collection[str], skip: Callable[[Trial, str], None]
    ) -> list[list[Trial]]:
        """The trials that start now; each inner list is for one ``submit``.

        Args:
            order: of the trials that wait; trials that are not needed do not wait any more.
            active: ids of the trials that are on their way.
            skip: is told of each trial that is not needed, and why.
        """
        while True:
            turn = self.turn(order.waiting, active)
            for one in turn.skipped:
                skip(one.trial, one.why)
            order.drop([one.trial for one in turn.skipped])
            taken = order.take(active, lambda trial, may=turn.may: trial.id in may)  # type: ignore[misc]
            if taken or active or not turn.skipped:
                return taken

    def turn(self, waiting: Sequence[Trial], active: Collection[str]) -> Turn:
        """What may start now, and what is not needed.

        Args:
            waiting: the trials that wait, in the order of the plan.
            active: ids of the trials that are on their way.
        """
        settings = self._plan.job.sequential
        measured = [trial for trial in waiting if trial.collector == UNPROFILED]
        if settings is None or not waiting:
            return Turn(frozenset(trial.id for trial in waiting))
        number = min((trial.repeat for trial in measured), default=0)
        before = [t for t in self._plan.trials if t.id in active and (not number or t.repeat < number)]
        if any(trial.collector == UNPROFILED for trial in before):
            return Turn(frozenset())  # the round before has not ended
        records = self._read()
        if not measured:
            return self._recorded(settings, waiting, records)
        left_s = self._left_s(settings, number, records)
        if left_s is not None and left_s < 0:
            return self._split(measured, {trial.variant: TIME_IS_UP for trial in measured}, number)
        found = decisions(self._plan.job, records)
        wait = {trial.variant for trial in measured}
        why = self._decided(settings, wait, records, found)
        if left_s is not None:
            undecided = {name: one for name, one in found.items() if name in wait - why.keys()}
            why |= _out_of_time(settings, number, undecided, records, left_s)
        return self._split(measured, why, number)

    def _decided(
        self,
        settings: Sequential,
        wait: Collection[str],
        records: Sequence[TrialRecord],
        found: Mapping[str, Decision],
    ) -> dict[str, str]:
        """Variant that waits -> why it needs no further trial.

        Args:
            wait: the variants with trials that wait.
            found: what the trials so far say of each variant but the base.
        """
        why = {
            variant: f"it is decided: {one.state}" for variant, one in found.items() if one.state != "go on"
        }
        for record in records:
            empty = record.state == "finished" and mean_ns(record) is None
            if (
                record.collector == UNPROFILED
                and record.variant != settings.base
                and (record.failed or empty)
            ):
                said = "measured no step" if empty else f"ended as {record.state}"
                why[record.variant] = f"its trial of round {record.repeat} {said}"
        why |= {name: text for name in found if (text := self._nothing(name, records)) is not None}
        if all(variant in why for variant in wait if variant != settings.base):
            why[settings.base] = "all other variants are decided"
        return {variant: text for variant, text in why.items() if variant in wait}

    def _nothing(self, variant: str, records: Sequence[TrialRecord]) -> str | None:
        """That a variant is the same program as the base, because the program has nothing to change."""
        job = self._plan.job
        assert job.sequential is not None
        own = job.changes.get(job.sequential.base, ())
        further = [text for text in job.changes.get(variant, ()) if text not in own]
        if not further or job.variants[variant] != job.variants[job.sequential.base]:
            return None
        mine = [one for one in records if one.variant == variant and one.collector == UNPROFILED]
        why = changed_nothing(further, mine)
        return None if why is None else f"nothing was changed: {why}"

    def _left_s(self, settings: Sequential, number: int, records: Sequence[TrialRecord]) -> float | None:
        """Seconds of the budget that are left for a round that begins now; below 0 where it may not.

        None where there is no limit, no trial has begun, or the round is on its way: it is not cut short.
        """
        begins = [one.started_ns for one in records if one.started_ns is not None]
        if settings.budget is None or not begins:
            return None
        if any(one.repeat == number and one.collector == UNPROFILED and one.attempt for one in records):
            return None
        return settings.budget - (self._now_ns() - min(begins)) / 1e9

    def _recorded(
        self, settings: Sequential, waiting: Sequence[Trial], records: Sequence[TrialRecord]
    ) -> Turn:
        """Profilers record the base and what is faster."""
        found = decisions(self._plan.job, records)
        states = verdicts(list(found.values()), sequential_plan(self._plan.job, settings))
        faster = {variant for variant, state in zip(found, states, strict=True) if state == "faster"}
        kept = faster | {settings.base} if faster else frozenset[str]()
        skipped = tuple(Skip(trial, NOT_FASTER) for trial in waiting if trial.variant not in kept)
        return Turn(frozenset(trial.id for trial in waiting if trial.variant in kept), skipped)

    @staticmethod
    def _split(measured: Sequence[Trial], why: Mapping[str, str], number: int) -> Turn:
        skipped = tuple(Skip(trial, why[trial.variant]) for trial in measured if trial.variant in why)
        left = [trial for trial in measured if trial.variant not in why and trial.repeat == number]
        return Turn(frozenset(trial.id for trial in left), skipped)


def _out_of_time(
    settings: Sequential,
    number: int,
    undecided: Mapping[str, Decision],
    records: Sequence[TrialRecord],
    left_s: float,
) -> dict[str, str]:
    """Variant -> that the time is kept for others, which have gained more so far.

    Before the first decision no gain is known. Then the first variants of the job are kept, because
    ``profrun improve`` puts the largest promise there. A variant that is stopped is not proven, so no error
    becomes more likely, whatever its own trials say.

    Args:
        number: the round that begins.
        undecided: what the trials so far say of the variants that are not decided.
        left_s: seconds of the budget that are left.
    """
    order = sorted(undecided, key=lambda name: undecided[name].ratio or 1.0)
    kept = kept_in_time(settings, number, order, records, left_s)
    return {name: f"{TIME_IS_KEPT} {', '.join(kept)}" for name in order if name not in kept}
