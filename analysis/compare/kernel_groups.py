"""GPU work of the typical samples by kernel name and call path.

``kernel_groups`` is given the GPU slices of the typical samples and returns a ``KernelGroup`` per name, role,
path and module. ``kernel_series`` returns the time of each kernel name in each sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.compare.call_paths import CallPaths, call_paths, has_path, launch_paths
from profrun.analysis.compare.compared_trial import KernelFacts, KernelGroup
from profrun.analysis.trace.backward import forward_ops
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Frame, Index, Mask
from profrun.analysis.trace.roles import ROLES, kernel_names, roles

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

SERIES = 400
"""Kernel names whose time in each sample is kept, those with most time."""
GroupKey = tuple[str, str, tuple[str, ...], str, str | None, bool]
"""name, role, path, kinds of the path, module, backward."""


def normalised_names(source: Frame) -> dict[int, str]:
    """Name id -> normalised name of everything on a GPU; the names of copies and fills stay as they are."""
    found = {number: kernel.normalised for number, kernel in kernel_names(source).items()}
    for number in np.unique(source.name[source.of("memcpy", "memset")]):
        found.setdefault(int(number), source.names[int(number)])
    return found


def kernel_groups(
    trace: Trace, source: Frame, gpu: Index, names: Mapping[int, str], facts: Mapping[str, KernelFacts]
) -> tuple[KernelGroup, ...]:
    """GPU work by normalised name, role, call path and module, most time first.

    Args:
        gpu: ids of the GPU slices of typical samples, shape (n,).
        names: normalised name by name id. facts: by normalised name.
    """
    if not len(gpu):
        return ()
    paths = call_paths(source)
    path, adopted = launch_paths(source, gpu)
    role = roles(trace)[gpu].astype(np.int64)
    name_id, texts = _name_places(source, gpu, names)
    keys = np.stack([name_id, role, path, adopted, _forward_paths(trace, source, gpu)])
    unique, inverse = np.unique(keys, axis=1, return_inverse=True)
    place = np.ravel(inverse)
    calls = np.bincount(place, minlength=unique.shape[1])
    time = np.bincount(place, weights=source.durs(gpu), minlength=unique.shape[1])
    merged: dict[GroupKey, tuple[int, int]] = {}
    for number, (name, part, own, outer, forward) in enumerate(unique.T):
        above, above_kinds = paths.spell(int(outer))
        below, below_kinds = paths.spell(int(own))
        module, backward = _module(paths, int(own), int(outer), int(forward))
        key = (texts[name], ROLES[part], above + below, above_kinds + below_kinds, module, backward)
        old_calls, old_time = merged.get(key, (0, 0))
        merged[key] = old_calls + int(calls[number]), old_time + int(time[number])
    found = [
        KernelGroup(key[0], _category(key[1], facts[key[0]].category), *key[1:], *sums)
        for key, sums in merged.items()
    ]
    return tuple(sorted(found, key=lambda group: (-group.ns, group.name, group.path)))


def kernel_series(
    source: Frame, gpu: Index, names: Mapping[int, str], sample_of: Ints, keep: Mask
) -> dict[str, tuple[int, ...]]:
    """GPU ns of each typical sample by normalised kernel name, for the names with most time.

    Args:
        gpu: ids of the GPU slices of typical samples, shape (n,).
        sample_of: the sample that launched each slice, by slice id. keep: True for typical samples.
    """
    if not len(gpu):
        return {}
    place, texts = _name_places(source, gpu, names)
    column = np.cumsum(keep) - 1
    width = int(keep.sum())
    flat = np.bincount(
        place * width + column[sample_of[gpu]], weights=source.durs(gpu), minlength=len(texts) * width
    )
    rows = flat.reshape(len(texts), width).astype(np.int64)
    most = np.argsort(-rows.sum(axis=1), kind="stable")[:SERIES]
    return {texts[number]: tuple(rows[number].tolist()) for number in most}


def outside_by_category(trace: Trace, source: Frame, sample_of: Ints) -> dict[str, int]:
    """GPU ns by category of what no whole step launched."""
    ids = source.gpu[sample_of[source.gpu] < 0]
    kernels = kernel_names(source)
    keys = np.stack([source.name[ids].astype(np.int64), roles(trace)[ids].astype(np.int64)])
    unique, inverse = np.unique(keys, axis=1, return_inverse=True)
    time = np.bincount(np.ravel(inverse), weights=source.durs(ids), minlength=unique.shape[1])
    found: dict[str, int] = {}
    for (name, part), total in zip(unique.T, time, strict=True):
        kernel = kernels.get(int(name))
        category = _category(ROLES[part], kernel.category if kernel else "unknown")
        found[category] = found.get(category, 0) + int(total)
    return found


def _category(role: str, by_name: str) -> str:
    """Copies and fills by role, so that copy kernels of AMD's runtime count like copies; else by name."""
    return role if role in ("memcpy", "memset") else by_name


def _module(paths: CallPaths, own: int, outer: int, forward: int) -> tuple[str | None, bool]:
    """(module, is it its backward) of a launch with these path ids, -1 for none."""
    for path, backward in ((own, False), (forward, True), (outer, True)):
        if path >= 0 and paths.module[path]:
            return paths.module[path], backward
    return None, forward >= 0


def _forward_paths(trace: Trace, source: Frame, gpu: Index) -> Ints:
    """Path of the forward op whose backward launched each GPU slice: int64, shape (n,), -1 for none."""
    paths = call_paths(source)
    above = source.chase(has_path(paths))
    calls = source.launch[gpu]
    op = np.where(calls >= 0, forward_ops(trace)[calls], -1)
    own = np.where((op >= 0) & (paths.of[op] >= 0), op, np.where(op >= 0, above[op], -1))
    return np.asarray(np.where(own >= 0, paths.of[own], -1), dtype=np.int64)


def _name_places(source: Frame, gpu: Index, names: Mapping[int, str]) -> tuple[Ints, list[str]]:
    """(place of each slice's name among the distinct names: int64, shape (n,); the distinct names)."""
    place: dict[str, int] = {}
    of = np.full(len(source.names), -1, dtype=np.int64)
    for number in np.unique(source.name[gpu]):
        of[number] = place.setdefault(names[int(number)], len(place))
    return of[source.name[gpu]], list(place)
