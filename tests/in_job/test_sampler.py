"""The sampler's loop and its file."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

from profrun.contract.sampling import SampledSource
from profrun.in_job.gpu_source import Value
from profrun.in_job.sampler import open_file, sample


class Reader:
    """A source whose reading takes a while."""

    def __init__(self, takes_s: float = 0.0, value: Value = 1) -> None:
        self.source = SampledSource("gpu", ("power",))
        self.takes_s = takes_s
        self.value = value
        self.times: list[float] = []

    def read(self) -> tuple[int, list[Value]]:
        self.times.append(time.monotonic())
        time.sleep(self.takes_s)
        return len(self.times), [self.value]


def run(readers: list[Reader], rate: float, path: Path, samples: int) -> list[list[object]]:
    """Sample until the last source was read so often, and the rows of the file."""
    ends, end = os.pipe()
    file = open_file(path)
    assert file is not None
    thread = threading.Thread(target=lambda: sample(readers, file, rate, ends=ends))
    thread.start()
    while len(readers[-1].times) < samples:
        time.sleep(0.005)
    os.close(end)
    thread.join()
    os.close(file)
    os.close(ends)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_sampling_keeps_to_a_grid_and_reads_once_more_at_the_end(tmp_path: Path) -> None:
    reader = Reader(takes_s=0.004)
    rows = run([reader], 20.0, tmp_path / "s", 12)
    assert rows == [[number + 1, 0, 1] for number in range(len(reader.times))]
    first = reader.times[0]
    late = sorted((moment - first) * 20 % 1 for moment in reader.times[1:-1])
    assert late[len(late) // 2] < 0.5  # of a step of the grid; the reading does not add up


def test_a_slow_reading_leaves_times_out(tmp_path: Path) -> None:
    reader = Reader(takes_s=0.025)
    run([reader], 100.0, tmp_path / "s", 10)
    steps = [b - a for a, b in zip(reader.times, reader.times[1:], strict=False)]
    assert sorted(steps[:-1])[len(steps) // 2] > 0.027  # 30 ms; 25 ms if missed times were made up for


def test_a_source_without_any_value_has_no_row(tmp_path: Path) -> None:
    rows = run([Reader(), Reader(value=None)], 100.0, tmp_path / "s", 3)
    assert {row[1] for row in rows} == {0}


def test_one_sampler_writes_for_a_host(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("of an earlier attempt")
    file = open_file(path)
    assert file is not None
    assert path.read_text() == ""
    assert open_file(path) is None
    os.close(file)


def test_a_full_disk_ends_it(tmp_path: Path) -> None:
    ends, end = os.pipe()
    file = os.open("/dev/full", os.O_WRONLY)
    reader = Reader()
    sample([reader], file, 100.0, ends=ends)
    assert len(reader.times) == 1
    for number in (file, ends, end):
        os.close(number)
