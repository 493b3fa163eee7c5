"""Records that no run can have made, each on one screen, and the same recording without them."""

from __future__ import annotations

import pytest

from profrun.traces.causality import damage
from tests.traces.causality.kit import Row, codes, recording


def kernels(count: int, dur: int, *, every: int = 10_000) -> list[Row]:
    """Kernels of one stream one after the other, not in whole microseconds."""
    return [("kernel", f"k{number}", number * every + 1, dur, "stream 7", -1) for number in range(count)]


def test_the_same_record_twice() -> None:
    rows = kernels(12, 5000)
    assert codes(damage.duplicates(recording([*rows, rows[3], rows[7]]))) == {
        "duplicate_gpu_records": (2, 14)
    }
    other_name = ("kernel", "other", *rows[3][2:])
    assert damage.duplicates(recording([*rows, other_name])) == []
    calls: list[Row] = [("api", "cudaLaunchKernel", 100 * number, 50, "main", -1) for number in range(3)]
    assert codes(damage.duplicates(recording([*calls, calls[1]]))) == {"duplicate_calls": (1, 4)}


def test_kernels_without_a_duration() -> None:
    assert codes(damage.zero_durations(recording(kernels(12, 0)))) == {"zero_durations": (12, 12)}
    assert codes(damage.zero_durations(recording([*kernels(12, 5000), *kernels(1, 0)]))) == {
        "zero_durations": (1, 13)
    }
    whole = [("kernel", "k", 1000 * number, 1000 * (number > 2), "stream 7", -1) for number in range(20)]
    assert damage.zero_durations(recording(whole)) == []  # in whole microseconds 0 is a short kernel


@pytest.mark.parametrize(("dur", "amount"), [(5, 0.001), (5_000_000, 1000.0)])
def test_durations_in_another_unit(dur: int, amount: float) -> None:
    (found,) = damage.duration_unit(recording(kernels(20, dur)))
    assert (found.code, found.amount) == ("gpu_duration_unit", amount)


@pytest.mark.parametrize(("dur", "alarm"), [(80, True), (80_000, False)])
def test_copies_that_are_faster_than_any_link(dur: int, alarm: bool) -> None:
    rows: list[Row] = [
        ("memcpy", "Memcpy HtoD", 1_000_000 * number, dur, "stream 7", -1) for number in range(2)
    ]
    found = damage.duration_unit(recording(rows, sizes={0: 1 << 20, 1: 1 << 20}))
    assert codes(found) == ({"gpu_duration_unit": (2, 2)} if alarm else {})


@pytest.mark.parametrize("dur", [700, 5000, 9999])
def test_durations_that_can_be(dur: int) -> None:
    assert damage.duration_unit(recording(kernels(20, dur))) == []


def test_calls_that_last_longer_than_there_is_time() -> None:
    def calls(dur: int) -> list[Row]:
        return [("api", "cudaLaunchKernel", 10_000 * number, dur, "main", -1) for number in range(20)]

    assert codes(damage.call_unit(recording(calls(5_000_000)))) == {"call_duration_unit": (19, 20)}
    assert damage.call_unit(recording(calls(9_000))) == []


def test_steps_that_overlap() -> None:
    def steps(*rows: tuple[int, int, int]) -> list[Row]:
        return [
            ("step", f"ProfilerStep#{number}", start, end - start, "main", -1) for number, start, end in rows
        ]

    good = steps((3, 0, 100), (4, 100, 200), (5, 200, 300))
    assert damage.steps(recording(good)) == []
    assert codes(damage.steps(recording(steps((3, 0, 150), (4, 100, 250), (5, 200, 300))))) == {
        "steps_overlap": (2, 3)
    }
    again = steps((8, 0, 100), (9, 100, 200), (0, 300, 400))
    assert damage.steps(recording(again)) == []  # a second loop may count from 0


def test_a_record_far_away_from_all_others() -> None:
    rows = [*kernels(200, 5000), ("kernel", "far", 10**9, 5000, "stream 7", -1)]
    (found,) = damage.far_records(recording(rows))
    assert (found.code, found.count, found.first_ns) == ("far_records", 1, 10**9)
    assert damage.far_records(recording(rows[:-1])) == []
    two_parts = [
        *kernels(100, 5000),
        *(("kernel", "k", 10**9 + row[2], 5000, "stream 7", -1) for row in kernels(100, 1)),
    ]
    assert damage.far_records(recording(two_parts)) == []  # a pause is no damage
