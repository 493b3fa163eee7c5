"""CPU time of a tree of processes: of those that run, that have ended, and that were found late."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profrun.in_job.process_cpu import TreeCpu

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
BURN = "import time\nwhile time.process_time() < 0.5: pass"
WAITS = f"import subprocess, sys\nfor _ in range(2): subprocess.run([sys.executable, '-c', {BURN!r}])"
NOBODY_WAITS = f"import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n{WAITS}"


@pytest.mark.thorough
@pytest.mark.parametrize("program", [WAITS, NOBODY_WAITS], ids=["waited for", "not waited for"])
def test_the_time_of_ended_children_stays(program: str) -> None:
    """Two children use half a second each; the sum never falls, and has them both."""
    root = subprocess.Popen(
        [sys.executable, "-c", program + "\nprint('done', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert root.stdin is not None
    assert root.stdout is not None
    try:
        tree = TreeCpu([root.pid])
        os.set_blocking(root.stdout.fileno(), False)
        seen = [tree.ticks() or 0]
        while not root.stdout.read():
            time.sleep(0.02)
            seen.append(tree.ticks() or 0)
        seen.append(tree.ticks() or 0)
    finally:
        root.communicate()
    assert seen == sorted(seen)
    assert (seen[-1] - seen[0]) * TICK_S >= 0.9


def fake(root: Path, pid: int, parent: int, ticks: int, *argv: str, children: str = "") -> None:
    """A process in a folder that stands for /proc."""
    folder = root / "proc" / str(pid)
    (folder / f"task/{pid}").mkdir(parents=True, exist_ok=True)
    fields = f"{pid} (a ) b) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 2 3 4 20 0 1 0 99"
    (folder / "stat").write_text(fields)
    (folder / "cmdline").write_text("".join(f"{word}\0" for word in argv))
    (folder / f"task/{pid}/children").write_text(children)


def test_children_of_other_threads_are_found_by_the_scan_and_count_from_then(tmp_path: Path) -> None:
    fake(tmp_path, 10, 1, 100)
    fake(tmp_path, 11, 10, 500)
    fake(tmp_path, 12, 11, 500)
    fake(tmp_path, 99, 1, 900)
    tree = TreeCpu([10], root=str(tmp_path))
    assert tree.ticks() == 0
    tree.scan()
    assert tree.ticks() == 0
    fake(tmp_path, 12, 11, 530)
    fake(tmp_path, 99, 1, 990)
    assert tree.ticks() == 30


def test_children_of_the_main_thread_are_found_at_once_and_count_whole(tmp_path: Path) -> None:
    fake(tmp_path, 10, 1, 100)
    tree = TreeCpu([10], root=str(tmp_path))
    fake(tmp_path, 10, 1, 100, children="11 ")
    fake(tmp_path, 11, 10, 5)
    assert tree.ticks() == 5 + 2 + 3 + 4


def test_wrappers_of_other_ranks_are_found_by_their_command_line(tmp_path: Path) -> None:
    fake(tmp_path, 10, 1, 0, "python3", "/b/run.py", "/t/000")
    fake(tmp_path, 20, 1, 0, "python3", "/b/run.py", "/t/000")
    fake(tmp_path, 21, 20, 0, "train")
    fake(tmp_path, 30, 1, 0, "python3", "/b/run.py", "/t/001")
    tree = TreeCpu([10], ("/b/run.py", "/t/000"), root=str(tmp_path))
    tree.scan()
    tree.ticks()
    fake(tmp_path, 21, 20, 7, "train")
    fake(tmp_path, 30, 1, 70, "python3", "/b/run.py", "/t/001")
    assert tree.ticks() == 7


def test_a_tree_that_is_gone_has_no_time() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"], stdin=subprocess.PIPE)
    tree = TreeCpu([child.pid])
    child.communicate()
    assert tree.ticks() is None
