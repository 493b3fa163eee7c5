"""Show a page in the user's browser, or say how to get a file to where the browser is."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from profrun.errors import UnavailableError


def can_show() -> bool:
    """Whether the user would see a browser that is started here.

    $BROWSER decides where it is set: editors that work over ssh set it to a program that opens pages on the
    user's own machine. Otherwise there must be a display, and no ssh session.
    """
    seen = os.environ.get
    if seen("BROWSER"):
        return True
    if seen("SSH_CONNECTION") or seen("SSH_TTY"):
        return False
    return sys.platform in ("darwin", "win32") or bool(seen("DISPLAY") or seen("WAYLAND_DISPLAY"))


def show(address: str, fix: str) -> None:
    """Open an address in the user's browser; ask ``can_show`` before.

    Args:
        address: the address.
        fix: what to do if no browser starts.

    Raises:
        UnavailableError: no browser started.
    """
    import webbrowser

    if not webbrowser.open(address):
        raise UnavailableError("no browser could be started", fix=fix)


def show_file(path: Path) -> str | None:
    """Open a page in the user's browser.

    Returns:
        How to get the file, where the user would not see a browser; else None.

    Raises:
        UnavailableError: no browser started.
    """
    if not can_show():
        return copy_hint(path)
    show(path.absolute().as_uri(), f"open {path.absolute()} yourself")
    return None


def copy_hint(path: Path) -> str:
    """A sentence, and on a line of its own the command that copies a file to the user's machine."""
    import getpass
    import socket

    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container may run as a user without a name
        if sys.platform == "win32":
            user = "USER"
        else:
            user = str(os.getuid())
    source = shlex.quote(f"{user}@{socket.gethostname()}:{path.absolute()}")
    return f"No browser can be shown here. Copy the file to your own machine:\n  scp {source} ."
