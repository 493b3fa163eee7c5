"""A page in a real browser, with its console messages and its requests; and waiting for a state of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
H200 = ROOT / "tests/data/h200/transformer/baseline-torch-r1/rank0/pt.trace.json.gz"
PATIENCE_S = 120
"""Seconds that a page may need to reach a state."""


class Watched:
    """A page in a browser.

    Attributes:
        page: playwright's page.
        complaints: messages of the console, and errors that no script caught.
        requests: addresses that the page requested.
    """

    def __init__(self, browser: Any, path: Path, address: str = "", **context: Any) -> None:
        self.page = browser.new_page(**({"viewport": {"width": 1280, "height": 900}} | context))
        self.page.set_default_timeout(1000 * PATIENCE_S)
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


def becomes(page: Any, read: Callable[[], object], wanted: object) -> None:
    """Wait until ``read`` returns ``wanted``.

    A page changes later than the click or the key that causes it wherever a script waits for an event
    (hashchange, scroll) or for the next frame.
    """
    end = time.monotonic() + PATIENCE_S
    while (found := read()) != wanted:
        assert time.monotonic() < end, f"{found!r} did not become {wanted!r}"
        page.wait_for_timeout(50)


def eventually(page: Any, script: str, argument: object = None) -> None:
    """Wait until a script is true; wait_for_function evaluates it again by eval, which the page forbids."""
    becomes(page, lambda: bool(page.evaluate(script, argument)), True)


def drawn(page: Any) -> None:
    """Wait until every timeline on the tab that is shown is drawn."""
    eventually(
        page,
        "[...document.querySelectorAll('[data-timeline], [data-aligned]')].filter(one => one.offsetParent)"
        ".every(one => one.querySelector('canvas') && !one.querySelector('canvas:not([data-drawn])'))",
    )


def exact(page: Any, table: str, column: int) -> list[float]:
    """The exact values of a column (``data-v``), of the rows that are shown, in their order."""
    script = (
        "([name, column]) => [...document.querySelectorAll(`table[data-table=${name}] tbody tr`)]"
        ".filter(row => !row.hidden).map(row => Number(row.cells[column].dataset.v))"
    )
    return list(page.evaluate(script, [table, column]))
