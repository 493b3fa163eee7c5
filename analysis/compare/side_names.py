"""What the two sides of a comparison are called: ``side_names`` is given their trials.

A name is as short as it can be while it tells the sides apart: the variant, the job or the collector where
that is what differs, else what the labels of the side's trials have in common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from profrun.analysis.compare.compared_trial import ComparedTrial, RecordingConditions

_STAMP = re.compile(r"-\d{8}T\d{6}Z-[0-9a-f]{4}$")
"""What a run's name has after the name of its job."""
_SHORTEST = 3
"""Fewer characters at the end of all labels of a side are no name."""
_BLOCKING: dict[bool | None, str] = {False: "async", True: "blocking"}
"""What trials are called that differ in launch blocking."""
_TOLD: tuple[Callable[[RecordingConditions], str | None], ...] = (
    lambda one: _STAMP.sub("", one.job) if one.job else None,
    lambda one: one.variant,
    lambda one: one.collector if one.job else None,
    lambda one: _BLOCKING.get(one.launches_block) if one.job else None,
)
"""What a run tells of its trials, in the order in which it stands in a name."""


def side_names(a: Sequence[ComparedTrial], b: Sequence[ComparedTrial]) -> tuple[str, str]:
    """Names of side a and b; they are "a" and "b" where nothing tells the sides apart."""
    parts = [pair for of in _TOLD if (pair := _apart(a, b, of))]
    if parts:
        return "-".join(left for left, _ in parts), "-".join(right for _, right in parts)
    runs = _apart(a, b, lambda one: one.job)
    if runs:
        return runs
    names = _common([one.conditions.label for one in a]), _common([one.conditions.label for one in b])
    return names if names[0] != names[1] else ("a", "b")


def _apart(
    a: Sequence[ComparedTrial],
    b: Sequence[ComparedTrial],
    of: Callable[[RecordingConditions], str | None],
) -> tuple[str, str] | None:
    """What all trials of each side share and the sides do not; None where that is not so."""
    left, right = ({of(trial.conditions) for trial in side} for side in (a, b))
    if len(left) != 1 or len(right) != 1 or left == right:
        return None
    one, two = left.pop(), right.pop()
    return None if one is None or two is None else (one, two)


def _common(labels: Sequence[str]) -> str:
    """``rep*_mlp`` of ``rep1_mlp`` and ``rep2_mlp``; the first label and a number where nothing is shared."""
    if len(set(labels)) == 1:
        return labels[0]
    start = _shared_start(labels)
    end = _shared_start([label[len(start) :][::-1] for label in labels])[::-1]
    return f"{start}*{end}" if start or len(end) >= _SHORTEST else f"{labels[0]} and {len(labels) - 1} more"


def _shared_start(texts: Sequence[str]) -> str:
    """The characters with which all texts begin."""
    first, last = min(texts), max(texts)  # what these two share all of them share
    same = [one == two for one, two in zip(first, last, strict=False)]
    return first[: same.index(False) if False in same else len(same)]
