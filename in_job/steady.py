"""Whether the times of steps are steady: a rule that is asked now and then while a program runs. Pure.

A program is steady when the time per step no longer changes from one block of steps to the next. What changes
it first is known: compilation, allocation, caches, and the clock of a GPU that was idle. On an H200 the power
cap acts after 0.25 to 0.3 s of load, and the driver's average power is that of about 1 s.

Of the steps so far the first third is left out, and the rest is cut into eight blocks of equal length, which
so grow with the run. The program is steady when the median of the last four blocks differs from that of the
four before by at most ``CHANGE``, and the last block from the last four by at most twice that. On a noisy
machine blocks differ by more than that without end: then twice the median difference of neighbouring blocks
counts. Of blocks that scatter independently about one level by far more than 1 %, 93 of 100 looks pass (4000
simulated). A slow drift and a jump inside the blocks do not: neither changes the median difference of
neighbours by as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CHANGE = 0.01
"""The least change of the time per step that counts."""

LEAST_NS = 2_000_000_000
"""The time of steps before which nothing counts as steady: its first third, 0.67 s, which is left out, is
twice as long as it takes an H200 to reach its power cap."""

LEAST_STEPS = 12
"""The fewest steps that can be judged: one for each block after the first third."""

LIMIT_NS = 60_000_000_000
"""The time of steps after which a program counts as one that does not become steady."""

BLOCKS = 8

GROWTH = 1.25
"""The steps grow by this factor from one look to the next, once there are enough of them."""


class Look:
    """What the steps so far look like.

    Args:
        steps: how many there are, ``LEAST_STEPS`` or more.
        medians: of the blocks, ns per step, in order, ``BLOCKS`` of them.

    Attributes:
        step_ns: the time per step of the last four blocks.
        spent_ns: ``step_ns`` times ``steps``: a first step that compiles for minutes does not count as such.
        change: of ``step_ns`` against the four blocks before, as a share of them; below 0: it went down.
        steady: whether the steps are steady.
        over: whether they are not, and have gone on for so long that they will not be.
    """

    def __init__(self, steps: int, medians: Sequence[float]) -> None:
        half = BLOCKS // 2
        before, self.step_ns = median(medians[:half]), median(medians[half:])
        self.steps = steps
        self.spent_ns = self.step_ns * steps
        self.change = (self.step_ns - before) / before if before else 0.0
        noise = median([abs(second - first) for first, second in zip(medians, medians[1:])])
        allowed = max(CHANGE * before, 2 * noise)
        calm = abs(self.step_ns - before) <= allowed and abs(medians[-1] - self.step_ns) <= 2 * allowed
        self.steady = self.spent_ns >= LEAST_NS and calm
        self.over = self.spent_ns >= LIMIT_NS and not self.steady

    def next(self) -> int:
        """With how many steps to look again: where they can first count as steady, at most twice as many."""
        if self.spent_ns >= LEAST_NS:
            return max(self.steps + 1, int(self.steps * GROWTH))
        wanted = int(LEAST_NS / self.step_ns) + 1 if self.step_ns else 2 * self.steps
        return max(self.steps + 1 + self.steps // 20, min(wanted, 2 * self.steps))


def blocks(steps: int) -> list[tuple[int, int]]:
    """Begin and end of each block among ``LEAST_STEPS`` or more; the first third is left out."""
    length = max(1, steps * 2 // (3 * BLOCKS))
    first = steps - BLOCKS * length
    return [(first + number * length, first + (number + 1) * length) for number in range(BLOCKS)]


def median(values: Sequence[float]) -> float:
    """The median; of an even number of values the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
