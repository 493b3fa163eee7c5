"""What a rule is: a function with an id, its words, its severity, and how it bounds what could be gained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.rules.step_cost import Gain
from profrun.contract.finding import Severity

if TYPE_CHECKING:
    from profrun.analysis.rules.context import Context

RuleSeverity = Severity | Literal["by gain"]
"""``by gain``: each finding has a gain, and its share of the step decides (``step_cost.severity_of``)."""


@dataclass(frozen=True)
class Hit:
    """What a rule found. A rule finds at most one; several things of the same kind are its ``rows``.

    Attributes:
        what: one sentence with the numbers in it.
        numbers: evidence by name; keys end in their unit (_ns, _bytes, _share, ...).
        slices: slices to open, a few, the worst first.
        names: kernels, ops or calls it is about.
        gain: the most that could be gained; rules whose severity is ``by gain`` give it.
        idle_ns: idle time of the GPU that it accounts for, ns per step; what findings by cause compare.
        rows: what it is about, most time first.
        fix: advice for this program; None for the rule's.
        remedy: the same in a few words; None for the rule's.
        extent: what or how much of it there is, in a few words that follow the rule's title; '' for nothing.
        at_most: the gravest that this finding can be, where the evidence carries no more.
    """

    what: str
    numbers: Mapping[str, object] = field(default_factory=dict)
    slices: Sequence[int] = ()
    names: Sequence[str] = ()
    gain: Gain | None = None
    idle_ns: float = 0.0
    rows: Sequence[FindingRow] = ()
    fix: str | None = None
    remedy: str | None = None
    extent: str = ""
    at_most: Severity | None = None


Find = Callable[["Context"], Iterable[Hit]]


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        id: stable short name.
        title: a few words.
        meaning: what it means when it fires.
        threshold: when it fires, in words with numbers.
        advice: what to do.
        remedy: the same in at most 48 characters; empty for a rule whose findings have no gain.
        severity: of its findings.
        bound: how it computes the most that could be gained; empty for a rule that states no gain.
        relies_on: numbers that it rests on, by the names that ``QualityFinding.affects`` uses.
        experiments: changes of the program that may help, as jobs write them (``contract.changes``); empty
            where none can be made without touching the program.
        find: the function; it yields what it finds.
    """

    id: str
    title: str
    meaning: str
    threshold: str
    advice: str
    severity: RuleSeverity
    bound: str
    relies_on: tuple[str, ...]
    remedy: str
    experiments: tuple[str, ...]
    find: Find


def rule(
    id_: str,
    title: str,
    *,
    meaning: str,
    threshold: str,
    advice: str,
    remedy: str = "",
    severity: RuleSeverity = "by gain",
    bound: str = "",
    relies_on: tuple[str, ...] = (),
    experiments: tuple[str, ...] = (),
) -> Callable[[Find], Rule]:
    """Make a rule of a function; the arguments are the attributes of ``Rule``."""
    return lambda find: Rule(
        id_, title, meaning, threshold, advice, severity, bound, relies_on, remedy, experiments, find
    )
