"""The addresses of a trace: those that it tells itself, and those that the mapping of its run tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from profrun.errors import InconclusiveError

if TYPE_CHECKING:
    from pathlib import Path

    from profrun.analysis.trace.addresses import Addresses
    from profrun.store.runs import Run
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class Mapped:
    """The addresses of a trace.

    Attributes:
        mapping: trial whose mapping tells them, or some; None where the trace tells all that is known.
    """

    addresses: Addresses
    mapping: str | None


def mapped(trace: Trace) -> Addresses:
    """The addresses of the GPU slices of a trace.

    Raises:
        InconclusiveError: it is no mapping and has no Python stacks, and no finished mapping of its variant
            lies beside it.
    """
    found = find_mapped(trace)
    if found is None:
        raise InconclusiveError(
            f"nothing tells from which lines the kernels of {trace.path} come",
            why="it has no Python stacks, and no mapping of its variant lies beside it",
            fix="run it again with --lines (`ranges: {lines: true}` in the job): one more trial per variant",
        )
    return found.addresses


def find_mapped(trace: Trace) -> Mapped | None:
    """The same, with where they are from; None where nothing tells them.

    Raises:
        InputError: the trace of the mapping is damaged.
    """
    from profrun.analysis.compare.address_join import completed, joined
    from profrun.analysis.trace.addresses import addresses
    from profrun.analysis.trace.call_stacks import call_stacks
    from profrun.traces.trace import Trace

    found = addresses(trace)
    beside = mapping_beside(trace.path) if found is None or call_stacks(trace) is not None else None
    if beside is None:
        return None if found is None else Mapped(found, None)
    with Trace(beside) as mapping:
        told = joined(trace, mapping)
    if told is None:
        return None if found is None else Mapped(found, None)
    return Mapped(told if found is None else completed(found, told), beside.parent.name)


def addresses_of(trace: Trace) -> Addresses | None:
    """The same for who can do without: None also where the mapping, or its run, is damaged."""
    from profrun.errors import ProfrunError

    try:
        found = find_mapped(trace)
    except ProfrunError:
        return None
    return None if found is None else found.addresses


def offer_addresses(trace: Trace, query: str) -> None:
    """Make the table ``kernel_address`` in the database of a trace where a query asks for it.

    Raises:
        InconclusiveError: as ``mapped``.
    """
    from profrun.analysis.trace.address_view import NAME, offer

    if NAME.search(query):
        offer(trace, mapped(trace))


def mapping_beside(trace: Path) -> Path | None:
    """The trace of the mapping of the same variant in the same run; None where there is none."""
    from profrun.store.state import read_state

    run = run_of(trace)
    if run is None:
        return None
    trials = read_state(run).trials
    record = next((one for one in trials if one.id == trace.absolute().parent.name), None)
    if record is None:
        return None
    return next(
        (one.trace for one in trials if one.maps and one.variant == record.variant and one.trace is not None),
        None,
    )


def run_of(trace: Path) -> Run | None:
    """The run to one of whose trials a trace belongs; None for a trace that lies elsewhere."""
    from profrun.store.runs import Run, is_run

    path = trace.absolute()
    folder = path.parent.parent.parent
    return Run(folder) if path.name == "trace" and is_run(folder) else None
