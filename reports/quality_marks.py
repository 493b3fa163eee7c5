"""Which numbers of a trace are withheld or marked, and how a page shows that beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from profrun.reports.html import Html, el

if TYPE_CHECKING:
    from profrun.analysis.trace.summary import Summary


class Marks:
    """The findings about the quality of a recording, by the names of the numbers that they affect."""

    def __init__(self, summary: Summary) -> None:
        self._why: dict[str, list[str]] = {}
        self._withheld = frozenset(summary.withheld)
        for finding in summary.quality:
            if finding.severity != "info":
                for name in finding.affects:
                    self._why.setdefault(name, []).append(str(finding))

    def why(self, name: str) -> str | None:
        """What is doubtful about a number ('kernels.total_ns') or its whole table, in a sentence."""
        found = [*self._why.get(name, ()), *self._why.get(name.split(".")[0], ())]
        return "; ".join(dict.fromkeys(found)) or None

    def hidden(self, name: str) -> bool:
        """The number must not be shown."""
        return name in self._withheld or name.split(".")[0] in self._withheld

    def of(self, name: str) -> Html | None:
        """A mark to stand beside a doubtful number's title, None for one without doubt."""
        why = self.why(name)
        if why is None:
            return None
        text = "withheld" if self.hidden(name) else "?"
        return el("abbr", text, title=why, class_="doubtful", tabindex="0")

    def value(self, name: str, value: Any, show: Callable[[Any], str]) -> Html | str:
        """The number as text, or why it is not there."""
        if self.hidden(name):
            return el("span", "withheld", class_="withheld", title=self.why(name))
        return "not known" if value is None else show(value)

    def instead(self, name: str) -> Html | None:
        """What stands in place of a table that is withheld as a whole, None for any other."""
        if name not in self._withheld:
            return None
        return el("p", el("span", "withheld", class_="withheld"), f": {self.why(name)}")
