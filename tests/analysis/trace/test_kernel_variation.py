"""Why equal launches vary: the place in the step, work on other streams, the clock, or nothing known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from profrun.analysis.trace.kernel_variation import kernel_variation
from profrun.analysis.trace.variation import Variation
from tests.analysis.kit import Row, memory_trace, step
from tests.analysis.rules.cases import ADD, LAUNCH, grid
from tests.analysis.sampled import MS, counters

STEPS, CALLS = 12, 8
RNG = np.random.default_rng(0)
NOISE = np.exp(0.01 * RNG.normal(size=STEPS * CALLS))
BESIDE = RNG.random(STEPS * CALLS) < 0.5


def rows(time: Callable[[int, int], float], *, beside: bool = False) -> list[Row]:
    """Steps of 400 ms with equal launches every 50 ms; ``beside``: some with a kernel on another stream."""
    found: list[Row] = []
    for number in range(STEPS):
        found.append(step(number, number * 400 * MS, 400 * MS))
        for place in range(CALLS):
            at, every = number * 400 * MS + place * 50 * MS, number * CALLS + place
            dur = int(time(number, place) * NOISE[every] * MS)
            found.append(("api", LAUNCH, at, 1000, "main"))
            found.append(("kernel", ADD, at + MS, dur, "stream 7", {"launch": len(found) - 1, **grid(528)}))
            if beside and BESIDE[every]:
                found.append(("kernel", "other", at + MS, dur, "stream 9"))
    return found


def told(found: Variation | None) -> dict[str, float]:
    assert found is not None
    assert found.shares is not None, found.refused
    assert found.count == STEPS * CALLS
    every = (*found.shares.causes, found.shares.rest)
    return {one.name: round(one.share, 1) for one in every if one.share > 0.05}


def test_launches_that_depend_on_their_place_in_the_step() -> None:
    found = kernel_variation(memory_trace(rows(lambda _, place: 10 + 2 * (place % 3))), "*elementwise*")
    assert told(found) == {"place in the step": 1.0}


def test_launches_beside_another_stream_are_slower() -> None:
    def time(number: int, place: int) -> float:
        return 13 if BESIDE[number * CALLS + place] else 10

    assert told(kernel_variation(memory_trace(rows(time, beside=True)), ADD))["overlap"] > 0.85


def test_launches_at_a_lower_clock_are_slower() -> None:
    clock = np.where(np.arange(49) // 12 % 2, 1500.0, 1980.0)

    def time(number: int, place: int) -> float:
        return 10 * 1980 / float(clock[(number * 400 + place * 50) // 100])

    side = counters({"sm_clock": list(clock)}, {})
    found = kernel_variation(memory_trace(rows(time), side=side), ADD)
    assert told(found)["clock"] > 0.85
    assert found is not None
    assert found.delay_ns == 0


def test_noise_is_the_rest_and_nothing_was_read_of_the_gpu() -> None:
    found = kernel_variation(memory_trace(rows(lambda *_: 10)), ADD)
    assert found is not None
    assert found.shares is not None
    assert found.shares.rest.share > 0.9
    assert found.delay_ns is None


@pytest.mark.parametrize(("name", "refused"), [("nothing", None), ("gemm", "at least 50 equal launches")])
def test_other_names_and_few_launches(name: str, refused: str | None) -> None:
    few: list[Row] = [("kernel", "gemm", at * 100, 50, "stream 7", grid(1)) for at in range(5)]
    found = kernel_variation(memory_trace(few), name)
    assert (found and found.refused.startswith(refused or "")) == (None if refused is None else True)
