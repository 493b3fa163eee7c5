"""How often the remedy of a rule helped, and how far its promise held: from improvements that were measured.

``profrun improve`` keeps what each finding promised beside what the experiment gave
(``store.improvement``). ``measured_rows`` makes rows of such a document, ``precision`` counts them per rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from profrun.store.improvement import ExperimentState, Improvement


@dataclass(frozen=True)
class MeasuredRow:
    """One experiment that a finding asked for.

    Attributes:
        program: what was improved.
        gpus: names of the GPUs, each once; empty without a GPU.
        rule: that asked for it.
        change: as jobs write it.
        promised: the most that the finding allowed, as a part of the step; None where it stated nothing.
        allowed: the sum of what all findings allowed that asked for this change, at most 1; None as above.
        gain: measured, as a part of the step; negative where the step got longer.
        interval: of the gain, 95 %.
        state: what is known.
    """

    program: str
    gpus: tuple[str, ...]
    rule: str
    change: str
    promised: float | None
    allowed: float | None
    gain: float
    interval: tuple[float, float]
    state: ExperimentState

    @property
    def excess(self) -> float | None:
        """By how much the gain is surely larger than what was promised; negative where the promise holds.

        A change may take away what several findings found, so their promises count together.
        """
        return None if self.allowed is None else self.interval[0] - self.allowed


@dataclass(frozen=True)
class Precision:
    """One rule.

    Attributes:
        asked: experiments that its findings asked for and that measured something.
        helped: of these, proven to help. hurt: proven to be slower.
        findings: findings that asked for them, one per program and machine; remedied: of these, one of whose
            experiments helped.
        gains: gains of those that helped, as parts of the step, the largest first.
        broken: promises that the measured gain exceeds surely.
        programs: names of the programs.
    """

    rule: str
    asked: int
    helped: int
    hurt: int
    findings: int
    remedied: int
    gains: tuple[float, ...]
    broken: int
    programs: tuple[str, ...]

    @property
    def typical(self) -> float | None:
        """Median gain of the experiments that helped."""
        return median(self.gains) if self.gains else None


def measured_rows(found: Improvement, program: str) -> list[MeasuredRow]:
    """The experiments of an improvement that measured something, once for each finding that asked."""
    return [
        MeasuredRow(
            program,
            tuple(dict.fromkeys(found.gpus)),
            promise.rule,
            " ".join(one.changes) or one.name,
            promise.share,
            None if promise.share is None else one.promised,
            1 - one.ratio,
            (1 - one.interval[1], 1 - one.interval[0]),
            one.state,
        )
        for one in found.settled
        for promise in one.promises
        if one.ratio is not None and one.interval is not None
    ]


def precision(rows: Iterable[MeasuredRow]) -> list[Precision]:
    """One entry per rule that asked for something, in the order of their names."""
    by_rule: dict[str, list[MeasuredRow]] = {}
    for row in rows:
        by_rule.setdefault(row.rule, []).append(row)
    return [_precision(rule, mine) for rule, mine in sorted(by_rule.items())]


def _precision(rule: str, rows: Sequence[MeasuredRow]) -> Precision:
    helped = [row for row in rows if row.state == "proven"]
    findings = {(row.program, row.gpus) for row in rows}
    return Precision(
        rule=rule,
        asked=len(rows),
        helped=len(helped),
        hurt=sum(row.state == "slower" for row in rows),
        findings=len(findings),
        remedied=len({(row.program, row.gpus) for row in helped}),
        gains=tuple(sorted((row.gain for row in helped), reverse=True)),
        broken=sum(row.excess is not None and row.excess > 0 for row in rows),
        programs=tuple(sorted({row.program for row in rows})),
    )
