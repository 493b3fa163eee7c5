"""Chains of point-wise operators on the CPU, each of which a compiler can make one loop."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.host_causes import (
    COMPILED,
    OPTIMIZER_STEP,
    compile_slices,
    loader_slices,
    rows_by_name,
)
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_cost import PART_BOUND, WARNING_SHARE
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.frame import Index, Mask
from profrun.analysis.trace.op_cost import POINTWISE
from profrun.analysis.trace.steps import step_of_host
from profrun.contract.units import counted, percent_text, rate_text, time_text

_FUNCTIONS = """
layer_norm rms_norm group_norm batch_norm softmax log_softmax dropout square relu6 elu mish hardswish softplus
to type_as
"""
_POINTWISE = POINTWISE | frozenset(_FUNCTIONS.split())
"""Operators whose work a compiler joins with that before and behind them, as a program writes them."""
_REDUCTIONS = frozenset({"sum", "mean", "amax", "amin"})
"""These, too, where point-wise operators are beside them."""
_VIEW_NAMES = """
view _unsafe_view reshape _reshape_alias flatten t transpose permute expand expand_as unsqueeze squeeze
detach alias select slice narrow split chunk unbind as_strided result_type
"""
_VIEWS = frozenset(_VIEW_NAMES.split())
"""Operators that only say how a tensor is read: no chain ends at them."""
_OUTSIDE = (
    "torch.compile made part of this program, and these operators are outside of it: compile the code round "
    "them, too (graph breaks)."
)
_LEAST = 2
"""Point-wise operators that make a chain."""
_PAUSE_NS = 100_000
"""A pause of so many ns that is also longer than the operators beside it ends a chain: the program did
something else. Python needs less between two operators, also with the ranges of modules (measured: 10 to
190 us with a profiler, the longest beside operators of 400 us)."""


@rule(
    "cpu-pointwise",
    "Point-wise operators follow each other on the CPU",
    experiments=("compile=default",),
    remedy="torch.compile",
    meaning="Each of them reads and writes whole tensors in memory. A compiler makes one loop of them, and "
    "the values between stay in registers.",
    threshold="No GPU works in the steps. Chains of at least two point-wise operators take at least 5 % of "
    "the step. Norms, softmax and sums right beside them belong to a chain. Views end none. Operators of "
    "optimizers, of DataLoaders, of a compiler and of compiled code do not count.",
    advice="torch.compile(model), or operators that torch has in one piece, such as "
    "torch.nn.functional.gelu(x, approximate='tanh') and rms_norm.",
    bound=f"The time from the first to the last operator of each chain. {PART_BOUND}",
    relies_on=("steps.dur_ns",),
)
def cpu_pointwise(ctx: Context) -> Iterator[Hit]:
    """Consecutive point-wise operators of a thread."""
    if ctx.waiting or not ctx.steps:
        return
    ids = _operators(ctx)
    group = _chains(ctx, ids)
    chains = int(group.max(initial=-1)) + 1
    if not chains:
        return
    each = ctx.per_step_ns(int(_spans(ctx, ids, group).sum()))
    gain = ctx.cost.part_gain(each)
    if gain.share < WARNING_SHARE:
        return
    member = ids[group >= 0]
    longest = int(np.bincount(group[group >= 0]).max())
    rate = rate_text(chains / ctx.step_count)
    many, take = (f"{rate} chain", "takes") if rate == "1" else (f"{rate} chains", "take")
    yield Hit(
        f"{many} of point-wise operators {ctx.rate}, the longest of {counted(longest, 'operator')}, "
        f"{take} {time_text(each)} {ctx.per}, "
        f"{percent_text(each / ctx.cost.recorded_ns)} of the recorded step",
        {
            "chains_per_step": chains / ctx.step_count,
            "operators_per_step": len(member) / ctx.step_count,
            "pointwise_ns_per_step": each,
            "longest": longest,
        },
        slices=ctx.worst(member),
        gain=gain,
        extent=f"{many} {ctx.rate}",
        rows=rows_by_name(ctx, member),
        fix=_OUTSIDE if ctx.program.compiled else None,
    )


def _operators(ctx: Context) -> Index:
    """The operators that the program or its backward calls itself, without views, by thread and start."""
    source = ctx.frame
    ops = ctx.in_steps(ctx.named("op", lambda name: name.startswith("aten::")))
    ops = ops[~source.inside(ops)[ops]]
    ops = ops[~source.named(ops, lambda name: _plain(name) in _VIEWS)]
    return source.by_track(ops)


def _chains(ctx: Context, ids: Index) -> Ints:
    """The chain of each operator of ``_operators``; int64, shape (ids,), -1 for none."""
    source = ctx.frame
    mine = ~source.inside(_of_others(ctx))[ids]
    point = mine & source.named(ids, lambda name: _plain(name) in _POINTWISE)
    fits = point | (mine & source.named(ids, lambda name: _plain(name) in _REDUCTIONS))
    joined = fits[1:] & fits[:-1] & _follows(ctx, ids)
    run = np.cumsum(np.append([True], ~joined))[: len(ids)] - 1
    enough = np.bincount(run, weights=point)[run] >= _LEAST
    found = np.full(len(ids), -1, dtype=np.int64)
    found[enough] = np.unique(run[enough], return_inverse=True)[1]
    return found


def _follows(ctx: Context, ids: Index) -> Mask:
    """Whether each operator but the first follows the one before, in its thread and step: (ids - 1,)."""
    source = ctx.frame
    step, track, durs = step_of_host(source, ctx.index, ids), source.track[ids], source.durs(ids)
    pause = source.ts[ids][1:] - source.end[ids][:-1]
    near = pause <= np.maximum(_PAUSE_NS, np.maximum(durs[1:], durs[:-1]))
    return np.asarray(near & (step[1:] == step[:-1]) & (track[1:] == track[:-1]))


def _of_others(ctx: Context) -> Index:
    """Ranges of optimizers, of DataLoaders, of compiled code, and of the compiler, which traces operators."""
    updates = ctx.named("range", lambda name: name.startswith(OPTIMIZER_STEP))
    compiled = [ctx.named(kind, lambda name: name.startswith(COMPILED)) for kind in ("op", "range")]
    return np.concatenate([updates, *compiled, loader_slices(ctx), compile_slices(ctx)])


def _spans(ctx: Context, ids: Index, group: Ints) -> Ints:
    """Time from the start of the first operator of each chain to the end of its last, ns; shape (chains,)."""
    _, first = np.unique(group, return_index=True)
    last = len(group) - 1 - np.unique(group[::-1], return_index=True)[1]
    times: Ints = ctx.frame.end[ids[last]] - ctx.frame.ts[ids[first]]
    return times[1:] if group.min() < 0 else times


def _plain(name: str) -> str:
    """The name of an operator without its namespace and the mark of an operator in place."""
    return name.removeprefix("aten::").removesuffix("_")
