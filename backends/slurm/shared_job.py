"""The files of an allocation that trials share, and its script as a process where it is there already."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from profrun.backends.slurm.turns import Turn, parse_turns
from profrun.errors import UnavailableError
from profrun.store.files import appending, explained
from profrun.store.lock import patient_lock, sign
from profrun.store.runs import Run


def read_turns(run: Run, name: str) -> dict[str, Turn]:
    """The turns of an allocation that have begun; none while its script has not."""
    return parse_turns(_text(run.path / "slurm" / f"{name}.said"))


def read_order(run: Run, name: str) -> list[str]:
    """The trials of an allocation, in the order in which they run."""
    return _text(run.path / "slurm" / f"{name}.turns").split()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def begin(script: Path, environ: Mapping[str, str]) -> None:
    """Start an allocation's script in the allocation around this process.

    It goes on when profrun is killed. Whether it lives is told by a lock that it holds (``.lock``), which the
    kernel drops when the script and its steps have ended.

    Raises:
        UnavailableError: it cannot be started.
    """
    lock = script.with_suffix(".lock")
    held = patient_lock(lock)
    if held is None:
        raise UnavailableError(f"{script} runs already", why="a process holds its lock")
    try:
        with explained(script), appending(script.with_suffix(".log")) as log:
            child = subprocess.Popen(
                ["bash", str(script)],
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(held,),
            )
        sign(held, pid=child.pid)
    finally:
        os.close(held)
