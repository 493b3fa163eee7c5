"""Numbers as text for people: the one formatter of times, bytes, counts, rates, shares and ratios.

Every function is given a plain number, or None for "not known", and returns its text; None becomes "-".
Significant digits are rounded to the nearest, a tie to the even digit, and zeros at the end are left out. The
unit is chosen after rounding, so 999 999 ns are "1 ms" and not "1000 us".
``timeText`` in ``reports/static/units.js`` is the twin of ``time_text``; a test holds them equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UNKNOWN = "-"
"""Text of a number that is not known."""

TIME_UNITS = ((1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s"))
"""(nanoseconds in the unit, unit), the smallest first."""
BYTE_UNITS = ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB"), (2.0**30, "GiB"), (2.0**40, "TiB"))
"""(bytes in the unit, unit), the smallest first."""
ENERGY_UNITS = ((1e-9, "nJ"), (1e-6, "uJ"), (1e-3, "mJ"), (1.0, "J"), (1e3, "kJ"), (1e6, "MJ"))
"""(joules in the unit, unit), the smallest first."""
_PREFIXES = ((1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"))
_TIMES = 2.0
"""Ratio of times from which it is shown as a factor instead of per cent."""
_MOST_TIMES = 100.0
"""Ratio of times from which no exact number is shown."""
_SHOWN_RANKS = 4
"""Runs of consecutive ranks that are written out; the others are counted."""
_LEAST, _TINY = 0.0005, "<0.001"
"""Numbers other than 0 that are smaller than the first are shown as the second: "0.000" would say 0."""
_ZERO_NS = 0.05
"""Smaller times are what rounding leaves of a sum of whole nanoseconds; they are shown as 0."""


class ChangeWords(NamedTuple):
    """How a change of a quantity is said: '3 % more', '3 % less', '2.40 times as much'."""

    more: str
    less: str
    times: str


TIME_WORDS = ChangeWords("slower", "faster", "as long")
"""A change of a time."""
AMOUNT_WORDS = ChangeWords("more", "less", "as much")
"""A change of an energy, or of another amount."""


def time_text(ns: float | None) -> str:
    """Nanoseconds in four digits, in ns, us, ms or s: "412 ns", "1.234 us"; below 0.05 ns "0 ns"."""
    if ns is None:
        return UNKNOWN
    return _with_unit(0.0 if abs(ns) < _ZERO_NS else ns, TIME_UNITS)


def time_range_text(low_ns: float, high_ns: float) -> str:
    """Two times with their unit once where it is the same: "21.2 to 22.16 ms", "980 us to 1.2 ms"."""
    low, high = time_text(low_ns), time_text(high_ns)
    number, unit = low.split(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


def signed_time_text(ns: float | None) -> str:
    """A difference of times in nanoseconds with its sign: "+1.234 us", "-4 ns", "0 ns"."""
    return ("+" if ns is not None and ns >= _ZERO_NS else "") + time_text(ns)


def energy_text(joules: float | None) -> str:
    """Joules in four digits, in nJ, uJ, mJ, J, kJ or MJ: "2.354 J", "12.1 mJ"."""
    return UNKNOWN if joules is None else _with_unit(joules, ENERGY_UNITS)


def quantity_text(value: float | None, unit: str) -> str:
    """A number of a comparison by its unit: ``time_text`` of "ns", ``energy_text`` of "J"."""
    return energy_text(value) if unit == "J" else time_text(value)


def elapsed_text(seconds: float) -> str:
    """Elapsed seconds, rounded down: "8 s", "3 min 08 s", "1 h 04 min"."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def bytes_text(count: float | None) -> str:
    """Bytes in four digits, in B, KiB, MiB, GiB or TiB: "512 B", "1.5 MiB"."""
    return UNKNOWN if count is None else _with_unit(count, BYTE_UNITS)


def count_text(count: int | None) -> str:
    """A whole number with a space between groups of three digits: "12 345"."""
    return UNKNOWN if count is None else f"{count:,}".replace(",", " ")


def counted(number: int, word: str) -> str:
    """A number of things: "1 step", "3 steps", "3 launches"."""
    ending = "es" if word.endswith("ch") else "s"
    return f"{number} {word}{ending * (number != 1)}"


def amount_text(value: float | None) -> str:
    """A large number in four digits with a decimal prefix (k, M, G, T, P): 1.93e11 is "193 G"."""
    return UNKNOWN if value is None else _with_unit(value, _PREFIXES)


def rate_text(value: float | None, unit: str = "") -> str:
    """A rate or a mean with three significant digits, whole from 100 on: "1.23 GB/s", "0.5", "1234".

    Args:
        value: the number, already in the unit.
        unit: what follows the number, if anything.
    """
    if value is None:
        return UNKNOWN
    if 0 < abs(value) < _LEAST:
        return f"{_TINY} {unit}".rstrip()
    return f"{value:.0f} {unit}".rstrip() if abs(value) >= 100 else f"{value:.3g} {unit}".rstrip()


def percent_text(share: float | None) -> str:
    """A share in per cent with one decimal: 0.5 is "50.0 %"."""
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def signed_percent_text(change: float | None) -> str:
    """A relative change in per cent with its sign and one decimal: 0.05 is "+5.0 %"."""
    return UNKNOWN if change is None else f"{100 * change:+.1f} %"


def ratio_text(ratio: float | None) -> str:
    """A ratio with three decimals: "1.250"."""
    return UNKNOWN if ratio is None else f"{ratio:.3f}"


