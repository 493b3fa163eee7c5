"""What the end of a run asks of its traces, each opened once: opening one costs more than most answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profrun.store.state import TrialRecord

if TYPE_CHECKING:
    from pathlib import Path

    from profrun.analysis.compare import Trial
    from profrun.analysis.compare.expect import Check
    from profrun.jobs.model import Expectation
    from profrun.runner.twins import Kernels


@dataclass
class Answers:
    """By trace.

    Attributes:
        trials: each trace as a comparison takes it.
        kernels: kernels of its steps, of profiled trials.
        checks: of every guess about it, in the order of the trials.
    """

    trials: dict[Path, Trial] = field(default_factory=dict)
    kernels: dict[Path, Kernels] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)


def ask_traces(records: Sequence[TrialRecord], expectations: Sequence[Expectation]) -> Answers:
    """Open the trace of every finished trial and keep what twins, guesses and comparisons need of it."""
    import profrun
    from profrun.analysis.compare import read_trial
    from profrun.analysis.compare.expect import check_trace
    from profrun.cli.compare_args import provenance_of
    from profrun.runner.twins import kernels_in

    found = Answers()
    for record in records:
        path = record.trace
        if path is None or record.state != "finished":
            continue
        with profrun.open(path) as trace:
            trial = found.trials[path] = read_trial(trace, label=record.id, provenance=provenance_of(path))
            if record.collector != "none":
                found.kernels[path] = kernels_in(trace)
            if expectations:
                made = (record.exit.profiler if record.exit is not None else None) or record.collector
                found.checks += check_trace(
                    trace, expectations, variant=record.variant, collector=made, trial=trial
                )
    return found
