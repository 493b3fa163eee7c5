"""The kinds of single values that a spec holds; lists and mappings of them are in ``profrun.jobs.tables``.

A ``Kind`` has three methods: ``read`` turns a node of the YAML tree into the value, or notes a
problem with its place and returns ``BAD``; ``schema`` gives the JSON Schema of what ``read`` accepts;
``words`` gives what to write, for the reference page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Generic, TypeVar

from profrun.jobs import units
from profrun.jobs.nodes import Node, Scalar, Typed, shorten, shown, typed
from profrun.jobs.problems import Problems, suggest

QUOTE = "quote text that starts with '{' or '[' or holds ': '"


class Bad(Enum):
    """The type of ``BAD``."""

    BAD = "bad"


BAD: Final = Bad.BAD
"""What ``read`` returns after it has noted a problem."""

Json = dict[str, object]
"""JSON Schema of a value."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Amount = TypeVar("Amount", int, float)


class Kind(Generic[T_co]):
    """One kind of value."""

    def read(self, node: Node, at: str, problems: Problems) -> T_co | Bad:
        """The value of a node.

        Args:
            node: where the value is written.
            at: dotted path of it in the spec, for messages.
            problems: takes what is wrong with it.

        Returns:
            the value, or BAD after a problem was noted.
        """
        raise NotImplementedError

    def schema(self) -> Json:
        """JSON Schema of what ``read`` accepts, as far as that language goes."""
        raise NotImplementedError

    def words(self) -> str:
        """What to write, in a few words."""
        raise NotImplementedError


def wrong(node: Node, at: str, problems: Problems, fix: str, what: str = "does not fit") -> Bad:
    """Note that the value is not of its kind; ``what`` goes on after the value in the message."""
    if node.kind == "scalar":
        found = typed(node)
        if found.type == "odd":
            problems.bad(node.where, f"{at}: {shown(node)} {found.why}", fix)
            return BAD
        if found.type == "null":
            what = "is given"
    else:
        what = "does not fit"
    problems.bad(node.where, f"{at}: {shown(node)} {what}", fix)
    return BAD


def scalar(node: Node) -> Typed | None:
    """The typed scalar, or None for a list or map."""
    return typed(node) if node.kind == "scalar" else None


@dataclass(frozen=True)
class Text(Kind[str]):
    """Text that is not empty, in whole matched by ``pattern``; ``what`` says in words what that is."""

    what: str = "text"
    pattern: str | None = None
    limit: int = 10_000
    raw: bool = False  # numbers count as the text they are written with (versions, variables)

    def read(self, node: Node, at: str, problems: Problems) -> str | Bad:
        """See ``Kind.read``."""
        found = scalar(node)
        number = (
            found is not None and found.type in ("int", "float", "odd") and node.text[:1] in "+-.0123456789"
        )
        if found is None:
            return wrong(node, at, problems, f"write {self.what} ({QUOTE})")
        if not (found.type == "text" or (self.raw and number)):
            if found.type in ("null", "text"):
                return wrong(node, at, problems, f"write {self.what}")
            what = "is a boolean" if found.type == "bool" else "is a number"
            return wrong(node, at, problems, f"quote it: '{shorten(node.text)}'", what)
        if not node.text.strip() or len(node.text) > self.limit or "\0" in node.text:
            return wrong(node, at, problems, f"write {self.what}")
        if self.pattern and not re.fullmatch(self.pattern, node.text):
            return wrong(node, at, problems, f"write {self.what}")
        return node.text

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        schema: Json = {"type": ["string", "number"] if self.raw else "string", "minLength": 1}
        return {**schema, "pattern": f"^(?:{self.pattern})$"} if self.pattern else schema

    def words(self) -> str:
        """See ``Kind.words``."""
        return self.what


@dataclass(frozen=True)
class Regex(Kind[str]):
    """A regular expression that compiles."""

    def read(self, node: Node, at: str, problems: Problems) -> str | Bad:
        """See ``Kind.read``."""
        value = Text("a regular expression").read(node, at, problems)
        if value is BAD:
            return BAD
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            problems.bad(
                node.where, f"{at}: {shown(node)} is not a regular expression ({error})", "mend the pattern"
            )
            return BAD
        return value

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": "string", "minLength": 1, "format": "regex"}

    def words(self) -> str:
        """See ``Kind.words``."""
        return "a regular expression"


@dataclass(frozen=True)
class Word(Kind[str]):
    """One of a few words."""

    known: tuple[str, ...]
    what: str = "known words"
    also: tuple[tuple[str, str], ...] = ()
    """Other names that people use, each with the word that is meant."""

    def read(self, node: Node, at: str, problems: Problems) -> str | Bad:
        """See ``Kind.read``."""
        # 'on' and 'off' are words here; YAML 1.1 readers take them for booleans, so only the text counts
        if node.kind == "scalar" and node.text in self.known:
            return node.text
        if (
            node.kind == "scalar"
            and node.plain
            and node.text.lower() in ("true", "false")
            and "on" in self.known
        ):
            word = "on" if node.text.lower() == "true" else "off"
            fix = f"write {word} (one of {', '.join(self.known)})"
            return wrong(node, at, problems, fix, "is a boolean")
        if node.kind != "scalar" or scalar(node) == Typed("null", None):
            return wrong(node, at, problems, f"write one of {', '.join(self.known)}")
        meant = dict(self.also).get(node.text.lower())
        fix = f"write {meant}" if meant else suggest(node.text, self.known, self.what)
        problems.bad(node.where, f"{at}: {shown(node)} is not known", fix)
        return BAD

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"enum": list(self.known)}

    def words(self) -> str:
        """See ``Kind.words``."""
        return " \\| ".join(f"`{word}`" for word in self.known)


