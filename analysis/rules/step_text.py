"""The step in sentences: how long it takes and how that was measured, and what shares are shares of."""

from __future__ import annotations

from profrun.analysis.rules.context import Context
from profrun.contract.finding import Severity
from profrun.contract.units import time_text


def step_text(ctx: Context) -> str:
    """How long a step takes, and how that was measured; 'for' can follow."""
    time, one = time_text(ctx.cost.step_ns), ctx.denominator.one
    if ctx.cost.basis == "recording":
        return f"{one} takes {time}"
    if ctx.cost.basis == "profiled":
        return f"{one} takes {time} while it is profiled,"
    return f"{one} takes {time} without a profiler ({time_text(ctx.cost.recorded_ns)} with it)"


def span_text(ctx: Context) -> str:
    """What shares of the step are shares of."""
    if ctx.cost.basis == "unprofiled":
        return f"{ctx.denominator.the} without a profiler"
    return ctx.denominator.every


def set_up(ctx: Context) -> str:
    """Why the finding of a recording without steps is for information only."""
    return "" if ctx.steps else " (no steps are recorded, so that set-up counts too)"


def unsure(ctx: Context) -> Severity | None:
    """'info' where the profiler's cost alone may be what makes the GPU wait, else None."""
    return None if ctx.cost.basis == "unprofiled" or ctx.cost.host_sets_pace else "info"
