"""What moves when a clock is repaired."""

from __future__ import annotations

import numpy as np

from profrun.traces.causality.model import Clock
from profrun.traces.causality.repair import moved
from tests.traces.causality.kit import Row, recording

ROWS: list[Row] = [
    ("api", "cudaLaunchKernel", 0, 10, "main", -1),
    ("kernel", "k", 1000, 500, "stream 7", 0),
    ("range", "copy of a range", 1000, 500, "stream 7", -1),
    ("sync", "Stream Sync (stream 7)", 100, 900, "stream 7", -1),
    ("kernel", "other", 3000, 500, "gpu1 stream 7", -1),
]


def clock(**values: int) -> Clock:
    return Clock(0, 0, 0, None, 1000, 101_000, 1, 1, "offset", **values)


def test_what_lies_on_the_gpu_moves_and_records_of_the_host_stay() -> None:
    ids, starts, ends = moved(recording(ROWS), [clock(moved_ns=70, last_moved_ns=70)])
    assert (ids.tolist(), starts.tolist(), ends.tolist()) == ([1, 2], [1070, 1070], [1570, 1570])


def test_a_drift_moves_later_times_by_more() -> None:
    _, starts, ends = moved(recording(ROWS), [clock(moved_ns=0, last_moved_ns=1000)])
    assert (starts.tolist(), ends.tolist()) == ([1000, 1000], [1505, 1505])


def test_times_of_an_epoch_stay_exact() -> None:
    rows = [(*row[:2], row[2] + 1_790_857_026_000_000_123, *row[3:]) for row in ROWS]
    first = rows[1][2]
    far = Clock(0, 0, 0, None, first, first + 10**9, 1, 1, "drift", moved_ns=5, last_moved_ns=105)
    _, starts, _ = moved(recording(rows), [far])
    assert np.unique(starts).tolist() == [first + 5]


def test_without_a_repair_nothing_moves() -> None:
    assert len(moved(recording(ROWS), [clock()])[0]) == 0
