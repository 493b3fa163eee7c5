"""Numbers and units as ncu prints them, into one unit a quantity.

ncu scales units by itself: the same metric comes as ``second``, ``usecond`` or ``nsecond``, as ``Mbyte`` or
``byte``, between files and between rows of one file. Here time is ns, data byte, rates are per second,
frequencies Hz, a pure number is '1'. K, M, G and T are decimal, as in ncu's own ``--print-units base``.
"""

from __future__ import annotations

import math
import re

_TIME_NS = {
    "ns": 1.0,
    "nsecond": 1.0,
    "us": 1e3,
    "usecond": 1e3,
    "ms": 1e6,
    "msecond": 1e6,
    "s": 1e9,
    "sec": 1e9,
    "second": 1e9,
}
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_SCALED = re.compile(r"^([KkMGT]?)(byte|bytes|hz|Hz)$")
_GROUPED = re.compile(r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$")
_DECIMAL_COMMA = re.compile(r"^[+-]?(\d+|\d{1,3}(\.\d{3})+),(\d{1,2}|\d{4,})$")


class DecimalComma(ValueError):
    """A number was written with a decimal comma: which commas are which cannot be told for the whole file."""


def number(text: str) -> float | None:
    """A value of a CSV cell, None where it is no finite number ('no data', 'n/a', '', 'nan', names).

    Thousands separators are taken out.

    Raises:
        DecimalComma: '9,00' or '1.048,5': the locale was not C.
    """
    text = text.strip()
    if "," in text:
        if _GROUPED.match(text):
            text = text.replace(",", "")
        elif _DECIMAL_COMMA.match(text):
            raise DecimalComma(text)
        else:
            return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def normal(value: float, unit: str) -> tuple[float, str]:
    """Value and unit in the trace's units: ('Mbyte/second', 2.0) is 2e6 byte/s, 'cycle/nsecond' is Hz."""
    parts = [part.strip() for part in unit.strip().split("/")]
    if len(parts) > 2 or not parts[0]:
        return value, unit.strip() or "1"
    factor, base = _scale(parts[0])
    if len(parts) == 1:
        return value * factor, base
    below, per = _scale(parts[1])
    if per == "ns":  # a rate: per second, not per nanosecond
        rate = value * factor * 1e9 / below
        return (rate, "Hz") if base == "cycle" else (rate, f"{base}/s")
    if per == "byte":  # ncu shows 8190 %/byte as '8.19 %/Kbyte': the prefix is that of the whole value
        return value * factor * below, f"{base}/{per}"
    return value * factor / below, f"{base}/{per}"


def _scale(unit: str) -> tuple[float, str]:
    """Factor to the base unit, and its name."""
    if unit in _TIME_NS:
        return _TIME_NS[unit], "ns"
    found = _SCALED.match(unit)
    if found:
        name = "byte" if found.group(2).startswith("byte") else "Hz"
        return _PREFIX[found.group(1).lower()], name
    return 1.0, unit
