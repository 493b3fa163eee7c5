"""Does what a fault says: signals, limits, a full disk, broken writes, a jump of the clock, commands."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal
import struct
import subprocess
import time

from tests.conftest import ROOT
from tests.real.faults.desk import Desk
from tests.real.faults.engines import Engines
from tests.real.faults.plan import SECOND, SHAPES, SIGNALS, Blow, Fault
from tests.real.faults.processes import Seen, alive, look, playing
from tests.real.faults.tools import Tools

_LIMITS = {"no-growth": resource.RLIMIT_FSIZE, "no-files": resource.RLIMIT_NOFILE}
_WRITES = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC}
_CLOCK = {"clock-forward": 3600, "clock-back": -3600}
"""Seconds by which the clock of the day jumps."""
_WHO = {"driver": "profrun.cli", "wrapper": "bundle/run.py", "program": "work.py"}
_COMMANDS: dict[str, tuple[str, ...]] = {
    "resume": ("resume",),
    "cancel": ("cancel",),
    "cancel-now": ("cancel", "--now"),
    "rm": ("rm", "--yes"),
    "report": ("report",),
    "old-status": ("status",),
    "old-resume": ("resume",),
}
DISK = "160m"
"""Size of the disk that becomes full: the wrapper wants 64 MiB of it."""


def environ_of(fault: Fault, desk: Desk, tools: Tools) -> dict[str, str]:
    """Variables with which the disturbed profrun is started."""
    acts = {blow.act for blow in fault.blows}
    if acts & _CLOCK.keys():
        clock = desk.folder / "clock"
        clock.write_bytes(struct.pack("l", 0))
        return {"LD_PRELOAD": str(tools.clock), "FAULTS_CLOCK": str(clock)}
    if acts & _WRITES.keys():
        (act,) = acts
        number = round(fault.pick * 10_000)
        return {
            "LD_PRELOAD": str(tools.broken_writes),
            "FAULTS_WRITES_UNDER": str(desk.folder / "runs"),
            "FAULTS_WRITES_WHO": _WHO[fault.victim],
            "FAULTS_WRITES_ERRNO": str(_WRITES[act]),
            "FAULTS_WRITES_AFTER": str(number % {"driver": 90, "wrapper": 25, "program": 6}[fault.victim]),
            "FAULTS_WRITES_FOR": str((1, 4, 1_000_000)[number % 3]),
            "FAULTS_WRITES_SAID": str(desk.folder / "struck"),
        }
    return {}


def lacks(fault: Fault, tools: Tools) -> str | None:
    """What this machine has not and the fault needs."""
    acts = {blow.act for blow in fault.blows}
    needed = {
        "a C compiler": (acts & (_CLOCK.keys() | _WRITES.keys()), tools.clock and tools.broken_writes),
        "the history of the repository": (any(act.startswith("old-") for act in acts), tools.older),
        "the right to mount": ("disk-full" in acts, tools.mounts),
        "docker": (SHAPES[fault.shape].backend == "docker", tools.docker),
        "slurm": (SHAPES[fault.shape].backend == "slurm", tools.slurm),
    }
    return next((name for name, (needs, there) in needed.items() if needs and not there), None)


class Injector:
    """Injects one fault into one run.

    Attributes:
        others: other commands that were started on the same run, with what they were.
    """

    def __init__(
        self, fault: Fault, desk: Desk, driver: subprocess.Popen[str], tools: Tools, engines: Engines
    ) -> None:
        self.fault, self.desk, self.driver = fault, desk, driver
        self.tools, self.engines = tools, engines
        self.others: list[tuple[str, subprocess.Popen[str]]] = []
        self._target: Seen | None = None

    def strike(self, blow: Blow) -> bool:
        """Do one act; False when its victim is not there (any more)."""
        if blow.act in SIGNALS:
            return self._signal(blow.act)
        if blow.act in _LIMITS:
            return self._limit(_LIMITS[blow.act])
        if blow.act == "disk-full":
            return self._fill()
        if blow.act in _CLOCK:
            return self._jump(_CLOCK[blow.act])
        if blow.act in _WRITES:
            return True  # the library does it; ``landed`` says whether
        if blow.act in SECOND or blow.act in _COMMANDS:
            return self._command(blow.act)
        return blow.act in ("nothing", "old-submit")

    def landed(self) -> bool:
        """Whether a fault that comes by itself has come; asked at the end."""
        acts = {blow.act for blow in self.fault.blows}
        return not acts & _WRITES.keys() or (self.desk.folder / "struck").exists()

    def _signal(self, act: str) -> bool:
        if self.fault.victim == "engine":
            landed = self.engines.kill()
            time.sleep(1 + self.fault.pick)  # a service manager starts it again
            self.engines.start()
            return landed
        target = self._target or self._find()
        if target is None:
            return False
        self._target = target
        now = look(target.pid)
        if now is None or now.started != target.started:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(target.pid, signal.Signals[f"SIG{act}"])
            return True
        return False

    def _limit(self, number: int) -> bool:
        target = self._find()
        if target is None:
            return False
        _, hard = resource.prlimit(target.pid, number)
        resource.prlimit(target.pid, number, (3 if number == resource.RLIMIT_NOFILE else 0, hard))
        return True

    def _find(self) -> Seen | None:
        """The process that is hit."""
        victim = self.fault.victim
        if victim == "driver":
            pid = self._driver_pid()
            return look(pid) if pid else None
        if victim == "container":
            pid = self.engines.container(self.desk.folder)
            return look(pid) if pid else None
        found = playing(victim, alive(self.desk.folder))
        return found[int(self.fault.pick * len(found))] if found else None

    def _driver_pid(self) -> int | None:
        if not SHAPES[self.fault.shape].detached:
            return self.driver.pid if self.driver.poll() is None else None
        run = self.desk.run
        try:
            return int(json.loads((run / "lock").read_text())["pid"]) if run is not None else None
        except (OSError, ValueError, KeyError):
            return None

    def _fill(self) -> bool:
        with (self.desk.folder / "runs" / "filler").open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"\0" * size)
        return True

    def free(self) -> None:
        """Give the full disk its room back."""
        (self.desk.folder / "runs" / "filler").unlink(missing_ok=True)

    def _jump(self, seconds: int) -> bool:
        with (self.desk.folder / "clock").open("r+b") as file:  # in place: the processes have it mapped
            file.write(struct.pack("l", seconds))
        return True

    def _command(self, act: str) -> bool:
        run = self.desk.run
        if run is None:
            return False
        command, *options = _COMMANDS[act]
        older = self.tools.older if act.startswith("old-") else None
        child = self.desk.start(command, str(run), *options, source=older or ROOT)
        self.others.append((act, child))
        return True
