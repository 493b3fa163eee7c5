"""The grammar of the gate, and the outcome of each rule for known comparisons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.compare import compare
from profrun.analysis.compare.gate import Rule, gate, parse_rule
from profrun.analysis.compare.model import Metric, Row
from profrun.errors import UsageError
from tests.analysis.compare.trials import OTHER, changed_comparison, trial


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("slower > 3%", ("step", None, "slower", 0.03, False)),
        ("slower>3 %", ("step", None, "slower", 0.03, False)),
        ("slower", ("step", None, "slower", 0.0, False)),
        ("step slower > 0.5%", ("step", None, "slower", 0.005, False)),
        ("faster > 10%", ("step", None, "faster", 0.1, False)),
        ("gpu slower > 3%", ("gpu", None, "slower", 0.03, False)),
        ("host slower > 3%", ("host", None, "slower", 0.03, False)),
        ("kernel '*gemm*' slower > 5%", ("kernel", "*gemm*", "slower", 0.05, False)),
        ('kernel "a b<c, d>" slower', ("kernel", "a b<c, d>", "slower", 0.0, False)),
        ("kernel gelu slower > 5%", ("kernel", "gelu", "slower", 0.05, False)),
        ("category gemm slower > 5%", ("category", "gemm", "slower", 0.05, False)),
        ("energy > 5%", ("energy", None, "more", 0.05, False)),
        ("energy more > 2.5 %", ("energy", None, "more", 0.025, False)),
        ("memory peak > 5%", ("memory", None, "more", 0.05, False)),
        ("memory > 12GiB", ("memory", None, "more", 12 * 2**30, True)),
        ("memory peak > 2GB", ("memory", None, "more", 2e9, True)),
        ("memory peak > 512B", ("memory", None, "more", 512.0, True)),
        ("expectations", ("expectations", None, "failed", 0.0, False)),
    ],
)
def test_rules_are_read(text: str, rule: tuple[Any, ...]) -> None:
    assert parse_rule(text) == Rule(text, *rule)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slow > 3%",
        "slower > 3",
        "slower < 3%",
        "memory peak",
        "energy",
        "energy > 5J",
        "energy slower > 5%",
        "category gelly slower",
        "memory > 5",
        "kernel slower > 5%",
        "slower > 3% > 4%",
        "slower > -3%",
    ],
)
def test_what_is_no_rule_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rule(text)
    assert "\n" not in str(caught.value)
    assert "write" in str(caught.value) or "one of" in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "ci95", "outcome"),
    [
        ("slower > 3%", (1.04, 1.08), "failed"),  # all of it beyond
        ("slower > 3%", (1.00, 1.02), "passed"),  # all of it within
        ("slower > 3%", (1.01, 1.05), "inconclusive"),
        ("slower > 3%", (0.90, 0.95), "passed"),
        ("slower", (1.001, 1.002), "failed"),
        ("slower", (0.99, 1.01), "passed"),  # nothing is proven
        ("faster > 3%", (0.90, 0.95), "failed"),
        ("faster > 3%", (1.0, 1.2), "passed"),
        ("slower > 3%", None, "inconclusive"),
    ],
)
def test_step_time(rule: str, ci95: tuple[float, float] | None, outcome: str) -> None:
    found = gate(changed_comparison(ratio=1.03, ci95=ci95), [parse_rule(rule)])
    assert found.outcome == outcome
    assert found.exit_code == {"passed": 0, "failed": 1, "inconclusive": 2}[outcome]


def test_an_incomparable_pair_fails_no_rule_and_passes_none() -> None:
    found = gate(compare([trial()], [trial(OTHER, replayed=True)]), [parse_rule("slower > 3%")])
    assert (found.outcome, found.exit_code) == ("inconclusive", 2)
    assert "cannot be compared" in found.results[0].message


def test_failed_weighs_more_than_inconclusive() -> None:
    rules = [parse_rule(text) for text in ("slower > 3%", "memory peak > 5%", "slower > 50%")]
    found = gate(changed_comparison(ratio=1.1, ci95=(1.05, 1.15)), rules)
    assert [one.outcome for one in found.results] == ["failed", "inconclusive", "passed"]
    assert found.exit_code == 1


def test_gpu_and_host_by_their_metrics() -> None:
    metrics = (Metric("GPU work", "ns", 100.0, 110.0, 1.1, (1.08, 1.12), 0.01, "slower"),)
    comparison = changed_comparison(metrics=metrics)
    assert gate(comparison, [parse_rule("gpu slower > 5%")]).outcome == "failed"
    assert gate(comparison, [parse_rule("host slower > 5%")]).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("ci95", "outcome", "message"),
    [
        ((1.06, 1.10), "failed", "energy per step: 2 J -> 2.16 J: 8.0 % more [6.0 to 10.0 %]"),
        (
            (0.98, 1.04),
            "passed",
            "energy per step: 2 J -> 2.16 J: 8.0 % more [2.0 % less to 4.0 % more]",
        ),
        ((1.01, 1.12), "inconclusive", "energy per step: 2 J -> 2.16 J: 8.0 % more [1.0 to 12.0 %]"),
        (None, "inconclusive", "energy per step: 2 J -> 2.16 J: 8.0 % more, without an interval"),
    ],
)
def test_energy(ci95: tuple[float, float] | None, outcome: str, message: str) -> None:
    comparison = changed_comparison(metrics=(Metric("energy", "J", 2.0, 2.16, 1.08, ci95, 0.01, "more"),))
    found = gate(comparison, [parse_rule("energy > 5%")])
    assert (found.outcome, found.results[0].message) == (outcome, message)


def test_energy_that_is_not_known_is_inconclusive_with_its_reason() -> None:
    note = "r1: 400 ms of steady steps; 4 s are needed: run at least 42 steady steps"
    found = gate(changed_comparison(energy_note=note), [parse_rule("energy > 5%")])
    assert found.outcome == "inconclusive"
    assert found.results[0].message == f"energy per step is not known: {note}"
    assert "no GPU was sampled" in gate(changed_comparison(), [parse_rule("energy > 5%")]).results[0].message


@pytest.mark.parametrize(
    ("rule", "peaks", "outcome"),
    [
        ("memory peak > 5%", (100, 106), "failed"),
        ("memory peak > 5%", (100, 105), "passed"),
        ("memory peak > 5%", (None, 105), "inconclusive"),
        ("memory peak > 1KiB", (None, 1025), "failed"),
        ("memory peak > 1KiB", (None, 1024), "passed"),
    ],
)
def test_memory(rule: str, peaks: tuple[int | None, int], outcome: str) -> None:
    whole = changed_comparison()
    a, b = (replace(side, memory_peak=peak) for side, peak in zip(whole.sides, peaks, strict=True))
    assert gate(replace(whole, sides=(a, b)), [parse_rule(rule)]).outcome == outcome


def _row(name: str, a: float, b: float, ci95: tuple[float, float] | None) -> Row:
    return Row(name, "gemm", "same", a, b, b - a, 1, 1, b / a, ci95, "name", a_names=(name,), b_names=(name,))


@pytest.mark.parametrize(
    ("rule", "row", "outcome"),
    [
        ("kernel 'k*' slower > 5%", _row("k1", 100, 110, (1.08, 1.12)), "failed"),
        ("kernel 'k*' slower > 5%", _row("k1", 100, 110, (0.98, 1.22)), "inconclusive"),
        ("kernel 'k*' slower > 5%", _row("k1", 100, 110, None), "inconclusive"),
        ("kernel 'k*' slower > 5%", _row("k1", 100, 104, None), "inconclusive"),
        ("kernel 'k*' slower > 5%", _row("k1", 100, 102, (1.01, 1.03)), "passed"),
        ("kernel 'k*' slower > 5%", _row("k1", 100, 102, (0.96, 1.08)), "inconclusive"),
        ("kernel 'k*' slower > 5%", _row("k1", 100, 110, (1.02, 1.18)), "inconclusive"),
        ("kernel 'k*' faster > 5%", _row("k1", 100, 80, (0.78, 0.82)), "failed"),
        ("kernel 'x*' slower > 5%", _row("k1", 100, 110, (1.08, 1.12)), "inconclusive"),
        ("category gemm slower > 5%", _row("k1", 100, 110, (1.08, 1.12)), "failed"),
        ("category norm slower > 5%", _row("k1", 100, 110, (1.08, 1.12)), "inconclusive"),
    ],
)
def test_kernels_and_categories(rule: str, row: Row, outcome: str) -> None:
    category = replace(row, name="gemm")
    assert (
        gate(changed_comparison(kernels=(row,), categories=(category,)), [parse_rule(rule)]).outcome
        == outcome
    )


@pytest.mark.parametrize(
    ("guesses", "outcome"),
    [
        ([("a", True), ("b", None)], "passed"),
        ([("a", True), ("b", False)], "failed"),
        ([("b", None)], "inconclusive"),
        ([], "inconclusive"),
    ],
)
def test_expectations(guesses: list[tuple[str, bool | None]], outcome: str) -> None:
    assert gate(changed_comparison(), [parse_rule("expectations")], expectations=guesses).outcome == outcome


@given(st.floats(0.5, 2.0), st.floats(0.0, 0.4), st.floats(0.01, 50.0))
def test_a_wider_interval_never_decides_more(ratio: float, half: float, limit: float) -> None:
    rule = parse_rule(f"slower > {limit:.3f}%")
    narrow = gate(changed_comparison(ratio=ratio, ci95=(ratio - half / 2, ratio + half / 2)), [rule]).outcome
    wide = gate(changed_comparison(ratio=ratio, ci95=(ratio - half, ratio + half)), [rule]).outcome
    if narrow == "inconclusive":
        assert wide == "inconclusive"
    else:
        assert wide in (narrow, "inconclusive")
