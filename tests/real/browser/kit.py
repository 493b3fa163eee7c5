"""A page in a real browser, with its console messages and its requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.conftest import ROOT

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
H200 = ROOT / "tests/data/h200/transformer/baseline-torch-r1/rank0/pt.trace.json.gz"


class Watched:
    """A page in a browser.

    Attributes:
        page: playwright's page.
        complaints: messages of the console, and errors that no script caught.
        requests: addresses that the page requested.
    """

    def __init__(self, browser: Any, path: Path, address: str = "", **context: Any) -> None:
        self.page = browser.new_page(**({"viewport": {"width": 1280, "height": 900}} | context))
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.absolute().as_uri() + address)

    def quiet(self, path: Path) -> bool:
        """Whether the console has no message, and the page requested only its own file."""
        return not self.complaints and {url for url in self.requests if not url.startswith("data:")} == {
            path.absolute().as_uri()
        }


def exact(page: Any, table: str, column: int) -> list[float]:
    """The exact values of a column (``data-v``), of the rows that are shown, in their order."""
    script = (
        "([name, column]) => [...document.querySelectorAll(`table[data-table=${name}] tbody tr`)]"
        ".filter(row => !row.hidden).map(row => Number(row.cells[column].dataset.v))"
    )
    return list(page.evaluate(script, [table, column]))