def interval_text(interval: tuple[float, float] | None) -> str:
    """The two ends of an interval of ratios: "0.990 to 1.250"."""
    return UNKNOWN if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def change_text(ratio: float | None, words: ChangeWords = TIME_WORDS) -> str:
    """How much faster or slower something is, by the ratio of its time to another: "27.2 % faster".

    "27.2 % faster" is 27.2 % less time, "12.3 % slower" is 12.3 % more time. From twice as long on it is
    "2.40 times as long", and from 100 times on no exact number. ``words`` say it of another quantity.
    """
    if ratio is None:
        return UNKNOWN
    if ratio >= _TIMES:
        return f"{factor_text(ratio)} times {words.times}"
    return f"{abs(100 * (ratio - 1)):.1f} % {words.more if ratio >= 1 else words.less}"


def signed_change_text(ratio: float | None) -> str:
    """The same for a column of numbers: "-27.2 %", "0.0 %", "2.40 x", "over 100 x"."""
    if ratio is None:
        return UNKNOWN
    if ratio >= _TIMES:
        return f"{factor_text(ratio)} x"
    return f"{_signed_percent(ratio)} %"


def change_interval_text(interval: tuple[float, float] | None, words: ChangeWords = TIME_WORDS) -> str:
    """The two ends of an interval of ratios of times, to stand after ``change_text``: "24.1 to 30.3 %".

    An interval that contains 1 names both directions: "8.2 % faster to 15.8 % slower". The ends are factors
    where ``change_text`` of the ratio in their middle is one: "1.81 to 3.30 times".
    """
    if interval is None:
        return UNKNOWN
    low, high = interval
    if low * high >= _TIMES**2:
        return f"{factor_text(low)} to {factor_text(high)} times"
    ends = [f"{abs(100 * (end - 1)):.1f}" for end in interval]
    if high >= _MOST_TIMES:
        return f"{ends[0]} % {words.less} to {factor_text(high)} times {words.times}"
    if high <= 1:
        return f"{ends[1]} to {ends[0]} %"
    return (
        f"{ends[0]} to {ends[1]} %" if low >= 1 else f"{ends[0]} % {words.less} to {ends[1]} % {words.more}"
    )


def signed_change_interval_text(interval: tuple[float, float] | None) -> str:
    """The same for a column of numbers: "-8.2 to +15.8 %", "1.81 to 3.30 x"."""
    if interval is None:
        return UNKNOWN
    low, high = interval
    if low * high >= _TIMES**2:
        return f"{factor_text(low)} to {factor_text(high)} x"
    if high >= _MOST_TIMES:
        return f"{_signed_percent(low)} % to {factor_text(high)} x"
    return f"{_signed_percent(low)} to {_signed_percent(high)} %"


def column_unit(values: Iterable[float | None], units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """The unit that suits the largest value of a column, so that its numbers can be compared by eye.

    Args:
        values: the cells of the column; None for one that is not known.
        units: ``TIME_UNITS`` or ``BYTE_UNITS``.

    Returns:
        (size of the unit, unit), one of ``units``; the smallest where no cell is known.
    """
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return next((pair for pair in reversed(units) if largest >= pair[0]), units[0])


def column_text(value: float | None, size: float) -> str:
    """A cell of a column in its unit, without the unit.

    Args:
        value: the cell.
        size: size of the unit, the first part of what ``column_unit`` returns.

    Returns:
        The number with one decimal from 100 on and three below; whole numbers in the smallest unit, and 0,
        have none. What would be 0.000 is "<0.001".
    """
    if value is None:
        return UNKNOWN
    shown = value / size
    if 0 < abs(shown) < _LEAST:
        return _TINY
    if shown == 0 or (size == 1 and shown == int(shown)):
        return f"{int(shown)}"
    return f"{shown:.1f}" if abs(shown) >= 100 else f"{shown:.3f}"


def _signed_percent(ratio: float) -> str:
    """A ratio as a change in per cent with its sign; 0 has none."""
    change = f"{100 * (ratio - 1):+.1f}"
    return "0.0" if float(change) == 0 else change


def factor_text(ratio: float) -> str:
    """A factor in three digits: "2.40", "36.1"; from 100 on the digits mean nothing: "over 100"."""
    if ratio >= _MOST_TIMES:
        return f"over {_MOST_TIMES:.0f}"
    return f"{ratio:.3g}" if ratio >= 10 else f"{ratio:.2f}"


def _with_unit(value: float, units: Sequence[tuple[float, str]]) -> str:
    """Four significant digits in the smallest unit whose next larger unit is not reached after rounding."""
    place = 0
    while place + 1 < len(units):
        step = units[place + 1][0] / units[place][0]
        if abs(float(f"{value / units[place][0]:.4g}")) < step:
            break
        place += 1
    size, unit = units[place]
    shown = value / size
    return (f"{shown:.4g} {unit}" if abs(shown) < 9999.5 else f"{shown:.0f} {unit}").rstrip()


def some_of(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many more there are: "a, b, c and 5 more"."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def rank_list(ranks: Iterable[int]) -> str:
    """Ranks in few words: "rank 3", "ranks 3, 17-40", "ranks 1, 3, 5, 7 and 470 more"."""
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and spans[-1][-1] == rank - 1:
            spans[-1].append(rank)
        else:
            spans.append([rank])
    words = [f"{span[0]}-{span[-1]}" if len(span) > 1 else str(span[0]) for span in spans[:_SHOWN_RANKS]]
    more = sum(map(len, spans[_SHOWN_RANKS:]))
    one = len(spans) == 1 and len(spans[0]) == 1
    return f"rank{'' if one else 's'} {', '.join(words)}" + (f" and {more} more" if more else "")
