"""One line of a terminal: what it keeps where there is less room, and what it sends."""

from __future__ import annotations

import io
import sys

import pytest
from rich.cells import cell_len

from profrun.cli.live_line import LiveLine, fitted

FIELDS = ["[#####-----]", "9/24", "", "baseline torch r2", "step 31/50", "21.4 ms", "2:10 left"]


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (79, "[#####-----]  9/24  baseline torch r2  step 31/50  21.4 ms  2:10 left"),
        (68, "9/24  baseline torch r2  step 31/50  21.4 ms  2:10 left"),
        (50, "9/24  baseline torch r2  step 31/50  2:10 left"),
        (40, "9/24  baseline torch r2  step 31/50"),
        (30, "9/24  baseline tor  step 31/50"),
        (12, "9/24  basel…"),
    ],
)
def test_what_tells_least_is_left_out(width: int, line: str) -> None:
    assert fitted(FIELDS, width).plain == line
    assert len(line) <= width


def test_wide_characters_are_counted_by_their_cells() -> None:
    line = fitted([*FIELDS[:3], "基準 torch r2", *FIELDS[4:]], 30).plain
    assert cell_len(line) <= 30


def test_each_drawing_clears_the_one_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    line = LiveLine(colours=False)
    line.draw(["[-]", "1/2", "", "a", "running", "", ""])
    line.above("[1/2] a: finished, 1 s", "finished")
    line.close()
    clear, drawn = "\r\x1b[J", "[-]  1/2  a  running\r"
    finished = "[1/2] a: finished, 1 s\n"
    hidden, visible = "\x1b[?25l", "\x1b[?25h"
    sent = [hidden, clear, drawn, clear, finished, drawn, clear, visible]
    assert capsys.readouterr().err == "".join(sent)
    coloured = LiveLine(colours=True)
    coloured.above("[1/2] a: failed, 1 s", "failed")
    coloured.close()
    assert "\x1b[31m: failed\x1b[0m" in capsys.readouterr().err


class Terminal(io.RawIOBase):
    """Keeps what it is sent, piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: object) -> int:
        self.pieces.append(bytes(piece))  # type: ignore[call-overload]
        return len(self.pieces[-1])


def test_the_line_never_leaves_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What clears the line draws it again in the same piece."""
    terminal = Terminal()
    stderr = io.TextIOWrapper(io.BufferedWriter(terminal), line_buffering=True)  # as Python opens stderr
    monkeypatch.setattr(sys, "stderr", stderr)
    line = LiveLine(colours=True)
    line.draw(["[-]", "1/2", "", "a", "running", "", ""])
    line.draw(["[#]", "2/2", "", "a", "running", "", ""])
    line.above("[1/2] a: finished, 1 s", "finished")
    drawn = [piece for piece in terminal.pieces if b"\x1b[J" in piece]
    assert len(drawn) == 3
    assert all(b"running\r" in piece for piece in drawn)
