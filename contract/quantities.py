"""Sizes and times as people write them, and back."""

from __future__ import annotations

import re
from decimal import Decimal

SIZES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
TIMES = {"d": Decimal(86400), "h": Decimal(3600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("0.001")}

SIZE_PATTERN = r"[0-9]+(\.[0-9]+)? ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)"
TIME_PATTERN = r"([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+(\.[0-9]+)?s)?([0-9]+ms)?"
CLOCK_PATTERN = r"([0-9]+-)?[0-9]{1,2}:[0-9]{2}:[0-9]{2}"

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-z]+)")
_TIME_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|d|h|m|s)")


def parse_size(text: str) -> int:
    """Bytes of ``16GiB``, ``512 MiB``, ``1.5GB``.

    Raises:
        ValueError: no size; the message is what to write.
    """
    match = _SIZE.fullmatch(text)
    if not match:
        raise ValueError("write a number and a unit, like 16GiB or 512MiB")
    number, unit = match.groups()
    if unit not in SIZES:
        wanted = {"k": "KiB", "m": "MiB", "g": "GiB", "t": "TiB"}.get(unit[0].lower())
        raise ValueError(f"write {number}{wanted}" if wanted else f"known units: {', '.join(SIZES)}")
    size = Decimal(number) * SIZES[unit]
    if size != int(size):
        raise ValueError("write a whole number of bytes")
    return int(size)


def parse_time(text: str) -> float:
    """Seconds of ``30m``, ``1h30m``, ``90s``, ``500ms``, ``2d``.

    Raises:
        ValueError: no time; the message is what to write.
    """
    parts = list(_TIME_PART.finditer(text))
    if not text or "".join(part.group() for part in parts) != text:
        raise ValueError("write a time like 30m, 1h30m or 90s")
    order = [list(TIMES).index(part[2]) for part in parts]
    if order != sorted(set(order)):
        raise ValueError("write each unit once, the largest first, like 1h30m")
    return float(sum(Decimal(part[1]) * TIMES[part[2]] for part in parts))


def parse_clock(text: str) -> float:
    """Seconds of a scheduler's ``H:MM:SS`` or ``D-HH:MM:SS``, else as ``parse_time``.

    Raises:
        ValueError: no time; the message is what to write.
    """
    if re.fullmatch(CLOCK_PATTERN, text):
        days, _, clock = text.rpartition("-")
        hours, minutes, seconds = (int(part) for part in clock.split(":"))
        return float(int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds)
    try:
        return parse_time(text)
    except ValueError:
        raise ValueError("write a time like 30m, 1h30m or 1-12:00:00") from None


def size_text(size: int) -> str | int:
    """The shortest exact spelling: ``16GiB``; plain bytes when no unit fits."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % SIZES[unit] == 0:
            return f"{size // SIZES[unit]}{unit}"
    return size


def time_text(seconds: float) -> str | float:
    """The shortest exact spelling: ``1h30m``; plain seconds when they are not whole."""
    if seconds <= 0 or seconds != int(seconds):
        return seconds
    rest, text = int(seconds), ""
    for unit, length in (("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, length)
        text += f"{count}{unit}" if count else ""
    return text
