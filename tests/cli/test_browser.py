"""Where a browser is started, and what is said where it would not be seen."""

from __future__ import annotations

import shlex
import webbrowser
from pathlib import Path

import pytest

from profrun.cli import browser
from profrun.errors import UnavailableError

NAMES = ("BROWSER", "SSH_CONNECTION", "SSH_TTY", "DISPLAY", "WAYLAND_DISPLAY")


@pytest.fixture
def shown(addresses: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was asked to open, on a Linux that says nothing of a display."""
    monkeypatch.setattr("sys.platform", "linux")
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    return addresses


@pytest.mark.parametrize(
    ("environment", "starts"),
    [
        ({}, False),
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}, False),
        ({"SSH_TTY": "/dev/pts/1"}, False),
        ({"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22", "BROWSER": "/opt/editor/browser.sh"}, True),
    ],
)
def test_a_browser_is_started_only_where_it_is_seen(
    environment: dict[str, str],
    starts: bool,
    shown: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    said = browser.show_file(tmp_path / "a b.html")
    assert shown == ([f"file://{tmp_path}/a%20b.html"] if starts else [])
    assert (said is None) is starts


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_where_there_is_always_a_display_a_browser_is_started(
    system: str, shown: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.platform", system)
    assert browser.show_file(tmp_path / "a.html") is None
    assert len(shown) == 1


def test_the_hint_is_one_command(shown: list[str], tmp_path: Path) -> None:
    said = browser.show_file(tmp_path / "it's.html")
    assert said is not None
    _, command = said.split("\n")
    scp, source, here = shlex.split(command)
    assert (scp, here) == ("scp", ".")
    assert source.endswith(f":{tmp_path}/it's.html")


def test_a_browser_that_does_not_start_is_said(
    shown: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    with pytest.raises(UnavailableError, match=f"open {tmp_path}/x.html yourself"):
        browser.show_file(tmp_path / "x.html")
