"""What a rule finds: ``RuleFinding``, with a row for each kernel, op, rank or device that it is about."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from profrun.analysis.json import to_json
from profrun.analysis.rules.step_cost import Basis, Gain, Side
from profrun.contract.denominator import STEP, Denominator
from profrun.contract.finding import Finding


@dataclass(frozen=True)
class FindingRow:
    """One of the things that a finding is about.

    Attributes:
        name: the kernel, op, call, direction, device or rank.
        calls: how often, None where that means nothing.
        total_ns: time in all judged steps, ns, None where that means nothing.
        detail: what else is known of it, a few words.
    """

    name: str
    calls: int | None = None
    total_ns: int | None = None
    detail: str = ""


@dataclass(frozen=True)
class RuleFinding(Finding):
    """One finding of a rule: ``code`` is the rule's id, ``why`` its meaning, ``fix`` its advice.

    A diagnosis has at most one finding of each rule.

    Attributes:
        title, threshold: the rule's words.
        remedy: what to change, in a few words; empty for findings without a gain.
        extent: what or how much of it there is, in a few words that follow the title; may be empty.
        evidence: numbers by name (units in the names), ``names`` of kernels, ops or calls, ``slices`` to
            open.
        quality: codes of warnings about the recording that affect the numbers it rests on.
        gain_ns: the most that could be gained, ns per step of one rank (or of the recording); None for
            findings that only describe, and for those about the recording itself.
        step_ns: the step time that ``gain_ns`` is a part of; None without a gain.
        gain_share: gain_ns / step_ns.
        work_ns: how much shorter the work itself could be, ns per step; more than ``gain_ns`` where the step
            does not wait for all of it.
        basis: which step time that is: ``unprofiled``, ``profiled`` or ``recording``.
        side: whose time is gained, ``host`` or ``gpu``.
        denominator: what times "per step" are of: a step, the run, or the recording.
        bound: how the rule computes the most that could be gained.
        explained_by: code of the finding of which this one is a consequence or a part; None for a finding of
            its own.
        because: why it is, with the numbers of this trace; empty for a finding of its own.
        rows: what it is about, most time first; empty for a single thing.
        experiments: changes that may help, as jobs write them (``contract.changes``): those of the rule that
            can change this program.
    """

    title: str = ""
    threshold: str = ""
    remedy: str = ""
    extent: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    quality: tuple[str, ...] = ()
    gain_ns: int | None = None
    step_ns: int | None = None
    gain_share: float | None = None
    work_ns: int | None = None
    basis: Basis | None = None
    side: Side | None = None
    denominator: Denominator = STEP
    bound: str = ""
    explained_by: str | None = None
    because: str = ""
    rows: tuple[FindingRow, ...] = ()
    experiments: tuple[str, ...] = ()

    @property
    def gain(self) -> Gain | None:
        """The most that could be gained, as one value."""
        if self.gain_ns is None or self.step_ns is None or self.basis is None or self.side is None:
            return None
        return Gain(
            self.gain_ns, self.step_ns, self.basis, self.side, self.work_ns or self.gain_ns, self.denominator
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; keys as in the attributes."""
        found: dict[str, Any] = to_json(self)
        return found


def numbered(findings: Sequence[RuleFinding]) -> list[tuple[int | None, RuleFinding]]:
    """The findings, those that no other explains counted from 1; None for the others.

    Args:
        findings: as ``diagnose`` gives them.
    """
    numbers = itertools.count(1)
    return [(next(numbers) if one.explained_by is None else None, one) for one in findings]
