"""Order on a stream: its work runs one after the other, in the order in which it was launched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profrun.traces.causality.model import Contradiction, Ids, Ints, Mask
from profrun.traces.causality.recording import KIND, Recording

ROUNDING_NS = 1000
"""Overlaps up to this length are the recorder's rounding; docs/clocks.md has what was measured."""
EARLY_LAUNCH_NS = 10_000
"""A kernel that was launched programmatically may start this long before the one before it ends; the longest
that was measured is 3.7 us."""


@dataclass(frozen=True)
class Overlaps:
    """GPU slices that start before the one before them on their stream ends, by what can explain it.

    Each is the place of the earlier one in ``Recording.gpu``.

    Attributes:
        rec: the recording.
        rounding: too short to be more than rounding.
        branches: both were launched by one graph, whose branches run side by side.
        early: programmatic dependent launch is possible: two kernels, the GPU can do it, the overlap is
            short, they end in order, and no third one runs at the same time.
        impossible: all others.
    """

    rec: Recording
    rounding: Ints
    branches: Ints
    early: Ints
    impossible: Ints

    def length(self, places: Ints) -> int:
        """Summed ns of these overlaps."""
        ids = self.rec.gpu
        return int((self.rec.end[ids[places]] - self.rec.ts[ids[places + 1]]).sum())


def overlaps(rec: Recording) -> Overlaps:
    """Every overlap on a stream, by cause."""
    ids = rec.gpu
    before, after = ids[:-1], ids[1:]
    length = np.where(rec.track[before] == rec.track[after], rec.end[before] - rec.ts[after], 0)
    places = np.flatnonzero(length > 0)
    before, after, length = before[places], after[places], length[places]
    launch = rec.launch[before]
    branches = (launch >= 0) & (launch == rec.launch[after])
    early = _early(rec, ids, places) & (length <= EARLY_LAUNCH_NS) & (length > rec.resolution) & ~branches
    rounding = (length <= ROUNDING_NS) & ~branches & ~early
    rest = ~(rounding | branches | early)
    return Overlaps(rec, places[rounding], places[branches], places[early], places[rest])


def _early(rec: Recording, ids: Ids, places: Ints) -> Mask:
    """Can the later kernel of each pair have been launched programmatically?"""
    before, after = ids[places], ids[places + 1]
    third = ids[np.minimum(places + 2, len(ids) - 1)]
    alone = (rec.track[third] != rec.track[after]) | (rec.ts[third] >= rec.end[before]) | (third == after)
    kernels = (rec.kind[before] == KIND["kernel"]) & (rec.kind[after] == KIND["kernel"])
    able = np.isin(rec.device_of(before), list(rec.early_launch))
    return np.asarray(kernels & able & alone & (rec.end[after] >= rec.end[before]))


def work_overlaps(rec: Recording) -> list[Contradiction]:
    """Overlaps on streams that nothing explains."""
    found = overlaps(rec).impossible
    if not len(found):
        return []
    ids = rec.gpu[found]
    longest = int((rec.end[ids] - rec.ts[rec.gpu[found + 1]]).max())
    return [_of(rec, "gpu_work_overlaps", ids, len(rec.gpu), float(longest))]


def launch_order(rec: Recording) -> list[Contradiction]:
    """Work that runs before work of its stream that was launched earlier."""
    ids = rec.launched
    before, after = ids[:-1], ids[1:]
    first, second = rec.launch[before], rec.launch[after]
    wrong = (rec.track[before] == rec.track[after]) & (rec.ts[first] > rec.end[second])
    if not wrong.any():
        return []
    by = int((rec.ts[first] - rec.end[second])[wrong].max())
    return [_of(rec, "launch_order", before[wrong], len(ids), float(by))]


def _of(rec: Recording, code: str, ids: Ids, total: int, amount: float) -> Contradiction:
    tracks = np.unique(rec.track[ids])
    return Contradiction(
        code=code,
        count=len(ids),
        total=total,
        track=int(tracks[0]) if len(tracks) == 1 else None,
        first_ns=int(rec.ts[ids].min()),
        last_ns=int(rec.end[ids].max()),
        amount=amount,
        example=int(ids[0]),
    )
