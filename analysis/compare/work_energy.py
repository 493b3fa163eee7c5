"""Energy per amount of work of one trace: per token and per gflop, where the trace tells its work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.analysis.compare.compared_trial import StepWork
from profrun.analysis.compare.reading import work_of
from profrun.analysis.trace.energy import step_energy

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


def energy_per_work(trace: Trace) -> dict[str, float]:
    """'token' and 'gflop' -> J, of what is known; empty where the energy per step is not."""
    energy = step_energy(trace)
    joules = energy.joules if energy else None
    return {} if joules is None else per_work(joules, work_of(trace))


def per_work(joules: float, work: StepWork) -> dict[str, float]:
    """The same from the energy per step, J, and the work of a step."""
    found = {}
    if work.tokens:
        found["token"] = joules / work.tokens
    if work.matrix_flops:
        found["gflop"] = joules / (work.matrix_flops / 1e9)
    return found
