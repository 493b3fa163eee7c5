"""How printed text is laid out for this stdout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from profrun.cli.asked import ColourChoice, asked
from profrun.cli.output import PIPED_WIDTH, colours_on, columns, complain, note, say, terminal_style
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
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    assert terminal_style() == style


@pytest.mark.parametrize(
    ("choice", "env", "terminal", "colours"),
    [
        (None, {}, True, True),
        (None, {}, False, False),
        (None, {"TERM": "dumb"}, True, False),
        (None, {"NO_COLOR": "0"}, True, False),
        (None, {"NO_COLOR": ""}, True, True),
        (None, {"FORCE_COLOR": "1"}, False, True),
        (None, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_who_decides_about_colours(
    monkeypatch: pytest.MonkeyPatch,
    choice: ColourChoice | None,
    env: dict[str, str],
    terminal: bool,
    colours: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **env}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setattr(asked(), "colour", choice)
    assert colours_on(sys.stdout) is colours


def test_quiet_keeps_errors_and_leaves_out_notes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked(), "quiet", True)
    note("a note")
    complain("it broke")
    say("a result")
    monkeypatch.setattr(asked(), "colour", "always")
    complain("it broke")
    shown = capsys.readouterr()
    assert shown.err == "profrun: it broke\n\x1b[1;31mprofrun\x1b[0m: it broke\n"
    assert shown.out == "a result\n"


def printed(stdout: int | IO[str], stderr: int) -> subprocess.CompletedProcess[str]:
    """What a program prints that buffers its stdout, as it does in a pipe or a file."""
    program = (
        "from profrun.cli.output import complain, note, say\n"
        "say('a result'); note('a note'); say('another result'); complain('it broke')\n"
    )
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=buffered,
        stdout=stdout,
        stderr=stderr,
        text=True,
        check=False,
    )


def test_one_file_for_both_streams_has_the_lines_in_order() -> None:
    done = printed(subprocess.PIPE, subprocess.STDOUT)
    assert done.stdout.splitlines() == ["a result", "a note", "another result", "profrun: it broke"]


def test_an_error_is_printed_where_results_cannot_be_written() -> None:
    with Path("/dev/full").open("w") as full:
        done = printed(full, subprocess.PIPE)
    assert done.stderr.splitlines()[:2] == ["a note", "profrun: it broke"]


def test_columns_are_never_cut() -> None:
    rows = [("x" * 300, None), ("y", 12)]
    assert columns(("a", "bb"), rows, right=(1,)).splitlines()[1:] == [
        "x" * 300 + "   -",
        "y" + " " * 299 + "  12",
    ]
