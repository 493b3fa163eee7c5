"""Host slices that are a cause of their own for an idle GPU: fetching data, compiling, allocating, the
profiler.

Each function is given the context and returns the ids of the slices inside the judged steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.finding import FindingRow
from profrun.analysis.trace.frame import Frame, Index
from profrun.analysis.trace.wall_time import is_dataloader

MALLOC = re.compile(
    r"^(?:cuda|hip)(?:Malloc|Free|HostAlloc|MallocHost|FreeHost|MallocManaged)(?:_v\d+)?$|^cuMemAlloc|^cuMemFree"
)
_COMPILE = re.compile(
    r" \(dynamo_timed\)$|^(?:_compile\.compile_inner|entire_frame_compile|entire_backward_compile)$"
    r"|^(?:FusionKernelRuntime::compile|KernelExecutor::compile|CompiledKernel::compile)"
)
"""Ranges that torch's compiler opens while it compiles (torch 2.0 to 2.13: ``KEY (dynamo_timed)``, from 2.8
on also the names of whole compilations), and those of nvFuser. ``CompiledFunction``,
``CompiledFunctionBackward``, ``Call CompiledFxGraph`` and ``Torch-Compiled Region`` are the execution of
compiled code."""
OPTIMIZER_STEP = "Optimizer.step#"
"""How torch begins the range round each ``optimizer.step()``; ``Optimizer.step#AdamW.step``."""
COMPILED = ("Torch-Compiled Region", "CompiledFunction")
"""How the names of code that torch.compile made begin while it runs: its regions, and its forwards and
backwards for autograd."""


def is_compile_work(name: str) -> bool:
    """Is this the name of a range in which a compiler works?"""
    return _COMPILE.search(name) is not None


def loader_slices(ctx: Context) -> Index:
    """Fetches of a batch."""
    return _named(ctx, is_dataloader)


def compile_slices(ctx: Context) -> Index:
    """Work of a compiler."""
    return _named(ctx, is_compile_work)


def allocation_slices(ctx: Context) -> Index:
    """Calls that allocate or free memory of the device, or pinned memory."""
    return ctx.in_steps(ctx.named("api", lambda name: bool(MALLOC.search(name))))


def wait_slices(ctx: Context) -> Index:
    """Calls in which the host itself waits for the GPU: that cannot wait for the host then."""
    return ctx.blocking_calls


def profiler_slices(ctx: Context) -> Index:
    """The profiler's own work."""
    return ctx.in_steps(ctx.frame.of("overhead"))


CAUSES: tuple[Callable[[Context], Index], ...] = (
    loader_slices,
    compile_slices,
    allocation_slices,
    wait_slices,
    profiler_slices,
)
"""All of them."""


def _named(ctx: Context, matches: Callable[[str], bool]) -> Index:
    return ctx.in_steps(np.concatenate([ctx.named(kind, matches) for kind in ("op", "range")]))


def without(source: Frame, ids: Index, others: Index) -> Index:
    """Those of the host slices in which none of the others starts, whatever its thread."""
    starts = np.sort(source.ts[others])
    inside = np.searchsorted(starts, source.end[ids]) - np.searchsorted(starts, source.ts[ids])
    return np.asarray(ids[inside == 0])


def outermost(source: Frame, ids: Index, around: Index) -> Index:
    """Those of the host slices that lie in one of the slices ``around``, and in no other of themselves."""
    ids = ids[source.inside(around)[ids]]
    return np.asarray(ids[~source.inside(ids)[ids]])


def rows_by_name(ctx: Context, ids: Index) -> list[FindingRow]:
    """A row for each name, most time first."""
    source = ctx.frame
    names, place = np.unique(source.name[ids], return_inverse=True)
    time = np.bincount(place, weights=source.durs(ids))
    calls = np.bincount(place)
    rows = [
        FindingRow(source.names[int(name)], int(count), int(ns))
        for name, count, ns in zip(names, calls, time, strict=True)
    ]
    return sorted(rows, key=lambda row: (-(row.total_ns or 0), row.name))
