"""The table of docs/changes.md, from ``contract.changes``: ``python -m profrun.jobs.changes_docs``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from profrun.contract.changes import CHANGES, parse

PAGE = Path(__file__).resolve().parent.parent / "docs" / "changes.md"

_GENERATED = re.compile(r"<!-- changes -->\n.*?<!-- end -->", re.DOTALL)


def rows() -> Iterator[str]:
    """The Markdown table of all changes, with the value that each has where a job writes none."""
    yield "| change | what it changes | numbers | what may break | how to make it permanent |"
    yield "|---|---|---|---|---|"
    for name, kind in CHANGES.items():
        change = parse(name)
        cells = (
            f"`{change.text}`",
            change.what,
            kind.exactness,
            kind.may_break.replace("{value}", change.value),
            change.permanent if change.permanent == "nothing" else f"`{change.permanent}`",
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def renewed(page: str) -> str:
    """The page with its table written anew; what stands outside the markers stays."""
    table = "\n".join(rows())
    return _GENERATED.sub(lambda _: f"<!-- changes -->\n{table}\n<!-- end -->", page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
