"""Declarations of what a job may give. A dataclass with these is the only list of the keys of a block.

Each field of such a dataclass is made with ``option``; ``jobs`` turns the dataclass into the table that reads
and checks a job's block, into the JSON schema and into the reference page. The options of a profiler are one:
its ``wrap`` takes the dataclass itself, and a field is None where the job does not give it, because the
profiler knows its own default.

The kinds are plain classes: every Python process of a job imports them, and making a dataclass takes 0.5 ms.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


class Flag:
    """true or false."""


class Word:
    """One of a few words; ``what`` names them in messages."""

    def __init__(self, known: tuple[str, ...], what: str = "known words") -> None:
        self.known, self.what = known, what


class Text:
    """Text, in whole matched by ``pattern``; ``what`` says in words what that is.

    Args:
        unquoted: a number counts as the text that it is written with (versions, device numbers).
    """

    def __init__(self, what: str, pattern: str | None = None, unquoted: bool = False) -> None:
        self.what, self.pattern, self.unquoted = what, pattern, unquoted


class Pattern:
    """A regular expression that compiles."""


class Whole:
    """A whole number between two limits, both included.

    Args:
        or_word: one word that may stand instead of the number.
    """

    def __init__(self, low: int = 0, high: int = 1 << 31, or_word: str | None = None) -> None:
        self.low, self.high, self.or_word = low, high, or_word


class Duration:
    """A time of at least ``low`` seconds; the value is seconds."""

    def __init__(self, low: float = 0.0) -> None:
        self.low = low


class Size:
    """A size of at least ``low`` bytes; the value is bytes."""

    def __init__(self, low: int = 0) -> None:
        self.low = low


class Many:
    """A list of one kind.

    Args:
        low: the fewest values that it may have.
        unique: no value may stand twice.
        example: what a message shows.
        or_word: one word that may stand instead of the list.
    """

    def __init__(
        self,
        kind: object,
        low: int = 0,
        unique: bool = False,
        example: str = "",
        or_word: str | None = None,
    ) -> None:
        self.kind, self.low, self.unique, self.example, self.or_word = kind, low, unique, example, or_word


REQUIRED = dataclasses.MISSING
"""The ``value`` of an option that must be given."""


def option(kind: object, doc: str, default: str = "", *, value: object = None, null: bool = False) -> Any:
    """A field of a dataclass whose values a job gives.

    Args:
        kind: one of the classes above: what the value may be.
        doc: one or two sentences for the reference page.
        default: what happens without it, in words, where ``value`` does not say it.
        value: the field's value when it is not given; a class (dict, tuple) makes a new one each time.
        null: a job may also write ``null``, for None.
    """
    metadata = {"kind": kind, "doc": doc, "default": default, "null": null}
    if isinstance(value, type):
        return dataclasses.field(default_factory=value, metadata=metadata)
    return dataclasses.field(default=value, metadata=metadata)


_VERSION = r"[0-9]{1,6}(\.[0-9]{1,9}){0,4}"


@dataclass(frozen=True)
class ToolOptions:
    """Options that every profiler with an executable of its own has."""

    args: tuple[str, ...] | None = option(
        Many(Text("an argument"), example="[--flag=value]"),
        "Further arguments for the profiler, passed on as they are.",
    )
    path: str | None = option(
        Text("a path"), "The executable inside the job, when it is not on the PATH there."
    )
    version: str | None = option(
        Text("a version like 2024.2.3", _VERSION, unquoted=True),
        "Its version, for a dry run away from the job; inside the job it is asked.",
        "asked in the job",
    )
