"""Which numbers of a trace are doubtful, and how a page shows that beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol, TypeVar

from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, Kind
from profrun.traces.labels import rank_cell

if TYPE_CHECKING:
    from profrun.analysis.trace.summary import Summary

T = TypeVar("T")


class _Ranked(Protocol):
    """A row of one rank."""

    @property
    def rank(self) -> int: ...


class Marks:
    """The findings about the quality of a recording, by the names of the numbers that they affect.

    A name is that of a table, or of one of its numbers: 'kernels', 'kernels.total_ns'.
    """

    def __init__(self, summary: Summary) -> None:
        self._why: dict[str, list[str]] = {}
        self._withheld = frozenset(summary.withheld)
        for finding in summary.quality:
            if finding.severity != "info":
                for name in finding.affects:
                    self._why.setdefault(name, []).append(str(finding))

    def why(self, name: str) -> str | None:
        """What is doubtful about a number or its whole table, in words; None for one without doubt."""
        found = [*self._why.get(name, ()), *self._why.get(name.split(".")[0], ())]
        return "; ".join(dict.fromkeys(found)) or None

    def hidden(self, name: str) -> bool:
        """The number must not be shown."""
        return name in self._withheld or name.split(".")[0] in self._withheld

    def of(self, name: str) -> Html | None:
        """The mark beside the title of a doubtful number; None for one without doubt."""
        why = self.why(name)
        if why is None:
            return None
        text = "withheld" if self.hidden(name) else "?"
        return el("abbr", text, title=why, class_="doubtful", tabindex="0")

    def value(self, name: str, value: T | None, show: Callable[[T], str]) -> Html | str:
        """The number as text, or why it is not there."""
        if self.hidden(name):
            return el("span", "withheld", class_="withheld", title=self.why(name))
        return "not known" if value is None else show(value)

    def instead(self, name: str) -> Html | None:
        """What stands in place of a table that is withheld as a whole, None for any other."""
        if name not in self._withheld:
            return None
        return el("p", el("span", "withheld", class_="withheld"), f": {self.why(name)}")


class MarkedColumns:
    """Makes the columns of one table, with marks where a number is doubtful.

    Args:
        name: the table's name in the summary.
        marks: the marks of the summary.
    """

    def __init__(self, name: str, marks: Marks) -> None:
        self._name, self._marks = name, marks

    def __call__(
        self, attribute: str, title: str, kind: Kind, note: str = "", unit: str = ""
    ) -> Column[object]:
        """The column that shows an attribute of the rows; the other arguments are those of ``Column``."""
        mark = self._marks.of(f"{self._name}.{attribute}")
        return Column(title, lambda row: getattr(row, attribute), kind, note, mark=mark, unit=unit)

    def rank(self, guessed: Collection[int], note: str = "") -> Column[_Ranked]:
        """The column of the rank; ``guessed``: ranks that nothing states, which it marks."""
        if not guessed:
            return Column("rank", lambda row: row.rank, "count", note)
        return Column("rank", lambda row: rank_cell(row.rank, guessed), note=note)
