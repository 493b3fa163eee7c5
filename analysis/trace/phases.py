"""A trace whose steps are the ranges of one name: ``phase`` of a trace and a name.

A program has parts that a question is about (prefill and decode of a language model, one module, a
``record_function``). The ranges of that name then count as the steps, so that every number of a trace can be
asked of them: what "per step" means is then "per range of this name".
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.frame import KIND, Frame, Index, frame
from profrun.analysis.trace.steps import step_index, step_spans
from profrun.traces.memo import Memo, seeded

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


def phase(trace: Trace, name: str) -> Trace | None:
    """The same trace with the ranges of one name as its steps; None where it has no such range.

    Ranges count that overlap a whole recorded step, where the trace has steps. Of ranges inside each other
    the outermost counts. The result shares the connection of ``trace`` and is closed with it.

    Args:
        name: a name or a glob, of ranges and ops of the host.
    """
    source = frame(trace)
    chosen = _chosen(trace, source, name)
    if not len(chosen):
        return None
    kind = source.kind.copy()
    kind[source.of("step")] = KIND["range"]
    kind[chosen] = KIND["step"]
    found = copy.copy(trace)
    found.memo = Memo()
    extra = {key: value for key, value in trace.meta.get("extra", {}).items() if key != "windows"}
    found.meta = {**trace.meta, "extra": extra}
    cut = not len(step_index(source).slices)
    seeded(frame, found, replace(source, kind=kind, may_be_cut=cut, memo=Memo()))
    return found


def _chosen(trace: Trace, source: Frame, name: str) -> Index:
    """Host ranges and ops of this name that overlap a whole step which the schedule recorded."""
    ids = source.of("range", "op")
    ids = ids[~source.on_gpu[source.track[ids]]]
    ids = ids[source.named(ids, lambda text: fnmatchcase(text, name))]
    index = step_index(source)
    if not len(index.slices):
        return np.asarray(ids)
    windows: Mapping[str, str] = trace.meta.get("extra", {}).get("windows") or {}
    active = np.ones(len(index.slices), dtype=bool)
    if "active" in windows.values():
        active[:] = [(windows.get(str(number)) or "active") == "active" for number in index.numbers]
    inside = np.zeros(len(ids), dtype=bool)
    owner = source.process_of(ids)
    for process in np.unique(owner):
        _, _, whole = step_spans(source, int(process))
        steps = index.slices[[number for number in whole if number >= 0 and active[number]]]
        mine = owner == process
        before = np.searchsorted(np.sort(source.ts[steps]), source.end[ids[mine]], side="left")
        ended = np.searchsorted(np.sort(source.end[steps]), source.ts[ids[mine]], side="right")
        inside[mine] = before > ended
    return np.asarray(ids[inside])
