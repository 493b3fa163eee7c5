"""Carries the addresses of a mapping over to another trial of the same program: ``joined``, ``completed``.

The mapping slows the program down, so it is a trial of its own. Both trials launch the same kernels. They are
compared thread by thread and step by step, in the order of their launches:

1. A thread that launched the same kernels in the same order as in a step of the mapping: each kernel has
   the address of the one at its place.
2. Else, of each kernel that the thread launched as often as in a step of the mapping, the k-th has the
   address of the k-th.

All other GPU work has no address: a wrong one would be worse. So has work whose counterparts in several
equal steps of the mapping come from different lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.compare.kernel_groups import normalised_names
from profrun.analysis.compare.kernel_identity import kernel_identity
from profrun.analysis.kernel_names.inductor import kind_of
from profrun.analysis.trace.addresses import UNRESOLVED, Addresses, addresses
from profrun.analysis.trace.frame import Frame, Index, frame
from profrun.analysis.trace.steps import step_index
from profrun.analysis.trace.waiting_calls import waiting_calls
from profrun.contract.line_names import Line

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

Ints = NDArray[np.int64]
_CODES = list(UNRESOLVED)
_OTHER, _AMBIGUOUS, _NO_FORWARD = (_CODES.index(code) for code in ("other-work", "ambiguous", "no-forward"))
MAIN = 0
"""Role of the thread that makes the steps; others have numbers by their first launch in the step."""


@dataclass(frozen=True)
class _Launches:
    """What one thread launched in one step.

    Attributes:
        place: places of the slices in ``Frame.gpu``, in the order of their launches.
        names: what they are called, as numbers that both traces share.
    """

    rank: int
    role: int
    place: Index
    names: Ints


@dataclass(frozen=True)
class _Known:
    """The addresses of one sequence of launches: index into the table, or why there is none (``why``)."""

    names: Ints
    of: Ints
    why: NDArray[np.int8]


def joined(trace: Trace, mapping: Trace) -> Addresses | None:
    """The addresses of the GPU slices of a trace.

    Args:
        trace: of another trial of the same variant, under any profiler.
        mapping: the trace of the mapping.

    Returns:
        None where ``mapping`` is none.
    """
    known = addresses(mapping)
    if known is None:
        return None
    numbers: dict[str, int] = {}
    sequences = _sequences(frame(mapping), known, numbers)
    source = frame(trace)
    of = np.full(len(source.gpu), -1, dtype=np.int64)
    why = np.full(len(source.gpu), _OTHER, dtype=np.int8)
    why[source.launch[source.gpu] < 0] = _CODES.index("no-launch")
    found: dict[tuple[int, int, bytes], tuple[Ints, NDArray[np.int8]]] = {}
    for one in _launches(source, numbers):
        key = (one.rank, one.role, one.names.tobytes())
        if key not in found:
            found[key] = _matched(one, sequences)
        of[one.place], why[one.place] = found[key]
    return Addresses(
        source.gpu, of, known.table, why, known.digests, _waits(source, frame(mapping), known.waits)
    )


def _waits(source: Frame, mapping: Frame, known: Mapping[int, Line]) -> dict[int, Line]:
    """The lines of the calls of a trial that wait for the GPU, from steps of the mapping with the same calls.

    Calls for which such steps tell different lines have none.
    """
    told: dict[tuple[int, tuple[str, ...]], list[Line | None]] = {}
    for one in waiting_calls(mapping):
        lines = [known.get(int(call)) for call in one.ids]
        before = told.setdefault((one.rank, one.names), lines)
        told[one.rank, one.names] = [a if a == b else None for a, b in zip(before, lines, strict=True)]
    found = {}
    for one in waiting_calls(source):
        for call, line in zip(one.ids.tolist(), told.get((one.rank, one.names), ()), strict=False):
            if line is not None:
                found[call] = line
    return found


def completed(exact: Addresses, other: Addresses) -> Addresses:
    """Addresses that a trace itself tells, completed by those that a mapping tells of the same GPU slices.

    Where both name the same line, the mapping's is taken, which knows the module and the backward. Where they
    differ, the one of the trace is: it is of these very launches.
    """
    shift = len(exact.table)
    pairs, place = np.unique(np.stack([exact.of, other.of]), axis=1, return_inverse=True)
    chosen = []
    for at, to in pairs.T.tolist():
        same = at >= 0 and to >= 0 and exact.table[at].lines == other.table[to].lines
        chosen.append(to + shift if same or at < 0 <= to else at)
    of = np.array(chosen, dtype=np.int64)[np.ravel(place)]
    why = np.where(of >= 0, np.int8(-1), other.why).astype(np.int8)
    table = (*exact.table, *other.table)
    waits = {**other.waits, **exact.waits}
    return Addresses(exact.gpu, of, table, why, other.digests, waits)


def _sequences(
    source: Frame, known: Addresses, numbers: dict[str, int]
) -> dict[tuple[int, int], list[_Known]]:
    """The different sequences of launches of the mapping, by rank and role of the thread."""
    found: dict[tuple[int, int], dict[bytes, _Known]] = {}
    for one in _launches(source, numbers):
        here = found.setdefault((one.rank, one.role), {})
        key = one.names.tobytes()
        of, why = known.of[one.place], known.why[one.place]
        now = _Known(one.names, of, why)
        here[key] = _both(here[key], now) if key in here else now
    return {place: list(here.values()) for place, here in found.items()}


def _both(one: _Known, other: _Known) -> _Known:
    """What two equal sequences tell: the address of both, or of one where the other has no forward
    because that ran before the recording."""
    missing, unknown = one.why == _NO_FORWARD, other.why == _NO_FORWARD
    of, why = np.where(missing, other.of, one.of), np.where(missing, other.why, one.why)
    differs = ~missing & ~unknown & (one.of != other.of)
    return _Known(one.names, np.where(differs, -1, of), np.where(differs, np.int8(_AMBIGUOUS), why))


def _matched(one: _Launches, sequences: dict[tuple[int, int], list[_Known]]) -> tuple[Ints, NDArray[np.int8]]:
    """Address and reason of each launch of a sequence: those of its own rank, else those of another."""
    own = sequences.get((one.rank, one.role), [])
    others = [known for (_, role), found in sequences.items() if role == one.role for known in found]
    for known in (*own, *others):
        if np.array_equal(known.names, one.names):
            return known.of, known.why
    best = max((_by_number(one.names, known) for known in own or others), key=_resolved, default=None)
    if best is None:
        return np.full(len(one.names), -1, dtype=np.int64), np.full(len(one.names), _OTHER, dtype=np.int8)
    return best


def _resolved(found: tuple[Ints, NDArray[np.int8]]) -> int:
    return int((found[0] >= 0).sum())


def _by_number(names: Ints, known: _Known) -> tuple[Ints, NDArray[np.int8]]:
    """The k-th of each name is the k-th, where both sequences have as many of them."""
    of = np.full(len(names), -1, dtype=np.int64)
    why = np.full(len(names), _OTHER, dtype=np.int8)
    here, there = np.argsort(names, kind="stable"), np.argsort(known.names, kind="stable")
    size = int(max(names.max(initial=0), known.names.max(initial=0))) + 1
    count, as_many = np.bincount(names, minlength=size), np.bincount(known.names, minlength=size)
    same = count == as_many
    here, there = here[same[names[here]]], there[same[known.names[there]]]
    of[here], why[here] = known.of[there], known.why[there]
    return of, why


def _launches(source: Frame, numbers: dict[str, int]) -> Iterator[_Launches]:
    """What each thread launched in each step, without steps in the whole recording.

    Args:
        numbers: the number of each name; new names are added.
    """
    gpu, calls = source.gpu, source.launch[source.gpu]
    index = step_index(source)
    step = (
        index.of_gpu[gpu].astype(np.int64) if len(index.slices) else source.process_of(gpu).astype(np.int64)
    )
    place = np.flatnonzero((calls >= 0) & (step >= 0))
    if not len(place):
        return
    code = np.full(len(source.names), -1, dtype=np.int64)
    for number, text in normalised_names(source).items():
        own = source.names[number]
        # Here the number at the end of a name that Inductor has made tells one kernel from another.
        name = kernel_identity(text) if kind_of(own) is None else own
        code[number] = numbers.setdefault(name, len(numbers))
    names = code[source.name[gpu]]
    track = source.track[calls[place]]
    order = np.lexsort((source.ts[gpu[place]], source.ts[calls[place]], track, step[place]))
    place, track = place[order], track[order]
    new = np.flatnonzero((np.diff(step[place]) != 0) | (np.diff(track) != 0)) + 1
    parts = np.split(place, new)
    first = sorted(range(len(parts)), key=lambda at: (step[parts[at][0]], source.ts[calls[parts[at][0]]]))
    seen: dict[int, int] = {}
    for at in first:
        part = parts[at]
        number = int(step[part[0]])
        main = not len(index.slices) or source.track[calls[part[0]]] == source.track[index.slices[number]]
        role = MAIN if main else seen.get(number, MAIN) + 1
        if not main:
            seen[number] = role
        process = int(source.process_of(calls[part[:1]])[0])
        yield _Launches(source.processes[process]["rank"], role, part, names[part])
