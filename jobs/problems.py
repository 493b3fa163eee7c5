"""What is wrong with a spec, and where. All of it is collected, so that the file can be corrected at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from profrun.errors import UsageError

MAX_SHOWN = 20


class Where(NamedTuple):
    """A place: line and column from 1, or ``label`` for what was not read from the file (``--set k=v``)."""

    line: int
    column: int
    label: str | None = None

    def order(self) -> tuple[bool, int, int]:
        """Sort key: the order of the file, the command line after it."""
        return (self.label is not None, self.line, self.column)


@dataclass(frozen=True)
class Problem:
    """One mistake: what is there, and what to write instead."""

    where: Where
    what: str
    fix: str

    def line(self, file: str) -> str:
        """``file:line:column: what; fix``."""
        place = self.where.label or f"{file}:{self.where.line}:{self.where.column}"
        return f"{place}: {self.what}; {self.fix}"


class SpecError(UsageError):
    """A job spec is wrong: one line per mistake, in the order of the file.

    Attributes:
        file: name of the spec.
        problems: all mistakes that were found.
    """

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.file = file
        self.problems = tuple(
            sorted(set(problems), key=lambda problem: (problem.where.order(), problem.what))
        )
        lines = [problem.line(file) for problem in self.problems[:MAX_SHOWN]]
        if len(self.problems) > MAX_SHOWN:
            lines.append(f"{file}: and {len(self.problems) - MAX_SHOWN} more; mend these first")
        super().__init__("\n".join(lines))


class Problems:
    """Collects mistakes and warnings while a spec is read."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Problem] = []
        self.warnings: list[str] = []

    def bad(self, where: Where, what: str, fix: str) -> None:
        """Note a mistake and go on."""
        self.found.append(Problem(where, what, fix))

    def warn(self, where: Where, what: str, fix: str) -> None:
        """Note something that runs but is hardly meant."""
        self.warnings.append(Problem(where, what, fix).line(self.file))

    def error(self) -> SpecError:
        """What to raise now."""
        return SpecError(self.file, self.found)


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word most like this one, or None."""
    import difflib

    close = difflib.get_close_matches(word[:200], list(known), n=1, cutoff=cutoff)
    if not close:
        close = [name for name in known if name.lower() == word.lower()][:1]
    return close[0] if close else None


def suggest(word: str, known: Iterable[str], what: str) -> str:
    """``did you mean 'x'?`` or the list of what there is."""
    names = list(known)
    close = nearest(word, names)
    if close:
        return f"did you mean '{close}'?"
    return f"{what}: {', '.join(names)}" if names else f"no {what}"
