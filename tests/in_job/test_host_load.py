"""What is read of the host: on folders that stand for /proc and /sys, and on this machine."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from profrun.in_job import host_load
from profrun.in_job.host_load import HostReader, Paced, Rate, core_clock, quota_wait
from tests.in_job.test_process_cpu import fake


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.cpu = 0.0
        self.module = SimpleNamespace(
            monotonic=lambda: self.now,
            monotonic_ns=lambda: int(self.now * 1e9),
            thread_time=lambda: self.cpu,
            time_ns=lambda: int(self.now * 1e9),
        )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(host_load, "time", clock.module)
    return clock


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_host_in_cores(tmp_path: Path, clock: Clock) -> None:
    """In 2 s: user 300, system 50, irq 50 ticks of 10 ms on all cores, 20 stolen; the program had 150."""
    ticks = host_load.TICKS_PER_S
    write(tmp_path / "proc/stat", "cpu  1000 0 500 9000 100 10 10 40 0 0\ncpu0 1 1\n")
    fake(tmp_path, 10, 1, 100)
    reader = HostReader([10], root=str(tmp_path))
    assert reader.source.quantities == ("cpu_busy", "cpu_own", "cpu_stolen")
    assert reader.source.cores == len(os.sched_getaffinity(0))
    clock.now += 2
    write(tmp_path / "proc/stat", "cpu  1300 0 550 9100 150 60 10 60 0 0\ncpu0 1 1\n")
    fake(tmp_path, 10, 1, 250)
    when, values = reader.read()
    assert when == 102_000_000_000
    assert values == [400 / ticks / 2, 150 / ticks / 2, 20 / ticks / 2]


def test_a_counter_s_growth_per_second(clock: Clock) -> None:
    values = iter([10.0, 30.0, None, 25.0, 35.0])
    rate = Rate(lambda: next(values), 10.0)
    found = []
    for _ in range(5):
        found.append(rate())
        clock.now += 1
    assert found == [None, 2.0, None, 0.0, 0.5]


def test_what_takes_long_is_read_less_often(clock: Clock) -> None:
    """Each reading takes 2 ms of CPU: at 1 % of a core that is every 200 ms."""

    def read() -> int:
        clock.cpu += 0.002
        return 1

    paced = Paced(read, 0.01)
    found = []
    for _ in range(6):
        found.append(paced())
        clock.now += 0.1001
    assert found == [1, None, 1, None, 1, None]


def test_the_clock_is_the_mean_of_the_cores(tmp_path: Path) -> None:
    for core, text in enumerate(("1000000", "3000000", "9000000")):
        write(tmp_path / f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq", f"{text}\n")
    read = core_clock([0, 1], str(tmp_path))
    assert read is not None
    assert read() == 2000.0


def test_the_clock_of_a_virtual_machine_is_in_cpuinfo(tmp_path: Path) -> None:
    rows = [f"processor\t: {core}\ncpu MHz\t\t: {2000 + core}.5\n\n" for core in range(4)]
    write(tmp_path / "proc/cpuinfo", "".join(rows))
    read = core_clock([1, 3], str(tmp_path))
    assert read is not None
    assert read() == 2002.5
    write(tmp_path / "proc/cpuinfo", "processor : 0\nBogoMIPS : 50\n")
    assert core_clock([0], str(tmp_path)) is None


V1 = "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n"


@pytest.mark.parametrize(
    ("cgroup", "files", "seconds"),
    [
        (
            "0::/a/b\n",
            {"a/cpu.max": "200000 100000", "a/cpu.stat": "usage_usec 5\nthrottled_usec 2500000\n"},
            2.5,
        ),
        ("0::/\n", {"cpu.max": "50000 100000", "cpu.stat": "throttled_usec 1000000\n"}, 1.0),
        ("0::/\n", {"cpu.max": "max 100000", "cpu.stat": "throttled_usec 0\n"}, None),
        ("0::/\n", {"cpu.stat": "usage_usec 5\n"}, None),
        (
            V1,
            {"cpu,cpuacct/cpu.cfs_quota_us": "50", "cpu,cpuacct/cpu.stat": "throttled_time 3000000000"},
            3.0,
        ),
        (V1, {"cpu/docker/x/cpu.cfs_quota_us": "-1", "cpu/docker/x/cpu.stat": "throttled_time 0\n"}, None),
        ("", {}, None),
    ],
)
def test_the_wait_for_the_quota(
    tmp_path: Path, cgroup: str, files: dict[str, str], seconds: float | None
) -> None:
    write(tmp_path / "proc/self/cgroup", cgroup)
    for name, text in files.items():
        write(tmp_path / "sys/fs/cgroup" / name, text)
    read = quota_wait(str(tmp_path))
    assert (None if read is None else read()) == seconds


def test_this_machine_is_as_busy_as_we_make_it() -> None:
    """This process keeps a core busy."""
    reader = HostReader([os.getppid()])
    end = time.process_time() + 0.6
    while time.process_time() < end:
        pass
    found = dict(zip(reader.source.quantities, reader.read()[1], strict=True))
    busy = found["cpu_busy"]
    assert busy is not None
    assert 0.1 < busy <= (os.cpu_count() or 1) + 0.2
