"""What a rule is: a function with an id, what it means, its threshold, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profrun.contract.finding import Severity

if TYPE_CHECKING:
    from profrun.analysis.rules.context import Context


@dataclass(frozen=True)
class Hit:
    """What a rule found once.

    Attributes:
        what: one sentence with the numbers in it.
        numbers: evidence by name; keys end in their unit (_ns, _bytes, _share, ...).
        slices: slices to open, a few, the worst first.
        severity: overrides the rule's.
        names: kernels, ops or calls it is about.
    """

    what: str
    numbers: Mapping[str, object] = field(default_factory=dict)
    slices: Sequence[int] = ()
    severity: Severity | None = None
    names: Sequence[str] = ()


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
        severity: of its findings, where a hit does not say another one.
        relies_on: numbers that it rests on, by the names that ``QualityFinding.affects`` uses.
        find: the function; it yields what it finds.
    """

    id: str
    title: str
    meaning: str
    threshold: str
    advice: str
    severity: Severity
    relies_on: tuple[str, ...]
    find: Find


def rule(
    id_: str,
    title: str,
    *,
    meaning: str,
    threshold: str,
    advice: str,
    severity: Severity = "warning",
    relies_on: tuple[str, ...] = (),
) -> Callable[[Find], Rule]:
    """Make a rule of a function; the arguments are the attributes of ``Rule``."""
    return lambda find: Rule(id_, title, meaning, threshold, advice, severity, relies_on, find)
