"""Write the golden text of screens: ``python -m tests.real.terminal.golden [NAME...]``. Then read
`git diff`.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT
from tests.real.terminal.screens import SCREENS, WIDTHS, Screen, prepare
from tests.real.terminal.tmux import Terminal

FOLDER = ROOT / "tests/golden"
"""One file for each screen, with a section for each width."""


def golden(screen: Screen, terminal: Terminal) -> str:
    """The text of a screen at all widths; a width that shows the same as the one before is only named."""
    text, before = f"$ {screen.command}\n", ""
    for width in WIDTHS:
        shown = screen.masked(terminal.show(screen.line, width))
        if shown == before:
            text += f"\n=== {width} columns: the same\n"
        else:
            text += f"\n=== {width} columns\n{shown}"
        before = shown
    return text


def main(names: list[str]) -> None:
    """Write the files of these screens, or of all; remove the files of screens that no longer exist."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        home = prepare(Path(folder))
        with Terminal(home) as terminal:
            for screen in SCREENS:
                if not names or screen.name in names:
                    (FOLDER / f"{screen.name}.txt").write_text(golden(screen, terminal), encoding="utf-8")
    for path in FOLDER.glob("*.txt"):
        if path.stem not in {screen.name for screen in SCREENS}:
            path.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
