"""The addresses of a trace: those that it tells itself, and those that the mapping of its run tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.errors import InconclusiveError

if TYPE_CHECKING:
    from pathlib import Path

    from profrun.analysis.trace.addresses import Addresses
    from profrun.traces.trace import Trace


def mapped(trace: Trace) -> Addresses:
    """The addresses of the GPU slices of a trace.

    Raises:
        InconclusiveError: it is no mapping and has no Python stacks, and no finished mapping of its variant
            lies beside it.
    """
    from profrun.analysis.compare.address_join import completed, joined
    from profrun.analysis.trace.addresses import addresses
    from profrun.analysis.trace.call_stacks import call_stacks
    from profrun.traces.trace import Trace

    found = addresses(trace)
    beside = mapping_beside(trace.path) if found is None or call_stacks(trace) is not None else None
    if beside is not None:
        with Trace(beside) as mapping:
            told = joined(trace, mapping)
        if told is not None:
            found = told if found is None else completed(found, told)
    if found is None:
        raise InconclusiveError(
            f"nothing tells from which lines the kernels of {trace.path} come",
            why="it has no Python stacks, and no mapping of its variant lies beside it",
            fix="set `ranges: {lines: true}` in the job, which adds one trial per variant, and run it again",
        )
    return found


def mapping_beside(trace: Path) -> Path | None:
    """The trace of the mapping of the same variant in the same run; None where there is none."""
    from profrun.store.runs import Run, is_run
    from profrun.store.state import read_state

    path = trace.absolute()
    run = path.parent.parent.parent
    if path.name != "trace" or not is_run(run):
        return None
    trials = read_state(Run(run)).trials
    record = next((one for one in trials if one.id == path.parent.name), None)
    if record is None:
        return None
    return next(
        (one.trace for one in trials if one.maps and one.variant == record.variant and one.trace is not None),
        None,
    )
