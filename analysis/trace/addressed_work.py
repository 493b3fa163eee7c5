"""The GPU work of the counted steps by address: what tables and trees of lines are made of.

``addressed_work`` is given the addresses of a trace and returns one row for each address, or reason for which
there is none, and name. ``equal_parts`` divides the time of a kernel that was made of several lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profrun.analysis.trace.addresses import UNRESOLVED, Address, Addresses, Unresolved
from profrun.analysis.trace.columns import groups
from profrun.analysis.trace.frame import KIND, Frame
from profrun.analysis.trace.steps import in_steps, step_index


@dataclass(frozen=True)
class Work:
    """All kernels, copies or memsets of one name and one address.

    Attributes:
        address: where they come from; None where that is not known.
        why: why it is not known; None where it is.
        name: of each of them.
        kind: kernel, memcpy or memset.
        ns: their time, in total.
        launches: how many there are.
    """

    address: Address | None
    why: Unresolved | None
    name: str
    kind: str
    ns: int
    launches: int


@dataclass(frozen=True)
class AddressedWork:
    """All GPU work that is counted.

    Attributes:
        steps: steps of all ranks that launched it; 0 where the trace has no steps: then all work counts.
        gpu_ns: its time; that of ``rows`` adds up to it.
        rows: in order of their first slice.
    """

    steps: int
    gpu_ns: int
    rows: tuple[Work, ...]


def addressed_work(source: Frame, found: Addresses) -> AddressedWork:
    """The GPU work that the steps launched, by address.

    Args:
        source: the frame of a trace.
        found: the addresses of its GPU slices.
    """
    counted = in_steps(source, found.gpu)
    gpu, of, why = found.gpu[counted], found.of[counted], found.why[counted]
    durs = source.durs(gpu)
    first, place = groups(of, why, source.name[gpu], source.kind[gpu])
    time = np.bincount(place, weights=durs, minlength=len(first)).astype(np.int64)
    count = np.bincount(place, minlength=len(first))
    codes, kinds = list(UNRESOLVED), {code: kind for kind, code in KIND.items()}
    rows = [
        Work(
            found.table[of[at]] if of[at] >= 0 else None,
            codes[why[at]] if of[at] < 0 else None,
            source.text(int(gpu[at])),
            kinds[int(source.kind[gpu[at]])],
            int(time[number]),
            int(count[number]),
        )
        for number, at in sorted(enumerate(first.tolist()), key=lambda pair: pair[1])
    ]
    return AddressedWork(len(step_index(source).slices), int(durs.sum()), tuple(rows))


def equal_parts(whole: int, count: int) -> tuple[int, ...]:
    """A time or a number in so many parts that differ by 1 at most and add up to it, larger ones first."""
    part, left = divmod(whole, count)
    return (part + 1,) * left + (part,) * (count - left)
