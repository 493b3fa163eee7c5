"""Claims about calls: how often kernels and host calls occur per step, and what comes before a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from profrun.analysis.compare.expect.evidence import Calls, Evidence, matches
from profrun.analysis.compare.expect.model import Answer, untold, within
from profrun.analysis.kernel_names import CATEGORIES, read_kernel
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.steps import step_index

_COPIES = ("memcpy", "memset")
"""Categories of GPU work beside those of kernels."""


def counts(evidence: Evidence, limits: Mapping[str, tuple[int, int]]) -> Answer:
    """Does each category or glob occur so often in every whole step?"""
    if gpu_categories(limits) and evidence.no_gpu:
        return untold(evidence.no_gpu)
    if evidence.of.of == "recording":
        return untold("nothing in this trace is a step or a run, so that nothing can be counted in one")
    if not evidence.whole_steps:
        return untold(f"no whole {evidence.of.of} in this trace")
    words, numbers, right = [], [], True
    for name, span in limits.items():
        found = _per_step(evidence, name)
        low, high = min(found), max(found)
        right = right and within(low, span) and within(high, span)
        words.append(f"{name} {low}" if low == high else f"{name} {low} to {high}")
        numbers.append(low if low == high else None)
    value = float(numbers[0]) if len(numbers) == 1 and numbers[0] is not None else None
    return Answer(right, f"{', '.join(words)} {evidence.of.rate}", value, unit="calls")


def gpu_categories(names: Iterable[str]) -> list[str]:
    """Those of the names that are categories of GPU work."""
    return [name for name in names if name in CATEGORIES or name in _COPIES]


def _per_step(evidence: Evidence, name: str) -> list[int]:
    """Calls of a category or glob in each whole step. A glob that fits no GPU work is one of the host."""
    gpu = [one for one in evidence.calls if one.on_gpu and _is_of(one, name)]
    chosen = gpu or [one for one in evidence.calls if not one.on_gpu and matches(one.name, name)]
    if name in CATEGORIES or name in _COPIES:
        chosen = gpu
    return [sum(one.by_step.get(step, 0) for one in chosen) for step in sorted(evidence.whole_steps)]


def _is_of(one: Calls, name: str) -> bool:
    """Is this GPU work of a category, or does its name match a glob?"""
    if name in _COPIES:
        return one.kind == name
    if name in CATEGORIES:
        return one.kind == "kernel" and _is_kernel_of(one.name, name)
    return matches(one.name, name)


def _is_kernel_of(kernel: str, name: str) -> bool:
    """Is a kernel of a category, or does its name match a glob?"""
    return read_kernel(kernel).category == name if name in CATEGORIES else matches(kernel, name)


def after(evidence: Evidence, wanted: Mapping[str, str]) -> Answer:
    """Does each launch of a kernel follow such an op or call, on its thread and since the launch before?"""
    source = frame(evidence.trace)
    words = []
    for kernel, before in wanted.items():
        launches = _launches_of(evidence, source, kernel)
        if launches is None:
            return untold("the trace does not tell which call launched which kernel")
        if not len(launches):
            return Answer(False, f"no launch of {kernel}")
        good = _follows(source, launches, before)
        words.append(f"{before} before {int(good.sum())} of {len(good)} launches of {kernel}")
        if not good.all():
            return Answer(False, words[-1])
    return Answer(True, ", ".join(words))


def _launches_of(evidence: Evidence, source: Frame, wanted: str) -> Index | None:
    """The calls that launched kernels of a category or glob in whole steps; None where no call is known."""
    index = step_index(source)
    gpu = source.of("kernel")
    gpu = gpu[source.named(gpu, lambda name: _is_kernel_of(name, wanted))]
    if len(index.slices):
        gpu = gpu[np.isin(index.of_gpu[gpu], list(evidence.whole_steps))]
    calls = source.launch[gpu]
    return None if len(gpu) and (calls < 0).all() else np.unique(calls[calls >= 0]).astype(np.intp)


def _follows(source: Frame, launches: Index, glob: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each launching call: did a matching slice begin on its thread after the launch before it?"""
    everything = np.unique(source.launch[source.launched])
    marks = source.of("op", "api", "range")
    marks = marks[source.named(marks, lambda name: matches(name, glob))]
    found = np.zeros(len(launches), dtype=bool)
    for track in np.unique(source.track[launches]):
        mine = source.track[launches] == track
        on_track = everything[source.track[everything] == track]
        starts = np.sort(source.ts[on_track])
        times = np.sort(source.ts[marks[source.track[marks] == track]])
        at = source.ts[launches[mine]]
        place = np.searchsorted(starts, at, side="left") - 1
        since = np.where(place >= 0, starts[np.maximum(place, 0)], np.iinfo(np.int64).min)
        found[mine] = np.searchsorted(times, at, "right") > np.searchsorted(times, since, "right")
    return found
