"""Arguments of commands that compare: ``A... vs B...`` as the traces of both sides, and a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profrun.errors import UsageError
from profrun.runner.comparison_sides import Sides, find_sides

WORD = "vs"


def sides_of(words: Sequence[str], root: Path) -> Sides:
    """The traces of both sides of a command.

    Raises:
        UsageError: the words are wrong, a trace is on both sides or named twice, or nothing is there.
        InputError: a run or trial has no trace.
    """
    a, b = split_sides(words)
    return find_sides(a, b, root)


def split_sides(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide the words of a command at ``vs``, so that shell globs work on both sides.

    Raises:
        UsageError: there is no ``vs``, more than one, or nothing on a side of it.
    """
    count = words.count(WORD)
    if count != 1:
        raise UsageError(
            f"compare needs the word '{WORD}' once between its two sides, and it is there {count} times",
            fix="e.g. `profrun compare last/baseline-none vs last/optimised-none`",
        )
    at = words.index(WORD)
    a, b = list(words[:at]), list(words[at + 1 :])
    if not a or not b:
        side = "before" if not a else "after"
        raise UsageError(
            f"there is nothing {side} '{WORD}'", fix="name a trace, RUN/TRIAL, RUN/POINT or a run"
        )
    return a, b


def fraction(text: str) -> float:
    """'1%' or '0.01' as 0.01.

    Raises:
        UsageError: it is neither.
    """
    try:
        return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a fraction", fix="write 0.01 or 1%") from None
