"""What a command costs: seconds, memory, and what it held open and left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROFRUN = (sys.executable, "-m", "profrun.cli")


@dataclass(frozen=True)
class Cost:
    """One process, from its start to its end.

    Attributes:
        wall_s: seconds from its start to its end.
        cpu_s: user and system seconds of it and of the processes that it waited for.
        peak_mb: its largest resident size, MB of 10^6 bytes: the kernel's high-water mark, read every 20 ms.
        fds, threads: most open descriptors and threads at one time, read as often.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float
    fds: int
    threads: int


class _Watch(threading.Thread):
    """Reads from /proc what a process holds, until it is told to end."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.proc = Path(f"/proc/{pid}")
        self.peak_kb = self.fds = self.threads = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.02):
            try:
                status = (self.proc / "status").read_text(encoding="utf-8")
                fds = len(list((self.proc / "fd").iterdir()))
            except OSError:  # it has just ended
                return
            values = dict(line.split(":", 1) for line in status.splitlines())
            if "VmHWM" in values:
                self.peak_kb = max(self.peak_kb, int(values["VmHWM"].split()[0]))
            self.threads = max(self.threads, int(values["Threads"]))
            self.fds = max(self.fds, fds)


def cost(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> Cost:
    """Run a command to its end.

    Args:
        codes: exit codes that are no failure.

    Raises:
        SystemExit: it ended with another code; its last words are the message.
    """
    with tempfile.TemporaryFile() as log:
        began = time.perf_counter()
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=cwd, env=environ
        )
        watch = _Watch(process.pid)
        watch.start()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        watch.over.set()
        watch.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            log.seek(0)
            said = log.read().decode(errors="replace")
            raise SystemExit(f"{' '.join(argv)}: exit code {process.returncode}\n{said[-2000:]}")
    cpu = used.ru_utime + used.ru_stime
    peak = watch.peak_kb * 1024 / 1e6
    return Cost(wall, cpu, peak, watch.fds, watch.threads)


def left_running(folder: Path) -> list[str]:
    """Command lines of the processes that name a folder in their arguments or environment."""
    found = []
    mark = os.fsencode(folder)
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            words = (proc / "cmdline").read_bytes()
            held = words + (proc / "environ").read_bytes()
        except OSError:  # it ended, or belongs to another user
            continue
        if mark in held and int(proc.name) != os.getpid():
            found.append(words.replace(b"\0", b" ").decode(errors="replace").strip())
    return found
