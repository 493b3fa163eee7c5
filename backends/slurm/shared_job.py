"""The files of an allocation that trials share, and its script as a process where it is there already."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from profrun.backends.slurm.turns import Turn, parse_turns
from profrun.errors import UnavailableError
from profrun.store.files import appending, explained, write_all
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


def begin(script: Path, environ: Mapping[str, str], whole: str | None = None) -> None:
    """Start an allocation's script in the allocation around this process.

    It goes on when profrun is killed. Whether it lives is told by a lock that it holds (``.lock``), which the
    kernel drops when the script and its steps have ended.

    Args:
        whole: its text where the file has it without secrets: bash reads that from memory.

    Raises:
        UnavailableError: it cannot be started.
    """
    lock = script.with_suffix(".lock")
    held = patient_lock(lock)
    if held is None:
        raise UnavailableError(f"{script} runs already", why="a process holds its lock")
    try:
        with (
            explained(script),
            appending(script.with_suffix(".log")) as log,
            contextlib.ExitStack() as stack,
        ):
            path = str(script)
            more: tuple[int, ...] = ()
            if whole is not None:
                memory = stack.enter_context(_in_memory(whole))
                path, more = f"/dev/fd/{memory}", (memory,)
            child = subprocess.Popen(
                ["bash", path],
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(held, *more),
            )
        sign(held, pid=child.pid)
    finally:
        os.close(held)


@contextlib.contextmanager
def _in_memory(text: str) -> Iterator[int]:
    """A descriptor of a file in memory that holds a text."""
    fd = os.memfd_create("script")
    try:
        write_all(fd, text.encode(), durable=False)
        yield fd
    finally:
        os.close(fd)
