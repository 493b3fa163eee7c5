"""What the sampler reads of the host: busy and stolen cores, the trial's own, clocks, waits for the quota.

All of it comes from /proc, /sys and the cgroup. In a container /proc/stat is still that of the whole machine:
so other programs of the machine are seen, too. The kernel counts CPU time in ticks of 10 ms.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Callable

from ..contract.sampling import SampledSource
from .process_cpu import TreeCpu
from .procfs import read_again

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contract.sampling import Quantity
    from .gpu_source import Value

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
STAT_SHARE, TREE_SHARE, SCAN_SHARE, CLOCK_SHARE = 0.002, 0.003, 0.001, 0.001
"""Share of a core that each kind of reading may use: where it takes long (many cores, many processes), it is
done less often, and its value is None in between."""
_SCAN_REST_S = 1.0
_CLOCK_REST_S = 0.5  # Linux before 5.18 interrupts a core to read its clock
_CLOCKS = 16  # of so many cores the clock is read, spread over those that the program may run on


class Paced:
    """Reads at most so often that it takes ``share`` of a core, and at most every ``rest_s`` seconds."""

    def __init__(self, read: Callable[[], Value], share: float, rest_s: float = 0.0) -> None:
        self._read = read
        self._share = share
        self._rest_s = rest_s
        self._next = 0.0

    def __call__(self) -> Value:
        """The value, None where it is not read this time."""
        before = time.monotonic()
        if before < self._next:
            return None
        spent = time.thread_time()
        value = self._read()
        self._next = before + max(self._rest_s, (time.thread_time() - spent) / self._share)
        return value


class Rate:
    """Growth of a counter per second, since the call before; None in the first call.

    Args:
        read: the counter, None where it cannot be read.
        unit: how many of the counter's units are one second.
    """

    def __init__(self, read: Callable[[], float | None], unit: float) -> None:
        self._read = read
        self._unit = unit
        self._before: tuple[int, float] | None = None

    def __call__(self) -> float | None:
        """How much it grew per second; 0 where it fell."""
        now, value = time.monotonic_ns(), self._read()
        before = self._before
        if value is None:
            return None
        if before is None:
            self._before = now, value
            return None
        self._before = now, max(value, before[1])
        if now <= before[0]:
            return None
        return round(max(0.0, value - before[1]) / self._unit / ((now - before[0]) / 1e9), 3)


class HostReader:
    """Reads the host.

    Args:
        wrappers: pids of the wrappers of the trial; what runs below them is the trial's.
        same: the last arguments of further wrappers of this trial on the host, where each rank has one.
        root: where /proc and /sys are.
    """

    def __init__(self, wrappers: Sequence[int], same: Sequence[str] = (), root: str = "") -> None:
        tree = TreeCpu(wrappers, tuple(same), root=root)
        self._scan = Paced(tree.scan, SCAN_SHARE, _SCAN_REST_S)
        self._scan()
        self._stat = _Stat(f"{root}/proc/stat")
        clock = core_clock(sorted(os.sched_getaffinity(0)), root)
        waits = quota_wait(root)
        works = self._stat.read()
        busy = Rate(lambda: self._stat.busy, TICKS_PER_S)
        stolen = Rate(lambda: self._stat.stolen, TICKS_PER_S)
        own = Rate(tree.ticks, TICKS_PER_S)
        reads: list[tuple[Quantity, bool, Callable[[], Value]]] = [
            ("cpu_busy", works, busy),
            ("cpu_own", tree.ticks() is not None, Paced(own, TREE_SHARE)),
            ("cpu_stolen", works and self._stat.stolen is not None, stolen),
            ("cpu_clock", clock is not None, Paced(clock or _nothing, CLOCK_SHARE, _CLOCK_REST_S)),
            ("cpu_quota_wait", waits is not None, Rate(waits or _nothing, 1.0)),
        ]
        self._plan = [read for _, found, read in reads if found]
        self.source = SampledSource(
            kind="host",
            quantities=tuple(name for name, found, _ in reads if found),
            cores=len(os.sched_getaffinity(0)),
        )
        self.read()

    def read(self) -> tuple[int, list[Value]]:
        """The time of the reading (unix time, ns), and the values."""
        when = time.time_ns()
        self._scan()
        self._stat.update()
        return when, [read() for read in self._plan]


def _nothing() -> None:
    return None


class _Stat:
    """The first line of /proc/stat: ticks of all CPUs together. See proc(5).

    The kernel writes the whole file for each reading, which takes 1 ms and more on a large host.
    """

    def __init__(self, path: str) -> None:
        self._file = _KeptFile(path)
        self._paced = Paced(lambda: int(self.read()), STAT_SHARE)
        self.busy: float | None = None
        self.stolen: float | None = None

    def update(self) -> None:
        """Read it. Where it is not its turn yet, ``busy`` and ``stolen`` are None."""
        if self._paced() is None:
            self.busy = self.stolen = None

    def read(self) -> bool:
        """Read it into ``busy`` and ``stolen``; returns whether that worked."""
        fields = self._file.read().partition(b"\n")[0].split()
        if len(fields) < 8 or fields[0] != b"cpu":
            self.busy = self.stolen = None
            return False
        user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[1:8])
        self.busy = float(user + nice + system + irq + softirq)
        self.stolen = float(fields[8]) if len(fields) > 8 else None
        return True


class _KeptFile:
    """A file of /proc or /sys that stays open: reading it again from its begin gives new content."""

    def __init__(self, path: str) -> None:
        try:
            self._number: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._number = None

    def read(self) -> bytes:
        """Its content, empty where it cannot be read."""
        return b"" if self._number is None else read_again(self._number)


def core_clock(cores: Sequence[int], root: str = "") -> Callable[[], float | None] | None:
    """What reads the mean clock of the cores, MHz: of up to 16 of them. None where the host does not tell."""
    some = cores[:: -(-len(cores) // _CLOCKS)] if cores else []
    files = [_KeptFile(f"{root}/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq") for core in some]
    if any(file.read() for file in files):

        def scaling() -> float | None:
            return _mean([int(text) / 1000 for file in files if (text := file.read().strip()).isdigit()])

        return scaling

    def listed() -> float | None:
        return _mean(_listed_clocks(f"{root}/proc/cpuinfo", set(cores)))

    return listed if listed() is not None else None


def _listed_clocks(path: str, cores: set[int]) -> list[float]:
    """MHz of the cores, as /proc/cpuinfo has them (x86)."""
    found, core = [], -1
    try:
        with open(path, "rb") as file:
            for line in file:
                if line.startswith(b"processor"):
                    core = int(line.partition(b":")[2])
                elif line.startswith(b"cpu MHz") and core in cores:
                    found.append(float(line.partition(b":")[2]))
    except (OSError, ValueError):
        return []
    return found


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 1) if values else None


def quota_wait(root: str = "") -> Callable[[], float | None] | None:
    """What reads how long the CPUs have waited because the quota was used up, s. None without a quota.

    Source: cpu.stat of the cgroup, throttled_usec (v2) or throttled_time in ns (v1). The quota is that of the
    nearest group above this process that has one.
    """
    for folder, quota, key, unit in _groups(root):
        try:
            with open(f"{folder}/{quota}", encoding="ascii") as limit:
                words = limit.read().split()
        except OSError:
            continue
        if words and words[0] not in ("max", "-1"):
            file = _KeptFile(f"{folder}/cpu.stat")

            def read(file: _KeptFile = file, key: bytes = key, unit: float = unit) -> float | None:
                for line in file.read().splitlines():
                    if line.startswith(key):
                        return int(line.split()[1]) / unit
                return None

            return read if read() is not None else None
    return None


def _groups(root: str) -> list[tuple[str, str, bytes, float]]:
    """(folder, file of its quota, key of its cpu.stat, that key's units per second), nearest first."""
    try:
        with open(f"{root}/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    found = []
    for number, controllers, path in (line for line in lines if len(line) == 3):
        if number == "0":
            base, kind = f"{root}/sys/fs/cgroup", ("cpu.max", b"throttled_usec", 1e6)
        elif "cpu" in controllers.split(","):
            base, kind = f"{root}/sys/fs/cgroup/{controllers}", ("cpu.cfs_quota_us", b"throttled_time", 1e9)
            if not os.path.isdir(base):
                base = f"{root}/sys/fs/cgroup/cpu"
        else:
            continue
        parts = [part for part in path.split("/") if part and part != ".."]
        for end in range(len(parts), -1, -1):
            found.append(("/".join([base, *parts[:end]]), *kind))
    return found
