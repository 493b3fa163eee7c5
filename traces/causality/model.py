"""What is known of the clocks of a recording, and which of its records contradict each other, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable

    from profrun.traces.meta import ClockEntry, ContradictionEntry

Ints: TypeAlias = NDArray[np.int64]
Ids: TypeAlias = NDArray[np.signedinteger]
"""Slice ids; any signed integer type indexes."""
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]

Verdict = Literal["consistent", "offset", "drift", "contradiction", "unknown"]
"""``consistent``: an offset of 0 is possible. ``offset``: only other offsets are. ``drift``: no constant
offset is possible, but one that grows evenly is. ``contradiction``: neither is. ``unknown``: nothing bounds
it."""


@dataclass(frozen=True)
class Clock:
    """What a recording says of the clock of one GPU in one profiler session; all times in ns.

    The offset is what must be added to the GPU's times so that they are on the host's clock. All bounds are
    those of the file, before anything was moved; None where nothing bounds the offset on that side.

    Attributes:
        process, device, session: whose; sessions of a process count from 0.
        begins_ns: host time from which on launches belong to the session; None for the first.
        first_ns, last_ns: first start and last end of its GPU slices in that session, in the file's times;
            of several sessions only slices with a known launch count.
        launches, waits: constraints that bound the offset from below and from above.
        verdict: see ``Verdict``.
        constant_low_ns, constant_high_ns: the constant offsets that are possible.
        low_ns, high_ns: what the offset can be at ``first_ns`` when the clock may drift, too, by up to
            ``clocks.MOST_DRIFT``.
        last_low_ns, last_high_ns: the same at ``last_ns``.
        drift_low_ppm, drift_high_ppm: the drifts that are possible, in parts per million.
        outliers: constraints that were left out because they contradict all others.
        tolerance_ns: by how much the bounds are wider than the constraints say.
        moved_ns, last_moved_ns: what was added to GPU times at ``first_ns`` and ``last_ns``; between them it
            grows evenly. 0: the times are those of the file.
    """

    process: int
    device: int
    session: int
    begins_ns: int | None
    first_ns: int
    last_ns: int
    launches: int
    waits: int
    verdict: Verdict
    constant_low_ns: int | None = None
    constant_high_ns: int | None = None
    low_ns: int | None = None
    high_ns: int | None = None
    last_low_ns: int | None = None
    last_high_ns: int | None = None
    drift_low_ppm: float | None = None
    drift_high_ppm: float | None = None
    outliers: int = 0
    tolerance_ns: int = 0
    moved_ns: int = 0
    last_moved_ns: int = 0

    @property
    def moved(self) -> bool:
        """Whether GPU times were changed."""
        return bool(self.moved_ns or self.last_moved_ns)

    def unmoved(self) -> Clock:
        """The same with the times of the file."""
        return replace(self, moved_ns=0, last_moved_ns=0)

    @property
    def drift_ppm(self) -> float:
        """Drift of the moved clock, in parts per million; 0 for a constant offset."""
        span = self.last_ns - self.first_ns
        return (self.last_moved_ns - self.moved_ns) / span * 1e6 if span else 0.0


@dataclass(frozen=True)
class Contradiction:
    """Records that cannot all be true.

    Attributes:
        code: stable short name; ``judge.CODES`` lists them.
        count: how many records.
        total: of how many.
        process, device, track: where; None where it is not one of them.
        first_ns, last_ns: from when to when, in the trace's times; None where it has no time.
        amount: the size of it, in the unit of its code (ns, or a factor); None where it has none.
        example: slice id of one of the records, None where there is none.
    """

    code: str
    count: int
    total: int
    process: int | None = None
    device: int | None = None
    track: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    amount: float | None = None
    example: int | None = None


@dataclass(frozen=True)
class Judgement:
    """All that was found: the clocks by process, device and session, and the contradictions."""

    clocks: tuple[Clock, ...] = ()
    contradictions: tuple[Contradiction, ...] = field(default=())


def clock_entries(clocks: Iterable[Clock]) -> list[ClockEntry]:
    """The clocks as ``meta.clocks`` holds them."""
    return [cast("ClockEntry", asdict(clock)) for clock in clocks]


def contradiction_entries(found: Iterable[Contradiction]) -> list[ContradictionEntry]:
    """The contradictions as ``meta.contradictions`` holds them."""
    return [cast("ContradictionEntry", asdict(one)) for one in found]


def judgement_of(clocks: Iterable[ClockEntry], found: Iterable[ContradictionEntry]) -> Judgement:
    """The judgement that a trace's meta holds."""
    return Judgement(
        tuple(Clock(**entry) for entry in clocks), tuple(Contradiction(**entry) for entry in found)
    )
