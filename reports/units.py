"""Numbers as text: a unit on each, one unit a column, '-' for what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from profrun.reports.compare_text import time_text

__all__ = ["amount_text", "bytes_text", "column_unit", "count_text", "percent", "scaled", "time_text"]

NS = ((1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s"))
BYTES = ((1.0, "B"), (1024.0, "KiB"), (1024.0**2, "MiB"), (1024.0**3, "GiB"), (1024.0**4, "TiB"))


def column_unit(values: Iterable[float | None], units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """(factor, unit) that suits the largest value of a column, so that its numbers can be compared by eye."""
    most = max((abs(value) for value in values if value is not None), default=0.0)
    return next((pair for pair in reversed(units) if most >= pair[0]), units[0])


def scaled(value: float | None, factor: float) -> str:
    """A value in a column's unit: whole numbers whole, else three decimals below 100 and one above."""
    if value is None:
        return "-"
    shown = value / factor
    if factor == 1 and shown == int(shown):
        return f"{int(shown)}"
    return f"{shown:.1f}" if abs(shown) >= 100 else f"{shown:.3f}"


def percent(share: float | None) -> str:
    """A share as per cent."""
    return "-" if share is None else f"{100 * share:.1f} %"


def bytes_text(value: float | None) -> str:
    """Bytes with the binary unit that suits them."""
    if value is None:
        return "-"
    factor, unit = column_unit([value], BYTES)
    return f"{value / factor:.4g} {unit}" if factor > 1 else f"{value:.0f} B"


def count_text(value: int | None) -> str:
    """A count with a thin gap every three digits."""
    return "-" if value is None else f"{value:,}".replace(",", " ")


def amount_text(value: float | None) -> str:
    """A large pure number: 1.93e+11 as '193 G'."""
    if value is None:
        return "-"
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {prefix}"
    return f"{value:.4g}"
