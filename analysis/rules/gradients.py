"""Gradients that are kept between steps: filled with zeros, and added to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.host_causes import outermost
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_text import span_text
from profrun.analysis.trace.frame import Index
from profrun.contract.units import percent_text, time_text

LEAST_SHARE = 0.01
ZERO_GRAD = "Optimizer.zero_grad#"
"""How torch begins the range round each ``optimizer.zero_grad()`` (``torch/optim/optimizer.py``)."""
FILLS = frozenset({"aten::_foreach_zero_", "aten::zero_"})
ADDITIONS = frozenset({"aten::add_"})
ACCUMULATE = "torch::autograd::AccumulateGrad"
"""The node of autograd that keeps a gradient, or adds to the one that is there."""


@rule(
    "zeroed-gradients",
    "Gradients are filled with zeros and added to",
    experiments=("set-to-none",),
    remedy="zero_grad(set_to_none=True)",
    meaning="zero_grad(set_to_none=False) writes zeros into each gradient, and the backward reads them again "
    "to add to them. Where there is no gradient, the backward keeps the one that it has computed: then "
    "nothing is filled or added.",
    threshold="Fills inside of Optimizer.zero_grad and additions of AccumulateGrad, in the steps and on a "
    "GPU, whose gain is at least 1 % of the step. Not on a CPU, where it can cost more to allocate gradients "
    "anew.",
    advice="optimizer.zero_grad(set_to_none=True), which is the default since PyTorch 2.0.",
    bound="The steps are replayed without the fills and the additions, and without the ops that launch them; "
    "without a replay, the time of these kernels. The additions of all backward passes of a step count, "
    "although those after the first remain.",
    relies_on=("kernels",),
)
def zeroed_gradients(ctx: Context) -> Iterator[Hit]:
    """Fills of ``zero_grad()``, and the additions that they bring."""
    if not ctx.steps:
        return
    fills = _inside(ctx, FILLS, lambda name: name.startswith(ZERO_GRAD))
    additions = _inside(ctx, ADDITIONS, lambda name: name == ACCUMULATE) if len(fills) else fills
    if not len(additions):
        return
    ops = np.concatenate([fills, additions])
    work = _launched_in(ctx, ops)
    if not len(work):
        return
    gain = ctx.gpu_gain(work, np.ones(len(work)), calls=ops)
    if gain.share < LEAST_SHARE:
        return
    time = ctx.total(work)
    extent = f"{time_text(ctx.per_step_ns(time))} of GPU time {ctx.per}"
    yield Hit(
        f"zero_grad() fills gradients with zeros, and the backward adds to them: {extent}, at most "
        f"{percent_text(gain.share)} of {span_text(ctx)}",
        {"fills": len(fills), "additions": len(additions), "total_ns": time},
        slices=ctx.worst(ops),
        names=sorted({ctx.frame.text(int(one)) for one in ops}),
        gain=gain,
        extent=extent,
    )


def _inside(ctx: Context, ops: frozenset[str], matches: Callable[[str], bool]) -> Index:
    """The outermost of the steps' ops with these names inside of ops and ranges whose name matches.

    Ranges of the optimizer were recorded as ops before PyTorch 2.
    """
    ids = ctx.in_steps(ctx.named("op", ops.__contains__))
    around = np.concatenate([ctx.named("op", matches), ctx.named("range", matches)])
    return outermost(ctx.frame, ids, around)


def _launched_in(ctx: Context, ops: Index) -> Index:
    """The GPU work of the steps that these ops launched, directly or in ops inside of them."""
    work = ctx.step_gpu[ctx.frame.launch[ctx.step_gpu] >= 0]
    calls = ctx.frame.launch[work]
    return np.asarray(work[np.isin(calls, ops) | ctx.frame.inside(ops)[calls]])
