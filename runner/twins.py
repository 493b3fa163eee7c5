"""Do launch-blocking twins launch the same kernels? Asked of their traces, because a ratio between runs that
did different work says nothing about blocking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.store.state import TrialRecord

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class Kernels:
    """Kernels by name that a trace's steps launched, wherever they ran.

    Attributes:
        steps: how many steps the trace holds.
        names: kernel name -> how often, over all steps.
    """

    steps: int
    names: Counter[str]


@dataclass(frozen=True)
class Twins:
    """One point with and without launch blocking.

    Attributes:
        pairs: trials of the same repeat whose traces were compared.
        equal: the same kernels, as often, in as many steps, in every pair; None when no trace has a kernel.
        kernels: launched in the steps of one trace of the first pair (without blocking).
        steps: in that trace.
        difference: the first name that differs, in words; None when none does.
    """

    variant: str
    collector: str
    pairs: int
    equal: bool | None
    kernels: int
    steps: int
    difference: str | None = None


def kernels_of(path: Path) -> Kernels:
    """Kernels that were launched inside a trace's steps; of the whole trace when it has no steps."""
    import profrun

    with profrun.open(path) as trace:
        return kernels_in(trace)


def kernels_in(trace: Trace) -> Kernels:
    """``kernels_of`` of an open trace."""
    from profrun.analysis.trace.frame import frame
    from profrun.analysis.trace.steps import step_index

    source = frame(trace)
    found = step_index(source)
    ids = source.of("kernel")
    if len(found.slices):
        ids = ids[found.of_gpu[ids] >= 0]
    return Kernels(len(found.slices), Counter(source.text(int(slice_id)) for slice_id in ids))


def compare_twins(records: Iterable[TrialRecord], known: Mapping[Path, Kernels] | None = None) -> list[Twins]:
    """Every point that has finished traces on both sides, in plan order.

    Args:
        known: kernels by trace, where they were read already.
    """
    known = known or {}
    sides: dict[tuple[str, str, int], dict[bool, Path]] = {}
    for record in records:
        if record.trace is not None and record.state == "finished" and record.collector != "none":
            key = (record.variant, record.collector, record.repeat)
            sides.setdefault(key, {})[record.blocking] = record.trace
    pairs: dict[tuple[str, str], list[tuple[Kernels, Kernels]]] = {}
    for (variant, collector, _), both in sides.items():
        if len(both) == 2:
            plain, blocking = (known.get(both[side]) or kernels_of(both[side]) for side in (False, True))
            pairs.setdefault((variant, collector), []).append((plain, blocking))
    return [_judge(variant, collector, found) for (variant, collector), found in pairs.items()]


def _judge(variant: str, collector: str, pairs: list[tuple[Kernels, Kernels]]) -> Twins:
    first = pairs[0][0]
    if not any(side.names for pair in pairs for side in pair):
        return Twins(variant, collector, len(pairs), None, 0, first.steps)
    difference = next((text for off, on in pairs if (text := _difference(off, on))), None)
    return Twins(
        variant, collector, len(pairs), difference is None, first.names.total(), first.steps, difference
    )


def _difference(off: Kernels, on: Kernels) -> str | None:
    if off.steps != on.steps:
        return f"{off.steps} steps without blocking, {on.steps} with"
    for name in sorted({*off.names, *on.names}):
        if off.names[name] != on.names[name]:
            return f"{name}: {off.names[name]} times without blocking, {on.names[name]} with"
    return None


def twins_line(twins: Twins) -> str:
    """One line for a person."""
    what = f"{twins.variant}, {twins.collector}"
    pairs = f"{twins.pairs} pair{'s' * (twins.pairs != 1)}"
    if twins.equal is None:
        return f"{what}: no kernels were recorded, so there are none to compare ({pairs})"
    if twins.equal:
        return f"{what}: the same kernels, {twins.kernels} in {twins.steps} steps ({pairs})"
    return f"{what}: NOT the same kernels: {twins.difference} ({pairs})"
