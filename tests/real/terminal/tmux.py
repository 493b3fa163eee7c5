"""Commands in terminals of a given size, drawn by tmux; what the screen shows is text."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import uuid
from pathlib import Path

LINES = 400
"""Lines of the terminal: more than any screen has, so that nothing scrolls away."""
_GONE = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "PROFRUN_RUNS", "TMUX")


class Terminal:
    """A tmux server of its own, with a terminal for each command. Use as a context manager.

    Args:
        cwd: the folder in which commands run.
    """

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        kept = {name: value for name, value in os.environ.items() if name not in _GONE}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        self._env = {**kept, "PATH": path, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
        self._socket = f"profrun-{uuid.uuid4().hex[:12]}"
        self._count = 0

    def __enter__(self) -> Terminal:
        self._tmux("-f", os.devnull, "start-server", ";", "set", "-g", "exit-empty", "off")
        self._tmux("set", "-g", "default-terminal", "tmux-256color")
        self._tmux("set", "-g", "status", "off")
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")

    def start(self, command: str, width: int, lines: int = LINES) -> str:
        """Start a command in a terminal; returns the name of the terminal."""
        self._count += 1
        name = f"t{self._count}"
        done = shlex.quote(f"{self._socket}-{name}")
        line = f"{command}; tmux -L {self._socket} wait-for -S {done}; exec sleep 1000"
        size = ("-x", str(width), "-y", str(lines))
        self._tmux("new-session", "-d", "-s", name, *size, "-c", str(self._cwd), line)
        return name

    def wait(self, name: str) -> None:
        """Wait until the command of a terminal has ended."""
        self._tmux("wait-for", f"{self._socket}-{name}")

    def screen(self, name: str, *, colours: bool = False) -> str:
        """The text that the terminal shows, without empty lines at its end.

        Args:
            name: of the terminal.
            colours: keep the ANSI codes.
        """
        shown = self._tmux("capture-pane", "-p", *(["-e"] if colours else []), "-t", name)
        lines = [line.rstrip() for line in shown.splitlines()]
        return "\n".join(lines).rstrip() + "\n"

    def resize(self, name: str, width: int) -> None:
        """Give a terminal another width."""
        self._tmux("resize-window", "-t", name, "-x", str(width))

    def press(self, name: str, key: str) -> None:
        """Press a key in a terminal, as tmux names it (C-c)."""
        self._tmux("send-keys", "-t", name, key)

    def show(self, command: str, width: int, *, colours: bool = False) -> str:
        """Run a command to its end in a terminal of this width; returns its screen."""
        name = self.start(command, width)
        self.wait(name)
        shown = self.screen(name, colours=colours)
        self._tmux("kill-session", "-t", name)
        return shown

    def _tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *args],
            capture_output=True,
            text=True,
            check=True,
            timeout=240,
            env=self._env,
        )
        return done.stdout
