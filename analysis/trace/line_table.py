"""The GPU work of each line, or module, of the program: ``place_table``.

A kernel that torch.compile made of several lines counts as shared among them: each line has an equal part of
its time, and the row says how much of its time is shared. So no time counts twice. The time of work without
an address is told by reason.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from profrun.analysis.trace.addressed_work import addressed_work, equal_parts
from profrun.analysis.trace.addresses import UNRESOLVED, Addresses, Unresolved
from profrun.analysis.trace.frame import Frame
from profrun.analysis.trace.modules import NUMBER
from profrun.contract.line_names import Line

OUTSIDE = "(no module)"


@dataclass(frozen=True)
class PlaceRow:
    """A line or a module, with the GPU work that it launched. Times are ns in total, over all steps.

    Attributes:
        name: function that the line lies in, or the qualified name of the module; ``layers.*.mlp`` of several
            that differ in their numbers alone.
        file, line: of a line; None of a module.
        gpu_ns: time of its GPU work; of work that it shares with others its part.
        backward_ns: the part of ``gpu_ns`` that is work of its backward.
        shared_ns: the part of ``gpu_ns`` that is of kernels made of several lines.
        launches: how many kernels, copies and memsets; those that it shares count whole.
        kernels: names of its largest kernels, most time first.
        share: ``gpu_ns`` of all GPU work of these steps.
        modules: how many modules the row stands for; 1 of a line.
    """

    name: str
    file: str | None
    line: int | None
    gpu_ns: int
    backward_ns: int
    shared_ns: int
    launches: int
    kernels: tuple[str, ...]
    share: float
    modules: int = 1
    share_of: str = field(default="time of all GPU work of the steps", init=False)

    @property
    def place(self) -> Line | str:
        """The line, or the name of the module."""
        if self.file is None or self.line is None:
            return self.name
        return Line(self.file, self.line, self.name)


@dataclass(frozen=True)
class PlaceTable:
    """The rows of a trace, most time first; their ``gpu_ns`` and that of ``unresolved`` add up to ``gpu_ns``.

    Attributes:
        by: what its rows are.
        steps: steps of all ranks that are counted; 0 where there are none: then all work is.
        unresolved: reason -> ns of the work without an address.
    """

    by: Literal["line", "module"]
    steps: int
    gpu_ns: int
    rows: tuple[PlaceRow, ...]
    unresolved: dict[Unresolved, int]

    @property
    def resolved(self) -> float | None:
        """Share of the GPU time that has an address; None without any GPU time."""
        return 1 - sum(self.unresolved.values()) / self.gpu_ns if self.gpu_ns else None


@dataclass
class _Sum:
    gpu: int = 0
    backward: int = 0
    shared: int = 0
    launches: int = 0
    kernels: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    modules: set[str] = field(default_factory=set)


def place_table(
    source: Frame, found: Addresses, by: Literal["line", "module"], *, kernels: int = 3
) -> PlaceTable:
    """The table of a trace by line or by module.

    Args:
        found: the addresses of its GPU slices.
        kernels: how many names of kernels a row has.
    """
    work = addressed_work(source, found)
    sums: dict[Line | str, _Sum] = defaultdict(_Sum)
    missing: dict[Unresolved, int] = dict.fromkeys(UNRESOLVED, 0)
    for one in work.rows:
        if one.why is not None:
            missing[one.why] += one.ns
        if one.address is None:
            continue
        places: tuple[Line | str, ...] = (
            one.address.lines if by == "line" else (NUMBER.sub("*", one.address.module or OUTSIDE),)
        )
        for place, part in zip(places, equal_parts(one.ns, len(places)), strict=True):
            row = sums[place]
            row.gpu += part
            row.backward += part * one.address.backward
            row.shared += part * (len(places) > 1)
            row.launches += one.launches
            row.kernels[one.name] += part
            row.modules.add(one.address.module or OUTSIDE)
    rows = (_row(place, row, work.gpu_ns, kernels) for place, row in sums.items())
    return PlaceTable(
        by,
        work.steps,
        work.gpu_ns,
        tuple(sorted(rows, key=lambda row: (-row.gpu_ns, str(row.place)))),
        {code: ns for code, ns in missing.items() if ns},
    )


def _row(place: Line | str, found: _Sum, whole: int, kernels: int) -> PlaceRow:
    largest = sorted(found.kernels, key=lambda name: (-found.kernels[name], name))
    at = place if isinstance(place, Line) else None
    modules = 1 if at is not None else len(found.modules)
    return PlaceRow(
        at.function if at is not None else str(place) if modules > 1 else next(iter(found.modules)),
        at.file if at is not None else None,
        at.line if at is not None else None,
        found.gpu,
        found.backward,
        found.shared,
        found.launches,
        tuple(largest[:kernels]),
        found.gpu / whole if whole else 0.0,
        modules,
    )