@dataclass(frozen=True)
class Flag(Kind[bool]):
    """true or false; yes, no, on and off are refused because YAML readers disagree on them."""

    def read(self, node: Node, at: str, problems: Problems) -> bool | Bad:
        """See ``Kind.read``."""
        found = scalar(node)
        if found is not None and isinstance(found.value, bool):
            return found.value
        word = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(node.text.lower())
        what = "is text" if found is not None and not node.plain else "is not true or false"
        return wrong(node, at, problems, f"write {word}" if word else "write true or false", what)

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": "boolean"}

    def words(self) -> str:
        """See ``Kind.words``."""
        return "`true` \\| `false`"


def _no_number(found: Typed | None, wanted: str) -> str:
    quoted = found is not None and found.type == "text" and re.fullmatch(r"[0-9.]+", str(found.value))
    return "is text" if quoted else f"is no {wanted}"


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
        found = scalar(node)
        given = found.value if found is not None and found.type in ("int", "float") else None
        if not isinstance(given, (int, float)):
            return wrong(node, at, problems, f"write {self.words()}", _no_number(found, "number"))
        value = float(given)
        if not self.above < value <= self.high:
            problems.bad(node.where, f"{at}: {shown(node)} is out of range", f"write {self.words()}")
            return BAD
        return value

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": "number", "exclusiveMinimum": self.above, "maximum": self.high}

    def words(self) -> str:
        """See ``Kind.words``."""
        limit = f" and at most {self.high:g}" if self.high < 1e12 else ""
        return f"a number above {self.above:g}{limit}"


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
        int, units.parse_size, units.SIZE_PATTERN, "a size like 16GiB or 512MiB", low, bare="bytes"
    )


def seconds(low: float, *, clock: bool = False) -> Measure[float]:
    """A time, at least ``low`` seconds; ``clock`` also takes a scheduler's D-HH:MM:SS."""
    if clock:
        pattern = f"(({units.TIME_PATTERN})|({units.CLOCK_PATTERN}))"
        return Measure(
            float, units.parse_clock, pattern, "a time like 30m, 1h30m or 1-12:00:00", low, bare="seconds"
        )
    return Measure(
        float,
        units.parse_time,
        units.TIME_PATTERN,
        "a time like 30m, 1h30m or 90s",
        low,
        high=3.2e7,
        bare="seconds",
    )


@dataclass(frozen=True)
class Value(Kind[Scalar]):
    """A variant's value: text, a number or a boolean that every YAML reader reads alike."""

    def read(self, node: Node, at: str, problems: Problems) -> Scalar | Bad:
        """See ``Kind.read``."""
        found = scalar(node)
        if found is None:
            return wrong(
                node, at, problems, "write one text, number or true/false (lists belong under 'matrix:')"
            )
        if found.type == "null":
            return wrong(node, at, problems, "write a value, or '' for nothing")
        if found.type == "odd":
            return wrong(node, at, problems, found.fix)
        if "\0" in node.text:
            return wrong(node, at, problems, "leave out the NUL character")
        return found.value

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": ["string", "number", "boolean"]}

    def words(self) -> str:
        """See ``Kind.words``."""
        return "text, a number, `true` or `false`"


@dataclass(frozen=True)
class Variable(Kind[str]):
    """An environment variable's value: text, or a number kept exactly as it is written."""

    def read(self, node: Node, at: str, problems: Problems) -> str | Bad:
        """See ``Kind.read``."""
        found = scalar(node)
        if found is None:
            return wrong(node, at, problems, f"write text or a number ({QUOTE})")
        if found.type in ("null", "bool") or (found.type == "odd" and node.text[:1].isalpha()):
            quoted = found.type in ("bool", "odd")
            fix = f"quote it: '{node.text}'" if quoted else "write text or a number, or '' for nothing"
            return wrong(node, at, problems, fix, "is a boolean")
        if "\0" in node.text:
            return wrong(node, at, problems, "leave out the NUL character")
        return node.text

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": ["string", "number"]}

    def words(self) -> str:
        """See ``Kind.words``."""
        return "text or a number"


@dataclass(frozen=True)
class OneOf(Kind[T]):
    """The first alternative whose shape fits: scalars, lists and maps are told apart before reading.

    Attributes:
        options: the alternatives.
        fits: for each of them, whether a node is one.
    """

    options: tuple[Kind[T], ...]
    fits: tuple[Callable[[Node], bool], ...] = field(repr=False)

    def read(self, node: Node, at: str, problems: Problems) -> T | Bad:
        """See ``Kind.read``."""
        for kind, fits in zip(self.options, self.fits, strict=True):
            if fits(node):
                return kind.read(node, at, problems)
        return wrong(node, at, problems, f"write {self.plain_words()}")

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"anyOf": [kind.schema() for kind in self.options]}

    def words(self) -> str:
        """See ``Kind.words``."""
        return " or ".join(kind.words() for kind in self.options)

    def plain_words(self) -> str:
        """As ``words``, without the reference page's marks."""
        return self.words().replace("`", "").replace(" \\|", ",")


def is_word(node: Node) -> bool:
    """For OneOf: text that no number is written as."""
    return node.kind == "scalar" and node.text[:1].isalpha()
