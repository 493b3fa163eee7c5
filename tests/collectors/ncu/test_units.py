"""Numbers and units as ncu prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.collectors.ncu.units import DecimalComma, normal, number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("6922267008", 6922267008.0),
        ("6,922,267,008.50", 6922267008.5),
        ("-1,024", -1024.0),
        ("1e-3", 0.001),
        ("0.00", 0.0),
        ("", None),
        ("no data", None),
        ("n/a", None),
        ("nan", None),
        ("inf", None),
        ("NVIDIA A10G", None),
        ("(16, 16, 1)", None),
        ("1,2,3", None),
    ],
)
def test_numbers(text: str, value: float | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["9,00", "0,5", "1.048.576,25", "12345,6789"])
def test_a_decimal_comma_is_never_guessed(text: str) -> None:
    with pytest.raises(DecimalComma):
        number(text)


@pytest.mark.parametrize(
    ("value", "unit", "result"),
    [
        (6.922267, "second", (6922267000.0, "ns")),
        (431.84, "usecond", (431840.0, "ns")),
        (431.84, "us", (431840.0, "ns")),
        (2.0, "msecond", (2e6, "ns")),
        (52416.0, "nsecond", (52416.0, "ns")),
        (1.5, "Mbyte", (1.5e6, "byte")),
        (17.77, "Kbyte/block", (17770.0, "byte/block")),
        (2.5, "Gbyte/second", (2.5e9, "byte/s")),
        (1.2, "Tbyte/second", (1.2e12, "byte/s")),
        (1.5, "cycle/nsecond", (1.5e9, "Hz")),
        (6.25, "cycle/usecond", (6.25e6, "Hz")),
        (1.5, "Ghz", (1.5e9, "Hz")),
        (3.0, "hz", (3.0, "Hz")),
        (8.0, "%/Kbyte", (8000.0, "%/byte")),
        (40.0, "register/thread", (40.0, "register/thread")),
        (3.0, "inst/cycle", (3.0, "inst/cycle")),
        (7.0, "", (7.0, "1")),
        (50.0, "%", (50.0, "%")),
    ],
)
def test_one_unit_a_quantity(value: float, unit: str, result: tuple[float, str]) -> None:
    scaled, name = normal(value, unit)
    assert scaled == pytest.approx(result[0])
    assert name == result[1]


@given(st.text(max_size=30))
def test_any_text_is_a_number_or_not_or_refused(text: str) -> None:
    try:
        found = number(text)
    except DecimalComma:
        return
    assert found is None or found == found  # never NaN


@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.text(max_size=20))
def test_any_unit_keeps_a_name(value: float, unit: str) -> None:
    assert normal(value, unit)[1]
