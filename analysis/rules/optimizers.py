"""Optimizers on the CPU that update one parameter after the other."""

from __future__ import annotations

from collections.abc import Iterator

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.host_causes import COMPILED, OPTIMIZER_STEP, outermost, rows_by_name, without
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_cost import PART_BOUND, WARNING_SHARE
from profrun.analysis.trace.frame import Index
from profrun.contract.units import percent_text, rate_text, time_text

WITH_FUSED = frozenset({"Adagrad", "Adam", "AdamW", "SGD"})
"""Optimizers that have ``fused=True`` on a CPU (https://docs.pytorch.org/docs/stable/optim.html)."""
FUSED = "aten::_fused_"
"""How the names of torch's fused optimizers begin, such as ``aten::_fused_adamw_``."""


@rule(
    "cpu-optimizer",
    "The optimizer updates parameters on the CPU one by one",
    experiments=("fused-optimizer",),
    remedy="fused=True",
    meaning="Without a GPU, Adam, AdamW, SGD and Adagrad update one parameter after the other, each with "
    "several operators, unless they are told to update all with one operator.",
    threshold="No GPU works in the steps. Optimizer.step of one of these optimizers has no fused operator "
    "and no compiled code, and takes at least 5 % of the step.",
    advice="torch.optim.AdamW(..., fused=True), and the same for Adam, SGD and Adagrad.",
    bound=f"The time of Optimizer.step. {PART_BOUND}",
    relies_on=("steps.dur_ns",),
)
def cpu_optimizer(ctx: Context) -> Iterator[Hit]:
    """Steps of optimizers that are not fused."""
    if ctx.waiting or not ctx.steps:
        return
    updates = _not_fused(ctx, ctx.in_steps(ctx.named("range", lambda name: _optimizer(name) in WITH_FUSED)))
    if not len(updates):
        return
    each = ctx.per_step_ns(ctx.host_time(updates))
    gain = ctx.cost.part_gain(each)
    if gain.share < WARNING_SHARE:
        return
    ops = outermost(ctx.frame, ctx.frame.of("op"), updates)
    names = sorted({_optimizer(ctx.frame.text(int(one))) for one in updates})
    update = "update" if len(names) > 1 else "updates"
    rate = f"{rate_text(len(ops) / ctx.step_count)} operators {ctx.rate}"
    yield Hit(
        f"{' and '.join(names)} {update} parameters with {rate}, "
        f"{time_text(each)} {ctx.per}, {percent_text(each / ctx.cost.recorded_ns)} of the recorded step",
        {"optimizer_ns_per_step": each, "operators_per_step": len(ops) / ctx.step_count},
        slices=ctx.worst(updates),
        gain=gain,
        extent=", ".join(names),
        rows=rows_by_name(ctx, ops),
    )


def _optimizer(name: str) -> str:
    """The optimizer of a range round its step: 'AdamW' of 'Optimizer.step#AdamW.step'; '' of another name."""
    return name[len(OPTIMIZER_STEP) :].partition(".")[0] if name.startswith(OPTIMIZER_STEP) else ""


def _not_fused(ctx: Context, updates: Index) -> Index:
    """Those of these ranges in which no fused operator and no compiled code starts."""
    return without(ctx.frame, updates, ctx.named("op", lambda name: name.startswith((FUSED, *COMPILED))))
