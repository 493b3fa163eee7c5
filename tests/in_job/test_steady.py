"""When steps count as steady, on step times that are made."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest

from profrun.in_job.steady import BLOCKS, LEAST_STEPS, Look, blocks, median

MS = 1e6


def opened(step_ms: Callable[[int], float]) -> Look:
    """The look that ends the waiting, at a program whose step of a number takes so long."""
    times: list[float] = []
    count = LEAST_STEPS
    while True:
        times += [step_ms(step) * MS for step in range(len(times), count)]
        look = Look(count, [median(times[begin:end]) for begin, end in blocks(count)])
        if look.steady or look.over:
            return look
        assert count < look.next() <= 2 * count
        count = look.next()


@pytest.mark.parametrize("boost", [6, 12, 18, 30, 100])
def test_the_window_opens_after_a_gpus_boost_which_ends_at_another_step_in_each_run(boost: int) -> None:
    """An H200 at 2.94 ms per step until its power cap acts, then at 3.42 ms."""
    look = opened(lambda step: 2.94 if step < boost else 3.42)
    assert (look.steady, look.step_ns) == (True, 3.42 * MS)
    assert 2e9 <= look.spent_ns < 2.6e9, "0.58 to 0.75 times 1000 steps"


@pytest.mark.parametrize(
    ("name", "step_ms"),
    [
        ("a second of warm-up", lambda step: 6.0 if step < 170 else 3.0),
        ("a first step that compiles for a minute", lambda step: 60_000.0 if step == 0 else 3.0),
        ("three that compile", lambda step: 20_000.0 if step in (0, 1, 5) else 3.0),
        ("it gets better slowly", lambda step: 3.0 + 3.0 * 0.99**step),
        ("every fourth step is twice as long", lambda step: 6.0 if step % 4 == 3 else 3.0),
    ],
)
def test_the_window_opens_where_the_steps_are_as_long_as_ever_after(
    name: str, step_ms: Callable[[int], float]
) -> None:
    look = opened(step_ms)
    assert look.steady, name
    assert look.step_ns == pytest.approx(3.0 * MS, rel=0.01)
    assert look.spent_ns < 6e9


def test_a_jump_is_waited_out_also_where_it_is_seen() -> None:
    """It lies in the last of the blocks, or between the two halves of them."""
    level = [3.0 * MS] * BLOCKS
    assert Look(1000, level).steady
    for first in range(4, 8):
        assert not Look(1000, level[:first] + [3.1 * MS] * (BLOCKS - first)).steady
    assert not Look(1000, [(3 + 0.02 * block) * MS for block in range(BLOCKS)]).steady, "a drift"


def scattered(chance: random.Random, noise: float, _step: int) -> float:
    """Steps of 60 ms that scatter; other work doubles one in twenty."""
    return 60 * (1 + abs(chance.gauss(0, noise)) + (chance.random() < 0.05))


@pytest.mark.parametrize("noise", [0.002, 0.05, 0.3])
def test_a_noisy_machine_does_not_wait_for_ever(noise: float) -> None:
    """Blocks of 3 steps differ by far more than 1 %; it ends at the first look or a few later."""
    spent = []
    for seed in range(200):
        look = opened(partial(scattered, random.Random(seed), noise))
        assert look.steady
        spent.append(look.spent_ns)
    assert sum(ns < 4e9 for ns in spent) >= 170
    assert max(spent) < 30e9


def test_a_program_that_never_is_steady_is_given_up_after_a_minute() -> None:
    look = opened(lambda step: 3.0 * 1.0005**step)
    assert not look.steady
    assert look.over
    assert 60e9 <= look.spent_ns <= 130e9


def test_long_steps_are_judged_by_twelve_of_them_and_short_ones_by_their_time() -> None:
    assert opened(lambda step: 10_000.0).steps == LEAST_STEPS
    short = opened(lambda step: 0.05)
    assert short.steps >= 40_000


@pytest.mark.parametrize("steps", [12, 13, 100, 12_345])
def test_blocks_are_equal_and_lie_in_the_last_two_thirds(steps: int) -> None:
    found = blocks(steps)
    assert len(found) == BLOCKS
    assert len({end - begin for begin, end in found}) == 1
    assert all(end == begin for (_, end), (begin, _) in pairwise(found))
    assert found[-1][1] == steps
    assert found[0][0] >= steps // 3
