"""Put GPU times on the host's clock: what is added to each GPU slice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profrun.traces.causality.model import Clock, Ids, Ints
from profrun.traces.causality.recording import KIND, Recording


def moved(rec: Recording, clocks: Sequence[Clock]) -> tuple[Ids, Ints, Ints]:
    """The GPU slices whose times change, and their new starts and ends.

    Slices of a GPU's tracks move with its clock: kernels, copies, fills, and the GPU's copies of ranges. A
    record of a wait is of the host, wherever it lies, and stays.

    Returns:
        (slice ids, starts in ns, ends in ns).
    """
    parts: list[tuple[Ids, Ints, Ints]] = []
    for device in sorted({clock.device for clock in clocks if clock.moved}):
        mine = [clock for clock in clocks if clock.device == device]
        on_device = rec.tracks.device == device
        ids = np.flatnonzero(on_device[rec.track] & (rec.kind != KIND["sync"]) & (rec.kind != _UNUSED))
        owner = _session_of(rec, ids, mine)
        for place, clock in enumerate(mine):
            if not clock.moved:
                continue
            own = ids[owner == place]
            parts.append((own, _shifted(rec.ts[own], clock), _shifted(rec.end[own], clock)))
    empty = np.zeros(0, np.int64)
    if not parts:
        return empty, empty, empty
    ids, starts, ends = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ids, starts, ends


_UNUSED = 255


def _shifted(times: Ints, clock: Clock) -> Ints:
    span = clock.last_ns - clock.first_ns
    grown = clock.last_moved_ns - clock.moved_ns
    if not grown or not span:
        return times + clock.moved_ns
    more: Ints = np.rint((times - clock.first_ns) * (grown / span)).astype(
        np.int64
    )  # exact: no float of times
    return times + clock.moved_ns + more


def _session_of(rec: Recording, ids: Ids, clocks: Sequence[Clock]) -> Ints:
    """Place in ``clocks`` of each slice: by the host time of its launch, else by the nearest GPU time."""
    if len(clocks) == 1:
        return np.zeros(len(ids), np.int64)
    begins = np.array([clock.begins_ns for clock in clocks[1:]], np.int64)
    launch = rec.launch[ids]
    known = launch >= 0
    found = np.searchsorted(begins, rec.ts[np.where(known, launch, 0)], side="right")
    middle = np.array([clock.first_ns for clock in clocks[1:]], np.int64)
    found[~known] = np.searchsorted(np.sort(middle), rec.ts[ids[~known]], side="right")
    return np.asarray(found, np.int64)
