"""Why equal launches of a kernel take different times: ``kernel_variation``."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.step_time import Floats
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.equal_launches import equal_launches
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.intervals import covered, union
from profrun.analysis.trace.roles import kernel_names, on_device
from profrun.analysis.trace.sampled_factors import Sampled
from profrun.analysis.trace.steps import step_index
from profrun.analysis.trace.variation import Variation, refused, told
from profrun.analysis.variance_shares import Factor
from profrun.contract.units import counted

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

LEAST_LAUNCHES = 50
"""Of fewer equal launches no shares are told."""
MOST_PLACES = 0.25
"""Launches are compared by their place in the step where there are at most so many places per launch."""


def kernel_variation(trace: Trace, kernel: str) -> Variation | None:
    """Why launches of a kernel take different times; None where no launch with a grid has such a name.

    Of the matching launches those are taken that are equal (``equal_launches``) and together take most time.

    Args:
        trace: of a trial under a profiler.
        kernel: name of a kernel, in full or short, or a pattern with ``*`` and ``?``.
    """
    source = frame(trace)
    equal = equal_launches(trace)
    names = kernel_names(source)
    wanted = [
        number
        for number, read in names.items()
        if any(name == kernel or fnmatchcase(name, kernel) for name in (source.names[number], read.short))
    ]
    match = source.has_name(equal.ids, wanted)
    if not match.any():
        return None
    group = equal.group[match]
    biggest = int(np.bincount(group, weights=source.durs(equal.ids[match])).argmax())
    ids = equal.ids[match][group == biggest]
    ids = ids[np.argsort(source.ts[ids], kind="stable")]
    kinds = len(np.unique(group))
    of = f"equal launches of {names[int(source.name[ids[0]])].short}"
    if kinds > 1:
        of += f" (of {counted(kinds, 'kind')} with this name those that take most time)"
    return launch_variation(trace, ids, of)


def launch_variation(trace: Trace, ids: Index, of: str) -> Variation:
    """Why these launches take different times.

    Args:
        trace: of a trial under a profiler.
        ids: equal launches on one stream, in time order, shape (n,).
        of: what they are, in words.
    """
    source = frame(trace)
    times = source.durs(ids).astype(np.float64)
    kept = times > 0
    ids, times = ids[kept], times[kept]
    if len(ids) < LEAST_LAUNCHES:
        return refused(
            of, times, f"at least {LEAST_LAUNCHES} equal launches are needed, there are {len(ids)}"
        )
    starts, ends = source.ts[ids], source.end[ids]
    sampled = Sampled.of(trace, starts, ends, times)
    factors = [Factor("overlap", "overlap", _overlap(source, ids, starts, ends))]
    if len(sampled.inside) == len(ids):
        factors += [one for one in sampled.factors if one.cause in ("clock", "GPU processes")]
    step, place = _places(source, ids)
    if step is not None and place is not None:
        factors.append(_at_place(times, place))
        factors.append(Factor("drift", "position", step, longer=False, last=True))
    return told(of, times, factors, sampled)


def _overlap(source: Frame, ids: Index, starts: Ints, ends: Ints) -> Floats:
    """Part of each launch during which other streams of its GPU work."""
    device = int(source.device_of(ids[:1])[0])
    others = on_device(source, source.gpu_by_time, device)
    others = others[source.track[others] != source.track[ids[0]]]
    held = covered(union(source.ts[others], source.end[others]), starts, ends)
    return np.asarray(held / (ends - starts), dtype=np.float64)


def _places(source: Frame, ids: Index) -> tuple[Floats | None, Ints | None]:
    """Number of the step of each launch, and how many of the launches are before it in its step."""
    index = step_index(source)
    owner = index.of_gpu[ids]
    if not len(index.slices) or (owner < 0).any():
        return None, None
    first = np.searchsorted(np.sort(owner), owner)
    order = np.argsort(owner, kind="stable")
    place = np.empty(len(ids), dtype=np.int64)
    place[order] = np.arange(len(ids)) - first[order]
    return index.numbers[owner].astype(np.float64), place


def _at_place(times: Floats, place: Ints) -> Factor:
    """The mean logarithm of the launches at the same place of a step."""
    count = int(place.max()) + 1
    if count > MOST_PLACES * len(times):
        place, count = np.zeros_like(place), 1
    means = np.bincount(place, weights=np.log(times)) / np.maximum(np.bincount(place), 1)
    return Factor("place in the step", "place in the step", means[place], freedom=max(1, count - 1))
