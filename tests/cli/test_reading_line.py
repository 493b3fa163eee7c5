"""How far a file has been read."""

from __future__ import annotations

import sys

import pytest

from profrun.cli import reading_line
from profrun.cli.reading_line import ReadingLine
from tests.cli.running import Capture


@pytest.mark.parametrize(
    ("terminal", "done", "total", "shown"),
    [(True, 50, 200, "25 %"), (True, 2048, None, "reading: "), (False, 50, 200, "")],
)
def test_a_line_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, terminal: bool, done: int, total: int | None, shown: str
) -> None:
    monkeypatch.setattr(reading_line, "_EVERY_S", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with ReadingLine() as line:
        line.update(done, total)
    said = capsys.readouterr().err
    assert shown in said
    assert said.endswith("\x1b[K") == bool(shown)
    assert bool(said) == bool(shown)
