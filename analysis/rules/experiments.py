"""Which changes of the program the findings of a recording ask for: ``experiments_of``.

A finding names changes that may help (``RuleFinding.experiments``), and promises at most its gain. An
experiment is one change with everything that was promised for it. Findings that another one explains ask for
nothing, because their cause does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.finding import RuleFinding
from profrun.contract.changes import CHANGES, Change, parse
from profrun.contract.points import Scalar
from profrun.errors import UsageError
from profrun.store.improvement import Promised, promised_together

LEAST_SHARE = 0.01
"""A finding that could save less of the step asks for no experiment."""


@dataclass(frozen=True)
class Experiment:
    """A variant of the program that may be faster.

    Attributes:
        name: of its variant.
        changes: as jobs write them (``contract.changes``).
        values: of the variant, laid over those of the base.
        promises: of the findings that ask for it; empty where the user does.
    """

    name: str
    changes: tuple[str, ...] = ()
    values: Mapping[str, Scalar] = field(default_factory=dict)
    promises: tuple[Promised, ...] = ()

    @property
    def promised(self) -> float | None:
        """The most that it could gain, as a part of the step; None where nothing was promised."""
        return promised_together(self.promises)


def variant_name(text: str) -> str:
    """The name of the variant of a change: ``loader-workers=4`` is ``loader-workers-4``."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text)


def experiments_of(
    findings: Iterable[RuleFinding], only: Sequence[str] = (), have: Sequence[str] = ()
) -> tuple[Experiment, ...]:
    """The experiments that findings ask for, the largest promise first.

    Args:
        findings: as ``diagnose`` gives them.
        only: ids of rules, and names of changes; empty: everything that findings ask for. A change that is
            named is tried also where no finding asks for it.
        have: changes that the base has already.

    Raises:
        UsageError: ``only`` names neither a rule nor a change.
    """
    rules = {rule.id for rule in all_rules()}
    named = [_change(name) for name in only if name not in rules]
    wanted = {name for name in only if name in rules}
    promises: dict[str, list[Promised]] = {change.text: [] for change in named}
    for finding in findings:
        if finding.explained_by is not None or _is_small(finding):
            continue
        for text in finding.experiments:
            change = parse(text)
            asked = change.text in promises or not only or finding.code in wanted
            if asked:
                told = Promised(finding.code, finding.gain_ns, finding.gain_share)
                promises.setdefault(change.text, []).append(told)
    taken = {parse(text).group for text in have}
    found = [
        Experiment(variant_name(text), (text,), promises=tuple(told))
        for text, told in promises.items()
        if parse(text).group not in taken
    ]
    return tuple(sorted(found, key=lambda one: -(one.promised or 0.0)))


def stacked(experiments: Sequence[Experiment], name: str) -> Experiment:
    """All changes of several experiments at once; of those that exclude each other the first.

    Args:
        experiments: what helped, the largest gain first.
        name: of the new variant.
    """
    changes: dict[str, str] = {}
    values: dict[str, Scalar] = {}
    for one in experiments:
        for text in one.changes:
            changes.setdefault(parse(text).group, text)
        if one.values and not values:
            values = dict(one.values)
    return Experiment(name, tuple(changes.values()), values)


def excluded(experiments: Sequence[Experiment], kept: Experiment) -> tuple[Experiment, ...]:
    """The experiments that a stack leaves out, because they exclude one of those that gained more."""
    return tuple(
        one
        for one in experiments
        if not set(one.changes) <= set(kept.changes) or (one.values and dict(one.values) != dict(kept.values))
    )


def _is_small(finding: RuleFinding) -> bool:
    return finding.gain_share is not None and finding.gain_share < LEAST_SHARE


def _change(name: str) -> Change:
    try:
        return parse(name)
    except ValueError as error:
        from profrun.jobs.problems import suggest

        kind = name.partition("=")[0]
        if kind in CHANGES:
            raise UsageError(f"--only {name}: {error}", fix=f"write {parse(kind).text}") from None
        names = [rule.id for rule in all_rules() if rule.experiments] + list(CHANGES)
        raise UsageError(
            f"--only {name}: {error}, and no rule of that name", fix=suggest(kind, names, "names")
        ) from None
