"""Host work inside the steps by name: ops, ranges and runtime calls; waits; overlap with the GPU.

``host_ops`` is given a frame and its steps and returns one ``HostOp`` per name and kind; ``overlap_by_step``
returns for how long the GPU worked in each step while the host did not wait for it.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.compare.call_paths import is_wrapper, plain
from profrun.analysis.compare.compared_trial import HostOp
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import KIND, Frame, Index, Mask
from profrun.analysis.trace.intervals import covered, subtract, union
from profrun.analysis.trace.op_tree import op_tree
from profrun.analysis.trace.steps import StepIndex, step_of_host
from profrun.contract.steps import RUN_RANGE

WAITS = re.compile(
    r"^(?:cuda|hip)(?:Device|Stream|Event)Synchronize|^cu(?:Stream|Event|Ctx)Synchronize"
    r"|^(?:cuda|hip)Memcpy(?!.*Async)|^cuMemcpy(?!.*Async)|^hipMemcpyWithStream|^(?:cuda|hip)Free(?!Async|Host)"
)
"""Runtime calls that wait for the GPU: synchronisation, copies that are not asynchronous, freeing."""


def is_wait(name: str) -> bool:
    """Does this runtime call wait for the GPU?"""
    return WAITS.search(name) is not None


def _kept(source: Frame, index: StepIndex, keep: Mask, ids: Index) -> Index:
    """The host slices that start inside a typical step; all of them without steps."""
    if not len(index.slices):
        return ids
    step = step_of_host(source, index, ids)
    return np.asarray(ids[(step >= 0) & keep[step]])


def host_ops(source: Frame, index: StepIndex, keep: Mask) -> tuple[HostOp, ...]:
    """Host slices in typical steps by kind and plain name, most CPU time first.

    Args:
        keep: True for each typical step of ``index``, shape (steps,).
    """
    tree = op_tree(source)
    ids = _kept(source, index, keep, np.flatnonzero(tree.counted))
    if not len(ids):
        return ()
    main = np.unique(source.track[index.slices]) if len(index.slices) else np.unique(source.track[ids])
    calls = ~tree.repeat[ids]
    made = np.zeros(len(source), dtype=np.int64)
    launched = source.launched
    np.add.at(made, source.launch[launched], 1)
    place, keys = _rows(source, ids)
    size = len(keys)

    def total(values: Ints | NDArray[np.float64], mask: Mask | None = None) -> Ints:
        weights = values if mask is None else np.where(mask, values, 0)
        return np.bincount(place, weights=weights, minlength=size).astype(np.int64)

    columns = {
        "calls": np.bincount(place, weights=calls, minlength=size).astype(np.int64),
        "cpu_ns": total(source.dur[ids], calls),
        "self_cpu_ns": total(tree.self_cpu[ids]),
        "device_ns": total(tree.device[ids], calls),
        "self_device_ns": total(tree.self_device[ids]),
        "main_ns": total(tree.self_cpu[ids], np.isin(source.track[ids], main)),
        "launches": total(made[ids]),
    }
    rows = [
        HostOp(
            name=name,
            kind=kind,
            waits=kind == "api" and is_wait(name),
            **{column: int(values[number]) for column, values in columns.items()},
        )
        for number, (name, kind) in enumerate(keys)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.cpu_ns, row.kind, row.name)))


def _rows(source: Frame, ids: Index) -> tuple[Ints, list[tuple[str, str]]]:
    """(row of each slice: int64, shape (ids,); plain name and kind of each row)."""
    kinds = {KIND[kind]: kind for kind in ("op", "range", "step", "api")}
    unique, inverse = np.unique(
        source.name[ids].astype(np.int64) * 16 + source.kind[ids], return_inverse=True
    )
    rows: dict[tuple[str, str], int] = {}
    of = np.empty(len(unique), dtype=np.int64)
    for number, key in enumerate(unique):
        kind = kinds[int(key) % 16]
        text = source.names[int(key) // 16]
        step = "(run)" if text == RUN_RANGE else "(step)"
        name = step if kind == "step" else ("(compiled)" if is_wrapper(text) else plain(text))
        of[number] = rows.setdefault((name, kind), len(rows))
    return of[np.ravel(inverse)], list(rows)


def overlap_by_step(source: Frame, index: StepIndex) -> Ints:
    """For each step the ns in which the GPU worked while the host was in the step and did not wait.

    The host waits inside calls that synchronise, and inside a launch call while the work of this very launch
    runs (a blocking launch).

    Returns:
        ns, int64, shape (steps,), in the order of ``index``.
    """
    found = np.zeros(len(index.slices), dtype=np.int64)
    api = source.of("api")
    waiting = np.isin(source.name[api], source.name_ids(is_wait))
    for process in np.unique(index.process):
        mine = np.flatnonzero(index.process == process)
        own = source.track_process[source.track] == process
        gpu = source.gpu[own[source.gpu]]
        tracks = np.unique(source.track[index.slices[mine]])
        calls = api[waiting & own[api] & np.isin(source.track[api], tracks)]
        blocked = union(source.ts[calls], source.end[calls])
        launched = gpu[source.launch[gpu] >= 0]
        call = source.launch[launched]
        held = union(
            np.maximum(source.ts[launched], source.ts[call]),
            np.minimum(source.end[launched], source.end[call]),
        )
        busy = subtract(subtract(union(source.ts[gpu], source.end[gpu]), blocked), held)
        found[mine] = covered(busy, source.ts[index.slices[mine]], source.end[index.slices[mine]])
    return found
