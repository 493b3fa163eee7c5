"""How printed text is laid out for this stdout."""

from __future__ import annotations

import sys

import pytest

from profrun.cli.output import PIPED_WIDTH, columns, terminal_style
from profrun.reports.terminal_layout import Style


@pytest.mark.parametrize(
    ("terminal", "env", "style"),
    [
        (False, {}, Style(PIPED_WIDTH, wrap=False)),
        (False, {"COLUMNS": "80"}, Style(80)),
        (True, {"COLUMNS": "90", "TERM": "xterm"}, Style(90, colour=True)),
        (True, {"COLUMNS": "90", "TERM": "xterm", "NO_COLOR": "1"}, Style(90)),
        (True, {"COLUMNS": "90", "TERM": "dumb"}, Style(90)),
    ],
)
def test_the_style_follows_the_terminal(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, env: dict[str, str], style: Style
) -> None:
    for name in ("COLUMNS", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    assert terminal_style() == style


def test_columns_are_never_cut() -> None:
    rows = [("x" * 300, None), ("y", 12)]
    assert columns(("a", "bb"), rows, right=(1,)).splitlines()[1:] == [
        "x" * 300 + "   -",
        "y" + " " * 299 + "  12",
    ]
