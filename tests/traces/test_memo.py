"""A memoised function runs once for each object and set of arguments, and its result goes with the object."""

from __future__ import annotations

import gc
import weakref

from profrun.traces.memo import Memo, memoised


class Numbers:
    """Keeps results."""

    def __init__(self) -> None:
        self.memo = Memo()
        self.asked: list[int] = []

    @memoised
    def times(self, factor: int, offset: int = 0) -> list[int]:
        self.asked.append(factor)
        return [factor * 2 + offset]


@memoised
def first(numbers: Numbers) -> int | None:
    numbers.asked.append(-1)
    return numbers.asked[0] if numbers.asked[0] > 0 else None


def test_each_question_is_computed_once_per_object_and_arguments() -> None:
    one, other = Numbers(), Numbers()
    assert one.times(3) is one.times(3)
    assert one.times(3) is one.times(3, 0) is one.times(offset=0, factor=3)
    assert (one.times(4), one.times(4, offset=1), other.times(3)) == ([8], [9], [6])
    assert (one.asked, other.asked) == ([3, 4, 4], [3])
    assert [first(one), first(one), first(Numbers())] == [3, 3, None]
    assert one.asked == [3, 4, 4, -1]


def test_results_live_as_long_as_their_object() -> None:
    one = Numbers()
    first(one)
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None
