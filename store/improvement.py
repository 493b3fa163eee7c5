"""``improvement.json``: what ``profrun improve`` tried on the program of a run, and what each change gave.

It lies in the folder of the run that was improved. It is written when the stages begin and after each of
them, so an improvement that was interrupted can go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from profrun.contract.codec import DocumentError, from_json, to_json
from profrun.contract.points import Scalar
from profrun.errors import InputError
from profrun.store.files import read_json, write_json
from profrun.store.runs import Run

FORMAT = 1

ExperimentState = Literal[
    "proven",
    "not the same",
    "no gain",
    "not proven",
    "slower",
    "not applied",
    "failed",
    "not tried",
    "planned",
]
"""What is known of an experiment, in the order in which they are shown.

* ``proven``: it is faster, with the promised error rate over all experiments, and computes the same.
* ``not the same``: it is proven to be faster, but computes something else.
* ``no gain``: it cannot gain as much as is worth finding.
* ``not proven``: the trials do not tell.
* ``slower``: that is proven.
* ``not applied``: the program has nothing that the change is about.
* ``failed``: the program ended with an error.
* ``not tried``: the budget did not allow it.
* ``planned``: it is still to be run.
"""


@dataclass(frozen=True)
class Promised:
    """What a finding said that could be gained at most.

    Attributes:
        rule: id of the rule.
        gain_ns: ns per step of the base; None where the finding states no gain.
        share: the same as a part of the step.
    """

    rule: str
    gain_ns: int | None = None
    share: float | None = None


def promised_together(promises: Iterable[Promised]) -> float | None:
    """The most that one change can gain, as a part of the step, where several findings ask for it.

    The change may take away what each of them found, so their promises add up, to the whole step at most. If
    two findings count the same time, the sum is larger than needed, but it is still an upper bound.

    Returns:
        The sum of the promises; None where no finding states a gain.
    """
    shares = [one.share for one in promises if one.share is not None]
    return min(1.0, sum(shares)) if shares else None


@dataclass(frozen=True)
class SameAnswer:
    """Whether an experiment computes the same as the base (``analysis.compare.same_result``).

    Attributes:
        verdict: same, differs or unknown.
        kind: what was compared: loss, parameters or output.
        difference: largest relative difference of a value; None where there is none.
        tolerance: largest that counts as the same.
        text: all of it in a few words.
    """

    verdict: str
    kind: str = "none"
    difference: float | None = None
    tolerance: float | None = None
    text: str = ""


@dataclass(frozen=True)
class ExperimentResult:
    """One experiment.

    Attributes:
        name: of its variant.
        changes: as jobs write them (``contract.changes``).
        values: of the variant, laid over those of the base.
        promises: of the findings that ask for it.
        state: what is known.
        ratio: step time over that of the base; None where nothing was measured.
        interval: of the ratio, 95 %, valid although the trials were looked at after each round.
        p_value: of "both take equally long", sequential; before the correction for many experiments.
        rounds: how many rounds of trials the decision is of.
        base_ns, step_ns: step time of both sides in these rounds, ns.
        start_ns: how much longer it takes until the steps that are measured begin, ns; compiling is in it.
        same: whether it computes the same.
        said: what the hook said of the changes.
        why: why it failed, was not applied or was not tried; else empty.
        explained: what changed most inside of a step, one sentence each.
    """

    name: str
    changes: tuple[str, ...] = ()
    values: dict[str, Scalar] = field(default_factory=dict)
    promises: tuple[Promised, ...] = ()
    state: ExperimentState = "planned"
    ratio: float | None = None
    interval: tuple[float, ...] | None = None
    p_value: float | None = None
    rounds: int = 0
    base_ns: int | None = None
    step_ns: int | None = None
    start_ns: int | None = None
    same: SameAnswer = SameAnswer("unknown")
    said: tuple[str, ...] = ()
    why: str = ""
    explained: tuple[str, ...] = ()

    @property
    def promised(self) -> float | None:
        """The most that it could gain, as a part of the step; None where nothing was promised."""
        return promised_together(self.promises)

    @property
    def gain(self) -> float | None:
        """How much shorter the step is, as a part of that of the base; negative where it is longer."""
        return None if self.ratio is None else 1 - self.ratio


@dataclass(frozen=True)
class Improvement:
    """All of it.

    Attributes:
        run: name of the run that was improved; its findings ask for the experiments.
        base: its variant. base_changes: the changes that it has already, as jobs write them.
        experiments: in the order of what was promised.
        together: everything that helped at once, against the base again; None where nothing helped.
        left_out: names of experiments that helped and are not in it, because a better one excludes them.
        experiments_run, together_run: names of the runs of the stages; None while there are none.
        budget_s: time for all stages, as the user gave it. spent_s: time that they took.
        step_ns: step time of the base run, ns.
        gpus: names of the GPUs.
        rounds: the most trials of each variant.
        worth: smallest gain that was looked for, as a part of the step.
        done: all stages have ended.
        improved: name of the variant with everything that helped, in ``improved.yaml``; empty where nothing
            was kept.
    """

    run: str
    base: str
    experiments: tuple[ExperimentResult, ...] = ()
    together: ExperimentResult | None = None
    left_out: tuple[str, ...] = ()
    experiments_run: str | None = None
    together_run: str | None = None
    budget_s: float | None = None
    spent_s: float = 0.0
    step_ns: int | None = None
    gpus: tuple[str, ...] = ()
    rounds: int = 0
    worth: float = 0.0
    accept: float | None = None
    done: bool = False
    improved: str = ""
    base_changes: tuple[str, ...] = ()
    format: int = FORMAT

    @property
    def settled(self) -> tuple[ExperimentResult, ...]:
        """The experiments, each with the last that is known of it.

        One that the last stage ran alone has the numbers and the verdict of that stage: its trials are new,
        so its gain is not too large by chance, and nobody is told two gains of one change.
        """
        return tuple(self._settled(one) for one in self.experiments)

    def _settled(self, one: ExperimentResult) -> ExperimentResult:
        last = self.together
        if last is None or (last.changes, last.values) != (one.changes, one.values):
            return one
        return replace(last, name=one.name, promises=one.promises, explained=one.explained)


def write_improvement(run: Run, found: Improvement) -> None:
    """Keep an improvement in the folder of its run.

    Raises:
        UnavailableError: the folder cannot be written.
    """
    document: dict[str, Any] = to_json(found)
    write_json(run.improvement, document)


def read_improvement(run: Run) -> Improvement | None:
    """The improvement of a run; None where there is none, or another version of profrun wrote it.

    Raises:
        InputError: the file is damaged.
    """
    document = read_json(run.improvement)
    if document is None or document.get("format") != FORMAT:
        return None
    try:
        return from_json(Improvement, document)
    except DocumentError as error:
        raise InputError(
            f"{run.improvement} is damaged",
            why=str(error),
            fix=f"`profrun improve {run.name}` makes it again",
        ) from error
