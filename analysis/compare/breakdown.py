"""What changed by op, range, module, category or step.

``breakdown`` is given two sides and returns rows; by op, range, module and category their differences add up
to the difference of the GPU part of the step, or without a GPU to the difference of its CPU time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from profrun.analysis.compare.compared_trial import KernelGroup
from profrun.analysis.compare.kernel_identity import op_base_name
from profrun.analysis.compare.model import By, Row
from profrun.analysis.compare.rows import (
    MATTERS,
    MOST_ESTIMATES,
    Limits,
    estimate_of,
    estimate_of_means,
    judged,
    largest_first,
    new_row,
)
from profrun.analysis.compare.sides import Side, Sides
from profrun.analysis.compare.stats import Estimate
from profrun.analysis.counted_steps import PHASE_WORDS

Key = Callable[[KernelGroup], tuple[str, str]]
"""The row of a kernel group, and how it was found: a word of ``_SUREST_LAST``."""
Means = dict[str, dict[int, float]]
"""ns per step by name and by the identity of the trial."""
_SUREST_LAST = ("category", "ancestor", "only", "op", "module")


def breakdown(by: By, sides: Sides, threshold: float) -> tuple[Row, ...]:
    """Rows by ``by`` (not by kernel), on CPU time without a GPU; ``threshold`` as in ``Limits``."""
    limits = Limits(threshold)
    if by == "step":
        return _step_rows(sides, limits)
    if any(
        not trial.kernel_groups and not any(row.main_ns for row in trial.host_ops)
        for side in sides
        for trial in side.trials
    ):
        return ()  # a side has nothing but step times
    if not sides[0].kernel_groups and not sides[1].kernel_groups:
        return _cpu_rows(sides, by, limits)
    return _gpu_rows(sides, _key(by, sides), threshold)


def _key(by: By, sides: Sides) -> Key:
    if by == "op":
        return _shared_key(sides, lambda group: [*group.ops, *reversed(group.ranges)], None)
    if by == "range":
        return _shared_key(sides, lambda group: list(reversed(group.ranges)), "(outside of ranges)")
    if by == "module":
        return _module_key
    return lambda group: (group.category, "category")


def _module_key(group: KernelGroup) -> tuple[str, str]:
    name = group.module or "(no module)"
    return (f"{name}, backward" if group.backward and group.module else name), "module"


def _shared_key(sides: Sides, names: Callable[[KernelGroup], list[str]], root: str | None) -> Key:
    """The innermost of the names round a launch that both sides have.

    Args:
        names: of a kernel group, innermost first.
        root: the row of groups without any name. Groups with names of one side only get the row of their
            innermost name. With None both get the row of their category.
    """
    known = [{name for group in side.kernel_groups for name in names(group)} for side in sides]
    shared = known[0] & known[1]

    def key(group: KernelGroup) -> tuple[str, str]:
        found = names(group)
        for place, name in enumerate(found):
            if name in shared:
                return name, "op" if place == 0 else "ancestor"
        if root is None:
            return f"({group.category})", "category"
        return (found[0], "only") if found else (root, "op")

    return key


@dataclass
class _Sums:
    """What the kernel groups of a row add up to; pairs are side a and b.

    Attributes:
        ns, calls: per step. found_by: how its groups got into the row.
        names: ns by kernel name. categories: ns by category, over both sides.
    """

    ns: list[float] = field(default_factory=lambda: [0.0, 0.0])
    calls: list[float] = field(default_factory=lambda: [0.0, 0.0])
    found_by: set[str] = field(default_factory=set)
    names: tuple[dict[str, int], dict[str, int]] = field(default_factory=lambda: ({}, {}))
    categories: dict[str, int] = field(default_factory=dict)

    def add(self, number: int, side: Side, group: KernelGroup, found_by: str) -> None:
        """Add a kernel group of side a (0) or b (1)."""
        self.ns[number] += group.ns / side.samples / side.per
        self.calls[number] += group.calls / side.samples
        self.found_by.add(found_by)
        names = self.names[number]
        names[group.name] = names.get(group.name, 0) + group.ns
        self.categories[group.category] = self.categories.get(group.category, 0) + group.ns


def _gpu_rows(sides: Sides, key: Key, threshold: float) -> tuple[Row, ...]:
    sums: dict[str, _Sums] = defaultdict(_Sums)
    for number, side in enumerate(sides):
        for group in side.kernel_groups:
            name, found_by = key(group)
            sums[name].add(number, side, group, found_by)
    limits = Limits(threshold, MATTERS * sum(one.ns[0] for one in sums.values()))
    rows = []
    for name, one in sums.items():
        a_names, b_names = (tuple(sorted(side, key=lambda kernel: -side[kernel])) for side in one.names)
        row = _row(name, one.ns, one.calls)
        how = next((word for word in _SUREST_LAST if word in one.found_by), None)
        rows.append(
            replace(
                row,
                category=max(one.categories, key=lambda category: one.categories[category]),
                by=how if row.ratio is not None else None,
                a_names=a_names,
                b_names=b_names,
                label=op_base_name(name),
            )
        )
    return largest_first(judged(rows, lambda row: estimate_of(row, sides), limits))


def _row(name: str, ns: Sequence[float], calls: Sequence[float]) -> Row:
    return new_row(name, (ns[0], ns[1]), (calls[0], calls[1]))


def _cpu_rows(sides: Sides, by: By, limits: Limits) -> tuple[Row, ...]:
    """Self CPU time on the thread of the steps by name: what a step without a GPU is made of.

    By range and module all ops together are one row, because their ranges are not known here.
    """
    sums: dict[str, _Sums] = defaultdict(_Sums)
    means: tuple[Means, Means] = ({}, {})
    for number, side in enumerate(sides):
        for trial in side.trials:
            samples = trial.typical_count
            for op in trial.host_ops:
                name = "(ops)" if by in ("range", "module") and op.kind not in ("range", "step") else op.name
                sums[name].ns[number] += op.main_ns / side.samples / side.per
                sums[name].calls[number] += op.calls / side.samples
                one = means[number].setdefault(name, {})
                one[id(trial)] = one.get(id(trial), 0.0) + op.main_ns / samples / side.per
    rows = [
        replace(
            _row(name, one.ns, one.calls),
            by="name" if all(one.ns) else None,
            basis="cpu",
            label=op_base_name(name),
        )
        for name, one in sums.items()
        if any(one.ns)
    ]
    found = judged(rows, lambda row: _estimate_of_trials(sides, means, row.name), limits)
    return tuple(sorted(found, key=lambda row: (-abs(row.delta_ns), row.name)))


def _estimate_of_trials(sides: Sides, means: tuple[Means, Means], name: str) -> Estimate | None:
    """The ratio of a row of which only the mean of each trial is known."""
    a, b = (
        [one.get(name, {}).get(id(trial), 0.0) for trial in side.trials]
        for side, one in zip(sides, means, strict=True)
    )
    return estimate_of_means(a, b)


def _step_rows(sides: Sides, limits: Limits) -> tuple[Row, ...]:
    """The first steps by their place among those that count; the differences of the rows do not add up."""
    tables = [_places(side) for side in sides]
    several = sides[0].denominator.several
    first = sides[0].trials[0]
    among = "the recording" if first.conditions.profiled else PHASE_WORDS[first.phase]
    basis: Literal["step"] = "step"
    times: dict[str, list[list[float]]] = {}
    rows = []
    for place in range(max((len(table) for table in tables), default=0)):
        name = f"step {place + 1} of {among}" if several else sides[0].denominator.the
        times[name] = [table[place] if place < len(table) else [] for table in tables]
        ns = [sum(one) / len(one) if one else 0.0 for one in times[name]]
        rows.append(replace(_row(name, ns, [float(value > 0) for value in ns]), basis=basis, label=name))
    return tuple(judged(rows, lambda row: estimate_of_means(*times[row.name]), limits))


def _places(side: Side) -> list[list[float]]:
    """Times of the first step of each trial, of the second, and so on."""
    longest = min(MOST_ESTIMATES, max((len(times) for times in side.times), default=0))
    return [[times[place] for times in side.times if place < len(times)] for place in range(longest)]
