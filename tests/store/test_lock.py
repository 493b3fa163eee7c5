"""Locks die with their holders, and only with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from profrun.errors import InputError, UsageError
from profrun.store.lock import driving, is_held, try_lock

_HOLD = """
import sys, time
from pathlib import Path
from profrun.store.lock import driving
with driving(Path(sys.argv[1]), "run-x"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_two_drivers_are_kept_apart_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", _HOLD, str(lock)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_held(lock)
        told = f"run-x is being driven already.*process {holder.pid}"
        with pytest.raises(UsageError, match=told), driving(lock, "run-x"):
            pass
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    assert not is_held(lock)
    with driving(lock, "run-x"):
        assert is_held(lock)
    assert not is_held(lock)


def test_a_child_that_was_given_the_lock_keeps_it_alive(tmp_path: Path) -> None:
    fd = try_lock(tmp_path / "live")
    assert fd is not None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(fd,))
    os.close(fd)
    assert is_held(tmp_path / "live")
    child.communicate(b"\n")
    assert not is_held(tmp_path / "live")


def test_a_lock_that_was_never_made_is_not_held(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("what", ["link", "hard link", "pipe", "folder"])
def test_a_lock_that_is_no_file_of_its_own_is_refused(tmp_path: Path, what: str) -> None:
    """A link was followed, and what it leads to was emptied and signed."""
    victim, lock = tmp_path / "victim", tmp_path / "lock"
    victim.write_text("mine")
    if what == "link":
        lock.symlink_to(victim)
    elif what == "hard link":
        lock.hardlink_to(victim)
    elif what == "pipe":
        os.mkfifo(lock)
    else:
        lock.mkdir()
    with (
        pytest.raises(InputError, match=f"lock cannot be used: it is a .*{what.split()[-1]}"),
        driving(lock, "x"),
    ):
        pass
    assert victim.read_text() == "mine"
    assert not is_held(lock)
