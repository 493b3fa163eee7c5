"""What changed by line or by module of the program: ``place_rows``.

The rows add up to the difference of the GPU part of the step: work without an address has a row for each
reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from profrun.analysis.compare.compared_trial import ComparedTrial, PlaceWork
from profrun.analysis.compare.line_pairs import Place, line_pairs
from profrun.analysis.compare.model import Row
from profrun.analysis.compare.rows import MATTERS, Limits, judged, largest_first, new_row
from profrun.analysis.compare.sides import Side, Sides
from profrun.analysis.compare.stats import MIN_TRIALS, Estimate, estimate, mean_interval
from profrun.analysis.trace.addresses import UNRESOLVED, Unresolved
from profrun.contract.line_names import below, common_folder

_Key = tuple[str, str, int, int]
"""What a row is about: by; file of a line, else the name; number of the line, else 0; 1 for a line of side b
that side a does not have, else 0."""


def have_places(sides: Sides) -> bool:
    """Whether the places of all trials with GPU work are known."""
    return all(trial.places is not None for side in sides for trial in side.trials if trial.kernel_groups)


@dataclass
class _Row:
    """A row as it is collected; pairs are side a and b.

    Attributes:
        series: of each trial the ns in each typical sample.
        works: one of the works of each side; None for none.
    """

    series: tuple[dict[int, list[float]], dict[int, list[float]]] = field(default_factory=lambda: ({}, {}))
    calls: list[float] = field(default_factory=lambda: [0.0, 0.0])
    kernels: tuple[dict[str, None], dict[str, None]] = field(default_factory=lambda: ({}, {}))
    works: list[PlaceWork | None] = field(default_factory=lambda: [None, None])

    def add(self, number: int, side: Side, place: int, work: PlaceWork) -> None:
        """Add the work of a trial (its place in the side) of side a (0) or b (1)."""
        before = self.series[number].setdefault(place, [0.0] * len(work.ns))
        self.series[number][place] = [one + more for one, more in zip(before, work.ns, strict=True)]
        self.calls[number] += work.calls / side.samples
        self.kernels[number].update(dict.fromkeys(work.kernels))
        self.works[number] = work

    def per_step(self, number: int, side: Side) -> float:
        """ns per step and unit of work."""
        return sum(map(sum, self.series[number].values())) / side.samples / side.per


def place_rows(sides: Sides, by: Literal["line", "module"], threshold: float) -> tuple[Row, ...]:
    """Rows by line or module, the largest change first; ``threshold`` as in ``Limits``."""
    same = _pairs(sides) if by == "line" else {}
    found: dict[_Key, _Row] = defaultdict(_Row)
    for number, side in enumerate(sides):
        for place, trial in enumerate(side.trials):
            for work in _works(trial, by):
                found[_key(work, number, same)].add(number, side, place, work)
    folders = tuple(
        common_folder(one.file for row in found.values() if (one := row.works[number]) and one.file)
        for number in (0, 1)
    )
    rows = {row.name: (row, one) for one in found.values() for row in (_row(one, sides, folders),)}
    limits = Limits(threshold, MATTERS * sum(row.a_ns for row, _ in rows.values()))
    table = [row for row, _ in rows.values()]
    return largest_first(judged(table, lambda row: _estimate(rows[row.name][1], sides), limits))


def _works(trial: ComparedTrial, by: str) -> Iterator[PlaceWork]:
    if trial.places is not None:
        yield from (work for work in trial.places.works if work.by in (by, "unresolved"))


def _pairs(sides: Sides) -> dict[Place, Place]:
    """The line of side a for each line of side b that has one."""
    lines: list[dict[Place, None]] = [{}, {}]
    digests: list[dict[str, tuple[str, ...]]] = [{}, {}]
    for number, side in enumerate(sides):
        for trial in side.trials:
            for work in _works(trial, "line"):
                if work.file is not None and work.line is not None:
                    lines[number][Place(work.file, work.line)] = None
            digests[number] |= trial.places.digests if trial.places is not None else {}
    return line_pairs(lines[0], lines[1], (digests[0], digests[1]))


def _key(work: PlaceWork, side: int, same: dict[Place, Place]) -> _Key:
    if work.file is None or work.line is None:
        return work.by, work.name, 0, 0
    if side == 0:
        return work.by, work.file, work.line, 0
    there = same.get(Place(work.file, work.line))
    return (work.by, *there, 0) if there is not None else (work.by, work.file, work.line, 1)


def _row(one: _Row, sides: Sides, folders: tuple[str, ...]) -> Row:
    a, b = sides
    name, label = _names(one.works[0], one.works[1], folders)
    row = new_row(name, (one.per_step(0, a), one.per_step(1, b)), (one.calls[0], one.calls[1]))
    return replace(
        row,
        label=label,
        only_ci95=_interval(one, sides) if row.ratio is None else None,
        by="place" if row.ratio is not None else None,
        a_names=tuple(one.kernels[0]),
        b_names=tuple(one.kernels[1]),
    )


def _names(a: PlaceWork | None, b: PlaceWork | None, folders: tuple[str, ...]) -> tuple[str, str]:
    """(name, label) of a row with these works; the name has the whole path, and no other row has it.

    Args:
        folders: the folder of all files of each side, which labels leave out.
    """
    work = a or b
    assert work is not None
    if work.by == "unresolved":
        text = f"(no address: {UNRESOLVED[cast('Unresolved', work.name)]})"
        return text, text
    if work.file is None:
        return work.name, work.name
    moved = f" -> {b.line}" if a is not None and b is not None and a.line != b.line else ""
    name = f"{work.file}:{work.line} {work.name}{' (only in b)' if a is None else ''}"
    return name, f"{below(work.file, folders[a is None])}:{work.line}{moved} {work.name}"


def _interval(one: _Row, sides: Sides) -> tuple[float, float] | None:
    """The interval of the time per step on the only side that has the row."""
    number = 0 if one.works[0] is not None else 1
    side = sides[number]
    trials = [one.series[number].get(place, []) for place in range(len(side.trials))]
    if any(not steps or min(steps) <= 0 for steps in trials):
        return None
    return mean_interval([[value / side.per for value in steps] for steps in trials])


def _estimate(one: _Row, sides: Sides) -> Estimate | None:
    """The ratio of a row's time per step, from the steps of each trial; None without repeats."""
    if min(len(side.trials) for side in sides) < MIN_TRIALS:
        return None
    found = []
    for number, side in enumerate(sides):
        trials = [one.series[number].get(place, []) for place in range(len(side.trials))]
        if any(not steps or min(steps) <= 0 for steps in trials):
            return None
        found.append([[value / side.per for value in steps] for steps in trials])
    return estimate(*found, statistic="mean")
