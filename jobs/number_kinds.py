"""The kinds of numbers that a spec holds: whole numbers, numbers, sizes in bytes and times in seconds.

Each is a ``profrun.jobs.kinds.Kind``: it reads and checks a value and describes itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from profrun.contract import quantities
from profrun.jobs.kinds import BAD, Bad, Json, Kind, scalar, wrong
from profrun.jobs.nodes import Node, Typed, shown
from profrun.jobs.problems import Problems

Amount = TypeVar("Amount", int, float)


def _no_number(found: Typed | None, wanted: str) -> str:
    quoted = found is not None and found.type == "text" and re.fullmatch(r"[0-9.]+", str(found.value))
    return "is text" if quoted else f"is no {wanted}"


def _number(
    kind: Kind[float], node: Node, at: str, problems: Problems, fits: Callable[[float], bool]
) -> float | Bad:
    """A number for which ``fits`` is true."""
    found = scalar(node)
    given = found.value if found is not None and found.type in ("int", "float") else None
    if not isinstance(given, (int, float)):
        return wrong(node, at, problems, f"write {kind.words()}", _no_number(found, "number"))
    if not fits(given):
        problems.bad(node.where, f"{at}: {shown(node)} is out of range", f"write {kind.words()}")
        return BAD
    return float(given)


@dataclass(frozen=True)
class Whole(Kind[int]):
    """A whole number between two limits."""

    low: int = 0
    high: int = 1 << 31

    def read(self, node: Node, at: str, problems: Problems) -> int | Bad:
        """See ``Kind.read``."""
        found = scalar(node)
        value = found.value if found is not None and found.type == "int" else None
        if not isinstance(value, int):
            return wrong(node, at, problems, self._fix(node, found), _no_number(found, "whole number"))
        if not self.low <= value <= self.high:
            side = "small" if value < self.low else "large"
            problems.bad(node.where, f"{at}: {shown(node)} is too {side}", f"write {self.words()}")
            return BAD
        return value

    def _fix(self, node: Node, found: Typed | None) -> str:
        """The number that was most likely meant, when it is one."""
        if found is not None and found.type == "odd" and node.text[:1] in "+-0123456789":
            return f"write {found.meant}" if found.meant else found.fix
        if found is not None and found.type == "text" and re.fullmatch(r"[0-9]{1,9}", node.text):
            return f"write {int(node.text)} without quotes"
        return f"write {self.words()}"

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def words(self) -> str:
        """See ``Kind.words``."""
        limit = f" to {self.high}" if self.high < 1 << 31 else ""
        return f"a whole number from {self.low}{limit}" if limit else f"a whole number of at least {self.low}"


@dataclass(frozen=True)
class Number(Kind[float]):
    """A number above ``above`` and at most ``high``."""

    above: float = 0.0
    high: float = 1e12

    def read(self, node: Node, at: str, problems: Problems) -> float | Bad:
        """See ``Kind.read``."""
        return _number(self, node, at, problems, lambda value: self.above < value <= self.high)

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": "number", "exclusiveMinimum": self.above, "maximum": self.high}

    def words(self) -> str:
        """See ``Kind.words``."""
        limit = f" and at most {self.high:g}" if self.high < 1e12 else ""
        return f"a number above {self.above:g}{limit}"


@dataclass(frozen=True)
class Rate(Kind[float]):
    """A number from 0 to ``high``; `off` is 0."""

    high: float

    def read(self, node: Node, at: str, problems: Problems) -> float | Bad:
        """See ``Kind.read``."""
        if node.kind == "scalar" and node.text == "off":  # YAML 1.1 readers take it for a boolean
            return 0.0
        return _number(self, node, at, problems, lambda value: 0 <= value <= self.high)

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"anyOf": [{"type": "number", "minimum": 0, "maximum": self.high}, {"const": "off"}]}

    def words(self) -> str:
        """See ``Kind.words``."""
        return f"a number from 0 to {self.high:g}, or off"


@dataclass(frozen=True)
class Measure(Kind[Amount]):
    """A size in bytes or a time in seconds: a number, or a number with units.

    Attributes:
        number: int or float: what the value is.
        parse: makes it of text with units; a ValueError says what to write.
        pattern: regular expression of such text.
        what: what to write, in words.
        low, high: limits, both included.
        bare: the unit that a number without one has.
    """

    number: type[Amount]
    parse: Callable[[str], Amount]
    pattern: str
    what: str
    low: float
    high: float = float(1 << 60)
    bare: str = ""

    def read(self, node: Node, at: str, problems: Problems) -> Amount | Bad:
        """See ``Kind.read``."""
        found = scalar(node)
        if found is None or found.type not in ("int", "float", "text"):
            return wrong(node, at, problems, f"write {self.what}")
        try:
            value = self.parse(node.text) if found.type == "text" else self._bare(found)
        except ValueError as error:
            return wrong(node, at, problems, str(error))
        if not self.low <= value <= self.high:
            side = "small" if value < self.low else "large"
            problems.bad(
                node.where, f"{at}: {shown(node)} is too {side} ({value:g} {self.bare})", f"write {self.what}"
            )
            return BAD
        return value

    def _bare(self, found: Typed) -> Amount:
        """A number without unit."""
        if not isinstance(found.value, (int, float)) or (self.number is int and found.type != "int"):
            raise ValueError(f"write {self.what}")
        return self.number(found.value)

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        number: Json = {"type": "integer" if self.number is int else "number", "minimum": self.low}
        return {"anyOf": [number, {"type": "string", "pattern": f"^(?=.){self.pattern}$"}]}

    def words(self) -> str:
        """See ``Kind.words``."""
        return self.what


def size(low: int) -> Measure[int]:
    """A size, at least ``low`` bytes."""
    return Measure(
        int, quantities.parse_size, quantities.SIZE_PATTERN, "a size like 16GiB or 512MiB", low, bare="bytes"
    )


def has_unit(node: Node) -> bool:
    """For OneOf: text, such as a size with its unit."""
    found = scalar(node)
    return found is not None and found.type == "text"


def seconds(low: float, *, clock: bool = False) -> Measure[float]:
    """A time, at least ``low`` seconds; ``clock`` also takes a scheduler's D-HH:MM:SS."""
    if clock:
        pattern = f"(({quantities.TIME_PATTERN})|({quantities.CLOCK_PATTERN}))"
        return Measure(
            float,
            quantities.parse_clock,
            pattern,
            "a time like 30m, 1h30m or 1-12:00:00",
            low,
            bare="seconds",
        )
    return Measure(
        float,
        quantities.parse_time,
        quantities.TIME_PATTERN,
        "a time like 30m, 1h30m or 90s",
        low,
        high=3.2e7,
        bare="seconds",
    )
