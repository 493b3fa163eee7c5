"""Matrix work on the CPU in fewer threads than there are cores, because a variable says so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.host_causes import loader_slices, rows_by_name, without
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.rules.step_cost import WARNING_SHARE
from profrun.analysis.rules.step_text import span_text
from profrun.analysis.trace.frame import Index
from profrun.analysis.trace.matrix_ops import is_counted
from profrun.contract.units import counted, percent_text, time_text

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that limit the threads of operations on the CPU; torchrun sets the first to 1 where it starts
several processes (https://docs.pytorch.org/docs/stable/elastic/run.html)."""


@rule(
    "few-cpu-threads",
    "Work on the CPU uses few of its cores",
    experiments=("cpu-threads=2", "cpu-threads=4", "cpu-threads=8"),
    remedy="a larger OMP_NUM_THREADS",
    meaning="A variable of the environment limits the threads of operations on the CPU to fewer than the "
    "machine has cores, and the step spends time in matrix work on the CPU.",
    threshold="OMP_NUM_THREADS or MKL_NUM_THREADS is set to at most half of the machine's cores, and matrix "
    "products, convolutions and attention that launch nothing on a GPU take at least 5 % of the step.",
    advice="Set OMP_NUM_THREADS to the number of cores divided by the processes of the node. torchrun sets "
    "it to 1 where it starts several processes and the variable is not set.",
    bound="The time of all operations that launch nothing on a GPU, less what they take where all cores "
    "share it, and at most the part of the step in which the GPU does not work.",
    relies_on=("steps.dur_ns",),
)
def few_cpu_threads(ctx: Context) -> Iterator[Hit]:
    """Matrix work on the CPU with few threads."""
    limit = _limit(ctx)
    if limit is None or not ctx.steps:
        return
    variable, threads, cores = limit
    ids = _on_the_cpu(ctx, ctx.in_steps(ctx.named("op", is_counted)))
    if not len(ids):
        return
    time, spared = ctx.host_time(ids), 1 - threads / cores
    if ctx.host_gain(time * spared).share < WARNING_SHARE:
        return
    # The variable holds for the other operations, too: sums, element-wise ones, optimizers.
    work = np.setdiff1d(_on_the_cpu(ctx, ctx.in_steps(ctx.frame.of("op"))), loader_slices(ctx))
    gain = ctx.host_gain(ctx.host_time(work) * spared)
    extent, each = f"{variable}={threads} on {counted(cores, 'core')}", ctx.per_step_ns(time)
    yield Hit(
        f"{extent}: {time_text(each)} {ctx.per} pass in matrix work on the CPU, "
        f"{percent_text(each / ctx.cost.step_ns)} of {span_text(ctx)}",
        {
            "variable": variable,
            "threads": threads,
            "cores": cores,
            "matrix_work_ns_per_step": each,
        },
        slices=ctx.worst(ids),
        gain=gain,
        extent=extent,
        rows=rows_by_name(ctx, ids),
    )


def _limit(ctx: Context) -> tuple[str, int, int] | None:
    """(variable, threads, cores) where a variable allows at most half of the cores; None elsewhere."""
    provenance = ctx.provenance
    if provenance is None or not provenance.cpus:
        return None
    for variable in VARIABLES:
        text = provenance.environment.get(variable, "")
        if text.isdigit() and 0 < int(text) <= provenance.cpus // 2:
            return variable, int(text), provenance.cpus
    return None


def _on_the_cpu(ctx: Context, ids: Index) -> Index:
    """Those ops in which no call of the GPU's runtime is made."""
    return without(ctx.frame, ids, ctx.frame.of("api"))
