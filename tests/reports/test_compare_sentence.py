"""A comparison in one line: sides in their order, and only what is proven."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import Comparison, compare
from profrun.contract.units import time_text
from profrun.reports.compare_sentence import Called, change_sentence, go_on, pair_sentence, verdict_line
from profrun.store.run_result import PairResult
from tests.analysis.compare.trials import OTHER, changed_comparison, trial


def _found(verdict: str, ratio: float, ci95: tuple[float, float] | None, **more: Any) -> Comparison:
    """Side 'eager' of 339.9 us, and side 'compiled'."""
    found = changed_comparison(verdict=verdict, ratio=ratio, ci95=ci95, **more)
    a, b = found.sides
    sides = replace(a, name="eager", step_ns=339_900.0), replace(b, name="compiled", step_ns=339_900 * ratio)
    return replace(found, sides=sides)


SURE = "3 + 3 trials"
LESS = f": 27.2 % faster [24.1 to 30.3 %], {SURE}"
TIMES = f": 3.10 times as long [2.90 to 3.30 times], {SURE}"
SAME = f": the same within 1 % [0.4 % faster to 0.7 % slower], {SURE}"
OPEN = f" (+3.1 %), no difference proven [8.2 % faster to 15.8 % slower], {SURE}"
LITTLE = f": 0.8 % slower [0.2 to 1.5 %], {SURE}; it is not proven that this is as much as 1 %"
WIDE = f", no verdict: the trials of one side differ too much ({SURE})"
ONE = f" (over 100 x), no verdict from {SURE}"


@pytest.mark.parametrize(
    ("verdict", "ratio", "ci95", "said"),
    [
        ("faster", 0.728, (0.697, 0.759), LESS),
        ("slower", 3.1, (2.9, 3.3), TIMES),
        ("same", 1.002, (0.996, 1.007), SAME),
        ("inconclusive", 1.031, (0.918, 1.158), OPEN),
        ("inconclusive", 1.008, (1.002, 1.015), LITTLE),
        ("inconclusive", 2.0, (0.008, 517.665), WIDE),
        ("inconclusive", 8844.0, None, ONE),
    ],
)
def test_what_is_said(verdict: str, ratio: float, ci95: tuple[float, float] | None, said: str) -> None:
    line = verdict_line(_found(verdict, ratio, ci95, trials=(3, 3)))
    assert line == f"eager 339.9 us -> compiled {time_text(339_900 * ratio)} per step{said}"


def test_trials_and_amounts_are_named() -> None:
    line = verdict_line(_found("faster", 0.9, (0.85, 0.95), trials=(1, 3), per="token"))
    assert line.endswith(" per token: 10.0 % faster [5.0 to 15.0 %], 1 + 3 trials")


def test_a_pair_of_a_run_is_said_in_the_same_words() -> None:
    found = _found("faster", 0.728, (0.697, 0.759), trials=(3, 3))
    pair = PairResult(
        kind="variant", a="eager-none", b="compiled-none", verdict="faster", a_ns=339_900.0,
        b_ns=339_900 * 0.728, ratio=0.728, ci95=(0.697, 0.759), mde=None, trials=(3, 3), text="",
    )  # fmt: skip
    assert pair_sentence(pair, ("eager", "compiled")) == verdict_line(found)
    assert pair_sentence(pair).startswith("eager-none 339.9 us -> compiled-none ")


def test_a_refusal_shows_what_was_measured_and_the_commands_that_go_on() -> None:
    refused = compare([trial()], [trial(OTHER, ranks=2)])
    line = verdict_line(refused)
    assert line.startswith("a 100 ns, b 100 ns per step, no verdict: 1 ranks against 2")
    called = Called(("x", "vs", "y"), "my runs", ("--by", "op"))
    assert list(map(str, go_on(refused, called))) == [
        "to divide the times by the work: profrun compare x vs y --runs 'my runs' --by op --per gflop",
        "to compare them all the same: profrun compare x vs y --runs 'my runs' --by op --allow ranks",
    ]
    assert list(map(str, go_on(refused, None))) == ["to compare them all the same: --allow ranks"]
    assert go_on(compare([trial()], [trial(OTHER)]), called) == []


def test_without_times_only_the_kernels_can_be_compared() -> None:
    nothing = compare([trial()], [trial(())])  # no step has a time
    assert verdict_line(nothing).startswith("a 100 ns, b - per step, no verdict: ")
    assert list(map(str, go_on(nothing, Called(("x", "vs", "y"), options=("--by", "op"))))) == [
        "to compare the kernels alone: profrun compare x vs y --same-kernels"
    ]


def test_the_change_is_that_of_the_interval_where_drift_is_taken_out() -> None:
    """5.437 / 5.328 ms are +2.0 %; without the drift that both sides share it is +2.7 %."""
    said = change_sentence(
        ("a", "b"), (5.328e6, 5.437e6), "inconclusive", (0.984, 1.072), (3, 3), ratio=1.027
    )
    assert "(+2.7 %), no difference proven" in said
