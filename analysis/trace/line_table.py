"""The GPU work of each line, or module, of the program: ``line_rows`` and ``module_rows``.

A kernel that torch.compile made of several lines counts as shared among them: each line has an equal part of
its time, and the row says how much of its time is shared. So no time counts twice. Work without an address
is one row for each reason.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from profrun.analysis.trace.addresses import UNRESOLVED, Addresses, Unresolved
from profrun.analysis.trace.frame import Frame
from profrun.analysis.trace.steps import in_steps, step_index
from profrun.contract.line_names import Line

OUTSIDE = "(no module)"


@dataclass(frozen=True)
class PlaceRow:
    """A line or a module, with the GPU work that it launched. Times are ns in total, over all steps.

    Attributes:
        place: the line, the qualified name of the module, or the reason for which work has no address.
        gpu_ns: time of its GPU work; of work that it shares with others its part.
        backward_ns: the part of ``gpu_ns`` that is work of its backward.
        shared_ns: the part of ``gpu_ns`` that is of kernels made of several lines.
        launches: how many kernels, copies and memsets; those that it shares count whole.
        kernels: names of its largest kernels, most time first.
        share: ``gpu_ns`` of all GPU work of these steps.
    """

    place: Line | str
    gpu_ns: float
    backward_ns: float
    shared_ns: float
    launches: int
    kernels: tuple[str, ...]
    share: float
    share_of: str = field(default="time of all GPU work of the steps", init=False)


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
    gpu: float = 0.0
    backward: float = 0.0
    shared: float = 0.0
    launches: int = 0
    kernels: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def place_table(
    source: Frame, found: Addresses, by: Literal["line", "module"], *, kernels: int = 3
) -> PlaceTable:
    """The table of a trace by line or by module.

    Args:
        found: the addresses of its GPU slices.
        kernels: how many names of kernels a row has.
    """
    index = step_index(source)
    counted = in_steps(source, found.gpu)
    gpu, of, why = found.gpu[counted], found.of[counted], found.why[counted]
    durs = source.durs(gpu)
    whole = int(durs.sum())
    sums: dict[Line | str, _Sum] = defaultdict(_Sum)
    keys, place = np.unique(np.stack([of, source.name[gpu]]), axis=1, return_inverse=True)
    place = np.ravel(place)
    time = np.bincount(place, weights=durs, minlength=keys.shape[1])
    count = np.bincount(place, minlength=keys.shape[1])
    for number, (at, name) in enumerate(keys.T.tolist()):
        if at < 0:
            continue
        address = found.table[at]
        places: tuple[Line | str, ...] = address.lines if by == "line" else (address.module or OUTSIDE,)
        for one in places:
            row, part = sums[one], float(time[number]) / len(places)
            row.gpu += part
            row.backward += part * address.backward
            row.shared += part * (len(places) > 1)
            row.launches += int(count[number])
            row.kernels[source.names[name]] += part
    missing = {code: int(durs[why == number].sum()) for number, code in enumerate(UNRESOLVED)}
    rows = (_row(one, row, whole, kernels) for one, row in sums.items())
    return PlaceTable(
        by,
        len(index.slices),
        whole,
        tuple(sorted(rows, key=lambda row: (-row.gpu_ns, str(row.place)))),
        {code: ns for code, ns in missing.items() if ns},
    )


def _row(place: Line | str, found: _Sum, whole: int, kernels: int) -> PlaceRow:
    largest = sorted(found.kernels, key=lambda name: (-found.kernels[name], name))
    return PlaceRow(
        place,
        found.gpu,
        found.backward,
        found.shared,
        found.launches,
        tuple(largest[:kernels]),
        found.gpu / whole if whole else 0.0,
    )
