"""Communication: time it is exposed, and ranks that others wait for."""

from __future__ import annotations

from collections.abc import Iterator

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.rule import Hit, rule
from profrun.analysis.trace.ranks import compare_ranks
from profrun.contract.units import percent_text, time_text

EXPOSED_SHARE = 0.1
WAIT_SHARE = 0.05


@rule(
    "exposed-communication",
    "Communication that nothing hides",
    meaning="Collectives run while no computation does: the GPU moves data and nothing else.",
    threshold="Communication not covered by computation takes at least 10 % of the GPU's span (the "
    "TensorBoard plugin's limit for communication in steps).",
    advice="Larger or smaller buckets so that all-reduce overlaps backward, gradient accumulation, "
    "compression.",
    relies_on=("devices.busy_ns",),
)
def exposed_communication(ctx: Context) -> Iterator[Hit]:
    """Exposed communication by device."""
    for row in ctx.devices:
        if row.span_ns and row.exposed_comm_ns / row.span_ns >= EXPOSED_SHARE:
            share = row.exposed_comm_ns / row.span_ns
            yield Hit(
                f"{ctx.labels.gpus[row.device]}: {time_text(row.exposed_comm_ns)} of "
                f"{time_text(row.comm_ns)} of communication is exposed, {percent_text(share)} of its span",
                {
                    "exposed_comm_ns": row.exposed_comm_ns,
                    "comm_ns": row.comm_ns,
                    "share": share,
                    "share_of": "span of the GPU",
                },
            )


@rule(
    "straggler",
    "Ranks wait for one rank",
    meaning="In a collective every rank waits for the last to arrive; the rank whose collectives are "
    "shortest is the one that the others wait for.",
    threshold="At least two ranks in the trace, and waiting for one of them takes at least 5 % of the other "
    "ranks' span.",
    advice="Look at that rank: its data, its clocks, its host; balance sequence lengths and expert loads.",
    relies_on=("devices.busy_ns",),
)
def straggler(ctx: Context) -> Iterator[Hit]:
    """Waiting time by the rank waited for."""
    report = compare_ranks([ctx.trace])
    if report is None:
        return
    for row in report.ranks:
        if row.waited_for_share is not None and row.waited_for_share >= WAIT_SHARE:
            yield Hit(
                f"the other ranks wait {time_text(row.waited_for_ns)} for {ctx.labels.rank(row.rank)}, "
                f"{percent_text(row.waited_for_share)} of their span",
                {
                    "rank": row.rank,
                    "waited_for_ns": row.waited_for_ns,
                    "share": row.waited_for_share,
                    "share_of": "span of the other ranks",
                    "collectives": report.matched,
                },
            )
