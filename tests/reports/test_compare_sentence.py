"""A comparison in one line: sides in their order, and only what is proven."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import Comparison, compare
from profrun.reports.compare_sentence import go_on, side_name, verdict_line
from tests.analysis.compare.trials import OTHER, changed_comparison, trial


def _found(verdict: str, ratio: float, ci95: tuple[float, float] | None, **more: Any) -> Comparison:
    """Sides 'eager' of 339.9 us and 'compiled' of 247.5 us, whatever the ratio is."""
    found = changed_comparison(verdict=verdict, ratio=ratio, ci95=ci95, **more)
    a, b = found.sides
    sides = replace(a, name="eager", step_ns=339_900.0), replace(b, name="compiled", step_ns=247_500.0)
    return replace(found, sides=sides)


SURE = "3 trials per side)"
LESS = f"b takes 27.2 % less time per step (95 % interval 24.1 to 30.3 % less, {SURE}"
TIMES = f"b takes 3.10 times as long per step (95 % interval 2.90 to 3.30 times as long, {SURE}"
SAME = "both take the same time per step, within 1.0 % (95 % interval 0.4 % less to 0.7 % more, " + SURE
OPEN = "b takes 3.1 % more time per step (95 % interval 8.2 % less to 15.8 % more, " + SURE
LITTLE = f"b takes 0.8 % more time per step (95 % interval 0.2 to 1.5 % more, {SURE}"
WIDE = "nothing can be said about the time per step: trials of one side differ too much"
ONE = "b took over 100 times as long per step, but 3 trials per side cannot prove a difference"


@pytest.mark.parametrize(
    ("verdict", "ratio", "ci95", "said"),
    [
        ("faster", 0.728, (0.697, 0.759), LESS),
        ("slower", 3.1, (2.9, 3.3), TIMES),
        ("same", 1.002, (0.996, 1.007), SAME),
        ("inconclusive", 1.031, (0.918, 1.158), f"no difference proven: {OPEN}"),
        ("inconclusive", 1.008, (1.002, 1.015), f"{LITTLE}; it is not proven that this is as much as 1.0 %"),
        ("inconclusive", 2.0, (0.008, 517.665), WIDE),
        ("inconclusive", 8844.0, None, ONE),
    ],
)
def test_what_is_said(verdict: str, ratio: float, ci95: tuple[float, float] | None, said: str) -> None:
    line = verdict_line(_found(verdict, ratio, ci95, trials=(3, 3)))
    assert line == f"a eager 339.9 us, b compiled 247.5 us: {said}"


def test_trials_and_amounts_are_named() -> None:
    line = verdict_line(_found("faster", 0.9, (0.85, 0.95), trials=(1, 3), per="token"))
    assert line.endswith(
        "b takes 10.0 % less time per token (95 % interval 5.0 to 15.0 % less, 1 and 3 trials)"
    )


def test_a_side_without_a_name_has_its_letter() -> None:
    assert (side_name("a", ""), side_name("b", "x" * 40)) == ("a", f"b {'x' * 15}...{'x' * 14}")


def test_a_refusal_says_how_to_go_on_unless_nothing_helps() -> None:
    refused = compare([trial()], [trial(OTHER, ranks=2)])
    assert verdict_line(refused).startswith("a and b are not compared: 1 ranks against 2")
    assert go_on(refused, "profrun compare x vs y") == (
        "to compare them all the same: profrun compare x vs y --allow ranks"
    )
    assert go_on(refused, None) == "`--allow ranks` compares them all the same"
    assert go_on(compare([trial()], [trial(OTHER)]), "profrun compare x vs y") is None
    assert go_on(compare([trial()], [trial(())]), "profrun compare x vs y") is None  # no step has a time
