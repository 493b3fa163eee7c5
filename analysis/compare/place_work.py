"""GPU work of the typical samples by line and by module of the program: ``places``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.compare.compared_trial import Places, PlaceWork
from profrun.analysis.trace.addresses import UNRESOLVED, Address, Addresses
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, Index, Mask
from profrun.analysis.trace.line_table import OUTSIDE

_NAMES = 3
"""Kernel names of a place that are kept, those with most time."""
_Key = tuple[Literal["line", "module", "unresolved"], str, str | None, int | None]
"""by, name, file, line of a ``PlaceWork``."""


def places(
    source: Frame,
    gpu: Index,
    names: Mapping[int, str],
    found: Addresses,
    sample_of: Ints,
    keep: Mask,
) -> Places:
    """The parts of the GPU work of a trial.

    Args:
        gpu: ids of the GPU slices of typical samples, shape (n,).
        names: normalised name by name id.
        found: the addresses of all GPU slices of the trace.
        sample_of: the sample that launched each slice, by slice id. keep: True for typical samples.
    """
    at = np.searchsorted(found.gpu, gpu)
    column = (np.cumsum(keep) - 1)[sample_of[gpu]]
    width = int(keep.sum())
    group = np.where(found.of[at] >= 0, found.of[at], -1 - found.why[at].astype(np.int64))
    keys, place = np.unique(np.stack([group, source.name[gpu]]), axis=1, return_inverse=True)
    place = np.ravel(place)
    times = np.bincount(
        place * width + column, weights=source.durs(gpu), minlength=keys.shape[1] * width
    ).reshape(-1, width)
    counts = np.bincount(place, minlength=keys.shape[1])
    sums: dict[_Key, _Sum] = {}
    for number, (which, name) in enumerate(keys.T.tolist()):
        for key, part in _parts(found, which):
            one = sums.setdefault(key, _Sum(width))
            one.add(times[number] * part, int(counts[number]), names[name])
    works = (PlaceWork(*key, tuple(one.ns.tolist()), one.calls, one.most()) for key, one in sums.items())
    ordered = tuple(
        sorted(works, key=lambda work: (-sum(work.ns), work.by, work.file or work.name, work.line or 0))
    )
    files = {work.file for work in ordered}
    return Places(ordered, {file: lines for file, lines in found.digests.items() if file in files})


class _Sum:
    """What is added up for one place."""

    def __init__(self, width: int) -> None:
        self.ns: NDArray[np.float64] = np.zeros(width)
        self.calls = 0
        self._names: dict[str, float] = {}

    def add(self, ns: NDArray[np.float64], calls: int, name: str) -> None:
        self.ns += ns
        self.calls += calls
        self._names[name] = self._names.get(name, 0.0) + float(ns.sum())

    def most(self) -> tuple[str, ...]:
        return tuple(sorted(self._names, key=lambda name: (-self._names[name], name))[:_NAMES])


def _parts(found: Addresses, which: int) -> list[tuple[_Key, float]]:
    """The places of an address with the part of its time that each has; parts add up to 1 by line and by
    module."""
    if which < 0:
        return [(("unresolved", list(UNRESOLVED)[-1 - which], None, None), 1.0)]
    address: Address = found.table[which]
    part = 1.0 / len(address.lines)
    lines: list[tuple[_Key, float]] = [
        (("line", line.function, line.file, line.line), part) for line in address.lines
    ]
    return [*lines, (("module", address.module or OUTSIDE, None, None), 1.0)]
