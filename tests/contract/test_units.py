"""Numbers as text, by tables; and the script of the report formats times as Python does."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from profrun.contract.units import (
    AMOUNT_WORDS,
    BYTE_UNITS,
    TIME_UNITS,
    amount_text,
    bytes_text,
    change_interval_text,
    change_text,
    column_text,
    column_unit,
    count_text,
    elapsed_text,
    energy_text,
    interval_text,
    percent_text,
    quantity_text,
    rank_list,
    rate_text,
    ratio_text,
    signed_change_interval_text,
    signed_change_text,
    signed_percent_text,
    signed_time_text,
    time_range_text,
    time_text,
)
from tests.conftest import ROOT

TIMES = [
    (None, "-"),
    (0, "0 ns"),
    (-2.2737368e-13, "0 ns"),
    (0.04999, "0 ns"),
    (0.05, "0.05 ns"),
    (0.5, "0.5 ns"),
    (412, "412 ns"),
    (999.94, "999.9 ns"),
    (999.96, "1 us"),
    (1234, "1.234 us"),
    (12_000, "12 us"),
    (999_949, "999.9 us"),
    (999_999, "1 ms"),
    (12_345_678, "12.35 ms"),
    (1_500_000, "1.5 ms"),
    (2_500_000_000, "2.5 s"),
    (123_456_789_000, "123.5 s"),
    (86_400_000_000_000, "86400 s"),
    (-4_000_000, "-4 ms"),
    (100_250, "100.2 us"),
]


@pytest.mark.parametrize(("ns", "text"), TIMES)
def test_a_time_has_four_digits_and_the_unit_that_suits_it(ns: float | None, text: str) -> None:
    assert time_text(ns) == text


def test_the_script_of_the_report_formats_times_alike(tmp_path: Path) -> None:
    driver = pytest.importorskip("playwright._impl._driver")
    node, *_ = driver.compute_driver_executable()
    script = (ROOT / "reports" / "static" / "units.js").read_text()
    draw = random.Random(7)
    values = [ns for ns, _ in TIMES if ns is not None]
    values += [draw.choice((1, -1)) * 10 ** draw.uniform(-3, 15) for _ in range(2000)]
    values += [draw.randrange(10**9) for _ in range(2000)]
    program = tmp_path / "time.js"
    program.write_text(f"{script}\nconsole.log(JSON.stringify({json.dumps(values)}.map(timeText)));\n")
    done = subprocess.run([node, str(program)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [time_text(value) for value in values]


@pytest.mark.parametrize(
    ("ns", "text"), [(None, "-"), (1234, "+1.234 us"), (-4, "-4 ns"), (0, "0 ns"), (0.01, "0 ns")]
)
def test_a_difference_of_times_has_its_sign(ns: float | None, text: str) -> None:
    assert signed_time_text(ns) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(8.9, "8 s"), (59.99, "59 s"), (188, "3 min 08 s"), (3840, "1 h 04 min")]
)
def test_elapsed_time(seconds: float, text: str) -> None:
    assert elapsed_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1024 * 1024 - 1, "1 MiB"),
        (100_000_000, "95.37 MiB"),
        (3 * 2**50, "3072 TiB"),
    ],
)
def test_bytes(count: int | None, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(("count", "text"), [(None, "-"), (0, "0"), (999, "999"), (1234567, "1 234 567")])
def test_counts(count: int | None, text: str) -> None:
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (12.5, "12.5"), (999.96, "1 k"), (1.93e11, "193 G"), (2e20, "200000 P")],
)
def test_large_amounts(value: float | None, text: str) -> None:
    assert amount_text(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "GB/s", "-"),
        (0.5, "", "0.5"),
        (1.2345, "GB/s", "1.23 GB/s"),
        (99.96, "", "100"),
        (1234.4, "TFLOP/s", "1234 TFLOP/s"),
    ],
)
def test_rates(value: float | None, unit: str, text: str) -> None:
    assert rate_text(value, unit) == text


def test_shares_ratios_and_intervals() -> None:
    assert [percent_text(share) for share in (None, 0, 0.12345, 1)] == ["-", "0.0 %", "12.3 %", "100.0 %"]
    assert [signed_percent_text(share) for share in (None, 0.05, -0.2)] == ["-", "+5.0 %", "-20.0 %"]
    assert [ratio_text(ratio) for ratio in (None, 1.25)] == ["-", "1.250"]
    assert [interval_text(ends) for ends in (None, (0.99, 1.25))] == ["-", "0.990 to 1.250"]


def test_a_column_has_the_unit_of_its_largest_value() -> None:
    values = [1_500, None, 2_250_000]
    size, unit = column_unit(values, TIME_UNITS)
    assert (size, unit) == (1e6, "ms")
    assert [column_text(value, size) for value in values] == ["0.002", "-", "2.250"]
    assert column_unit([None], BYTE_UNITS) == (1.0, "B")
    assert [column_text(value, 1.0) for value in (7, 7.5, 123456.7)] == ["7", "7.500", "123456.7"]
    assert [column_text(value, 1e6) for value in (0, 499, 500, -3)] == ["0", "<0.001", "0.001", "<0.001"]


@pytest.mark.parametrize(
    ("ratio", "text", "signed"),
    [
        (None, "-", "-"),
        (0.728, "27.2 % faster", "-27.2 %"),
        (1.0, "0.0 % slower", "0.0 %"),
        (0.9999, "0.0 % faster", "0.0 %"),
        (1.123, "12.3 % slower", "+12.3 %"),
        (2.4, "2.40 times as long", "2.40 x"),
        (36.14, "36.1 times as long", "36.1 x"),
        (8844.316, "over 100 times as long", "over 100 x"),
    ],
)
def test_changes_of_times(ratio: float | None, text: str, signed: str) -> None:
    assert (change_text(ratio), signed_change_text(ratio)) == (text, signed)


@pytest.mark.parametrize(
    ("interval", "text", "signed"),
    [
        (None, "-", "-"),
        ((0.697, 0.759), "24.1 to 30.3 %", "-30.3 to -24.1 %"),
        ((1.101, 1.145), "10.1 to 14.5 %", "+10.1 to +14.5 %"),
        ((0.918, 1.158), "8.2 % faster to 15.8 % slower", "-8.2 to +15.8 %"),
        ((0.9, 2.4), "10.0 % faster to 140.0 % slower", "-10.0 to +140.0 %"),
        ((1.208, 2.499), "20.8 to 149.9 %", "+20.8 to +149.9 %"),
        ((1.81, 3.3), "1.81 to 3.30 times", "1.81 to 3.30 x"),
        ((2.1, 2.4), "2.10 to 2.40 times", "2.10 to 2.40 x"),
        ((0.008, 300.0), "99.2 % faster to over 100 times as long", "-99.2 % to over 100 x"),
    ],
)
def test_intervals_of_changes(interval: tuple[float, float] | None, text: str, signed: str) -> None:
    assert (change_interval_text(interval), signed_change_interval_text(interval)) == (text, signed)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (21_240_000, 22_160_000, "21.24 to 22.16 ms"),
        (980_000, 1_200_000, "980 us to 1.2 ms"),
        (5, 5, "5 to 5 ns"),
        (1e9, 1e9, "1 to 1 s"),
        (1_000, 2e9, "1 us to 2 s"),
    ],
)
def test_a_range_of_times_names_its_unit_once(low: float, high: float, text: str) -> None:
    assert time_range_text(low, high) == text


@pytest.mark.parametrize(
    ("joules", "text"),
    [
        (None, "-"),
        (0, "0 nJ"),
        (2.35412, "2.354 J"),
        (0.0121, "12.1 mJ"),
        (3.5e-5, "35 uJ"),
        (1.2e-7, "120 nJ"),
        (0.99996, "1 J"),
        (7000, "7 kJ"),
        (3.6e6, "3.6 MJ"),
    ],
)
def test_energies(joules: float | None, text: str) -> None:
    assert energy_text(joules) == text
    assert quantity_text(joules, "J") == text


def test_a_quantity_of_a_comparison_by_its_unit() -> None:
    assert quantity_text(1234, "ns") == "1.234 us"


@pytest.mark.parametrize(
    ("ratio", "interval", "text"),
    [
        (1.08, (1.06, 1.1), "8.0 % more [6.0 to 10.0 %]"),
        (0.9, (0.88, 0.92), "10.0 % less [8.0 to 12.0 %]"),
        (1.0, (0.98, 1.04), "0.0 % more [2.0 % less to 4.0 % more]"),
        (2.4, (2.1, 2.7), "2.40 times as much [2.10 to 2.70 times]"),
    ],
)
def test_changes_of_an_amount(ratio: float, interval: tuple[float, float], text: str) -> None:
    found = f"{change_text(ratio, AMOUNT_WORDS)} [{change_interval_text(interval, AMOUNT_WORDS)}]"
    assert found == text


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "rank 3"),
        ([4, 3], "ranks 3-4"),
        ([1, 3], "ranks 1, 3"),
        (range(1, 512), "ranks 1-511"),
        ([3, 17, *range(19, 41), 50, *range(60, 530)], "ranks 3, 17, 19-40, 50 and 470 more"),
    ],
)
def test_ranks_are_named_in_few_words(ranks: Iterable[int], text: str) -> None:
    assert rank_list(ranks) == text
