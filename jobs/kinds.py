"""The kinds of single values that a spec holds, without numbers (``number_kinds``), lists and mappings
(``tables``).

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
