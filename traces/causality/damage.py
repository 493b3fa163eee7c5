"""Records that no run can have made: duplicates, durations of 0, wrong units, steps that overlap."""

from __future__ import annotations

import numpy as np

from profrun.traces.causality import sessions
from profrun.traces.causality.model import Contradiction, Ids, Ints
from profrun.traces.causality.recording import KIND, Recording

FEWEST = 10
"""Of fewer kernels nothing is said as a whole."""
ZERO_SHARE = 0.5
"""Kernels with a duration of 0 from which durations are taken as missing; 7 % is the most that was measured,
in files in whole microseconds."""
SHORTEST_NS = 300
"""No kernel of any file that was measured is shorter than 560 ns."""
FEWEST_SHORT = 6
"""So many kernels that are too short are no single bad record."""
LARGE_BYTES = 1 << 16
"""Smaller copies take their time to start."""
MOST_BYTES_PER_NS = 2000
"""The fastest copy between host and GPU that was measured moves 50 bytes per ns. One that moves more than
this has a wrong duration."""
UNIT = 1000
"""Units are mistaken by this factor."""
FAR = 100
"""A record is far away when it is this many times as far from all others as those extend."""
FAR_SHARE = 0.01
"""More records than this part are no exception."""


def duplicates(rec: Recording) -> list[Contradiction]:
    """Records that are there twice: the same name, times, track and launch."""
    found = []
    for code, ids in (("duplicate_gpu_records", rec.gpu), ("duplicate_calls", rec.calls)):
        before, after = ids[:-1], ids[1:]
        same = (rec.track[before] == rec.track[after]) & (rec.ts[before] == rec.ts[after])
        same &= (rec.end[before] == rec.end[after]) & (rec.end[after] > rec.ts[after])
        same &= rec.launch[before] == rec.launch[after]
        if not same.any():
            continue
        pairs = rec.texts(before[same]), rec.texts(after[same])
        named = np.array([one == other for one, other in zip(*pairs, strict=True)], bool)
        repeated = after[same][named]
        if len(repeated):
            found.append(_whole(rec, code, repeated, len(ids)))
    return found


def zero_durations(rec: Recording) -> list[Contradiction]:
    """Kernels without a duration."""
    kernels = rec.gpu[rec.kind[rec.gpu] == KIND["kernel"]]
    zero = kernels[rec.end[kernels] == rec.ts[kernels]]
    rounded = rec.resolution > 1 and len(zero) < ZERO_SHARE * len(kernels)
    if not len(zero) or rounded or (len(kernels) < FEWEST and len(zero) < len(kernels)):
        return []
    return [_whole(rec, "zero_durations", zero, len(kernels))]


def duration_unit(rec: Recording) -> list[Contradiction]:
    """GPU durations that are 1000 times too long or too short."""
    kernels = rec.gpu[rec.kind[rec.gpu] == KIND["kernel"]]
    dur = rec.end[kernels] - rec.ts[kernels]
    short = (dur > 0) & (dur < SHORTEST_NS)
    if len(kernels) >= FEWEST_SHORT and short.sum() > ZERO_SHARE * len(kernels):
        return [_whole(rec, "gpu_duration_unit", kernels[short], len(kernels), 1 / UNIT)]
    fast, large = _too_fast(rec)
    if len(fast) > ZERO_SHARE * large:
        return [_whole(rec, "gpu_duration_unit", fast, large, 1 / UNIT)]
    ids = rec.gpu
    same = rec.track[ids[:-1]] == rec.track[ids[1:]]
    room = rec.ts[ids[1:]] - rec.ts[ids[:-1]]
    dur = (rec.end[ids] - rec.ts[ids])[:-1]
    long = same & (dur > room + rec.resolution)
    fits = same & (dur // UNIT <= room + rec.resolution)
    enough = same.sum() >= FEWEST and long.sum() > ZERO_SHARE * same.sum()
    if enough and fits.sum() > 0.99 * same.sum():
        return [_whole(rec, "gpu_duration_unit", ids[:-1][long], len(ids), float(UNIT))]
    return []


def _too_fast(rec: Recording) -> tuple[Ids, int]:
    """Large copies between host and GPU that are faster than any link, and how many large ones there are."""
    copies = rec.copies
    large = (copies.to_host | copies.from_host) & (copies.size >= LARGE_BYTES)
    ids, size = copies.slices[large], copies.size[large]
    dur = rec.end[ids] - rec.ts[ids]
    return ids[(dur > 0) & (size > MOST_BYTES_PER_NS * dur)], len(ids)


def call_unit(rec: Recording) -> list[Contradiction]:
    """Calls of a thread that take more time than there is: they overlap without being nested."""
    ids = rec.calls
    ids = ids[rec.parent_is_no_call(ids)]
    before, after = ids[:-1], ids[1:]
    same = rec.track[before] == rec.track[after]
    room = rec.ts[after] - rec.ts[before]
    dur = rec.end[before] - rec.ts[before]
    wrong = same & (dur > room + rec.resolution)
    if same.sum() < FEWEST or wrong.sum() <= ZERO_SHARE * same.sum():
        return []
    return [_whole(rec, "call_duration_unit", before[wrong], len(ids), float(UNIT))]


def steps(rec: Recording) -> list[Contradiction]:
    """Steps of one thread that cross each other."""
    found = []
    for process in np.unique(rec.process_of(rec.named.steps)):
        ids, _ = sessions.steps_of(rec, int(process))
        before, after = ids[:-1], ids[1:]
        wrong = (rec.end[before] > rec.ts[after] + rec.resolution) & (rec.end[after] > rec.end[before])
        if wrong.any():
            found.append(_whole(rec, "steps_overlap", before[wrong], len(ids), process=int(process)))
    return found


def far_records(rec: Recording) -> list[Contradiction]:
    """A few records whose distance from all others is more than 100 times what those extend."""
    ids = rec.work
    if len(ids) < FEWEST:
        return []
    few = max(1, int(FAR_SHARE * len(ids)))
    low, high = (int(edge) for edge in _edges(rec.ts[ids], few))
    reach = FAR * max(high - low, 1)
    far = ids[(rec.ts[ids] < low - reach) | (rec.end[ids] > high + reach)]
    if not len(far) or len(far) > few:
        return []
    away = max(low - int(rec.ts[far].min()), int(rec.end[far].max()) - high)
    return [_whole(rec, "far_records", far, len(ids), away / max(high - low, 1))]


def _edges(times: Ints, few: int) -> Ints:
    return np.partition(times, [few, len(times) - 1 - few])[[few, len(times) - 1 - few]]


def _whole(
    rec: Recording, code: str, ids: Ids, total: int, amount: float | None = None, process: int | None = None
) -> Contradiction:
    owners = np.unique(rec.process_of(ids))
    devices = np.unique(rec.device_of(ids))
    return Contradiction(
        code=code,
        count=len(ids),
        total=total,
        process=int(owners[0]) if len(owners) == 1 else process,
        device=int(devices[0]) if len(devices) == 1 and devices[0] >= 0 else None,
        first_ns=int(rec.ts[ids].min()),
        last_ns=int(rec.end[ids].max()),
        amount=amount,
        example=int(ids[0]),
    )
