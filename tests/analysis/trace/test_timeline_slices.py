"""Which slices a timeline shows, and in which rows: a small trace, the question, the rows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from profrun.analysis.trace.step_spread import step_spread
from profrun.analysis.trace.steps import steps
from profrun.analysis.trace.timeline_slices import CATEGORIES, Timeline, timeline_slices
from tests.analysis.kit import Row, memory_trace, step


def shown(rows: Sequence[Row], *, most: int | None = None, ranks: int = 1) -> Timeline:
    found = timeline_slices(memory_trace(rows, ranks=ranks), most=most)
    assert found is not None
    return found


def drawn(found: Timeline) -> dict[str, list[tuple[str, int]]]:
    """Of each track: (name, row) of its slices, by row and start."""
    row = 0
    tracks = {}
    for track in found.tracks:
        tracks[track.name] = [
            (found.names[found.name[at]], down)
            for down in range(track.rows)
            for at in range(int(found.rows[row + down]), int(found.rows[row + down + 1]))
        ]
        row += track.rows
    assert row == len(found.rows) - 1
    return tracks


def test_every_slice_is_shown_with_its_launch_and_category() -> None:
    found = shown(
        [
            step(1, 1000, 500),
            ("op", "aten::add", 1010, 40, "main"),
            ("api", "cudaLaunchKernel", 1020, 10, "main"),
            ("kernel", "add", 1200, 100, "stream 7", {"launch": 2}),
            ("memcpy", "Memcpy HtoD", 1300, 0, "stream 7"),
            ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1400, 50, "stream 7"),
            ("op", "enumerate(DataLoader)#_X.__next__", 1100, 20, "main"),
        ]
    )
    assert drawn(found) == {
        "main": [
            ("profrun.step#1", 0),
            ("aten::add", 1),
            ("enumerate(DataLoader)#_X.__next__", 1),
            ("cudaLaunchKernel", 2),
        ],
        "GPU 0 stream 7": [
            ("add", 0),
            ("Memcpy HtoD", 0),
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0),
        ],
    }
    assert found.slice.tolist() == [0, 1, 6, 2, 3, 4, 5]
    assert found.start.tolist() == [0, 10, 100, 20, 200, 300, 400]
    assert found.dur.tolist() == [500, 40, 20, 10, 100, 0, 50]
    assert found.launch.tolist() == [-1, -1, -1, -1, 3, -1, -1]
    assert [CATEGORIES[code] for code in found.category] == [
        "step", "cpu_op", "dataloader", "runtime", "kernel", "memcpy", "comm",
    ]  # fmt: skip
    assert (found.start_ns, found.span_ns, found.total, found.python) == (1000, 500, 7, 0)


def test_gpu_work_is_kept_first_and_the_rest_is_counted() -> None:
    rows: list[Row] = [step(1, 0, 10_000)]
    rows += [("op", f"op{n}", 10 + 60 * n, n + 1, "main") for n in range(40)]
    rows += [("kernel", "k", 5000, 10, "stream 7", {"launch": 1})]
    rows += [("python", "f.py(1): f", 10_000, 0, "autograd")]
    found = shown(rows, most=12)
    assert {*found.names} == {"profrun.step#1", "k", *(f"op{n}" for n in range(30, 40))}  # the longest
    assert (found.total, found.python, len(found)) == (43, 1, 12)
    assert found.launch.tolist() == [-1] * 12  # the launch is not shown
    assert found.names[found.name[-1]] == "k"
    assert len(shown(rows, most=43)) == 43


def test_python_frames_and_copies_of_annotations_have_tracks_of_their_own() -> None:
    found = shown(
        [
            ("python", "a.py(1): f", 0, 100, "main"),
            ("op", "aten::mm", 10, 50, "main"),
            ("python", "a.py(9): g", 20, 5, "main"),
            ("kernel", "k", 70, 5, "stream 7"),
            ("range", "forward", 65, 20, "stream 7"),
        ]
    )
    assert drawn(found) == {
        "main": [("aten::mm", 0)],
        "main: Python frames": [("a.py(1): f", 0), ("a.py(9): g", 1)],
        "GPU 0 stream 7": [("k", 0)],
        "GPU 0 stream 7: annotations": [("forward", 0)],
    }
    assert [track.kind for track in found.tracks] == ["host", "python", "gpu", "annotations"]


@pytest.mark.parametrize("ns", [0, 2**53 + 1, 1_795_312_121_000_000_001])
def test_times_are_exact_far_from_zero(ns: int) -> None:
    found = shown([("op", "a", ns, 3, "main"), ("op", "b", ns + 4, 1, "main")])
    assert (found.start_ns, found.start.tolist(), found.dur.tolist()) == (ns, [0, 4], [3, 1])


def test_the_window_is_the_typical_step_and_the_next() -> None:
    found = shown([step(n, 500 + 1000 * n, dur) for n, dur in enumerate((900, 100, 500, 110, 120))])
    assert found.window == (3000, 4120, "steps 3 and 4 (5 steps are recorded)")
    assert [(one.number, one.start_ns) for one in found.steps] == [(n, 1000 * n) for n in range(5)]
    assert shown([step(1, 0, 10)]).window[2] == "step 1 (1 step is recorded)"
    assert shown([("op", "a", 5, 10, "main")]).window == (0, 10, "the whole recording (it has no steps)")


def test_the_typical_step_is_that_of_the_spread_which_waits_for_the_gpu() -> None:
    """On the host the median is the last step's 150 ns; with its kernel the first step takes 210 ns."""
    rows = [step(n, 1000 * n, dur) for n, dur in enumerate((100, 300, 250, 90, 150))]
    rows += [
        ("api", "cudaLaunchKernel", 10, 10, "main"),
        ("kernel", "k", 110, 100, "stream 7", {"launch": 5}),
    ]
    trace = memory_trace(rows)
    found = timeline_slices(trace)
    spread = step_spread(steps(trace))
    assert found is not None
    assert spread is not None
    assert (spread.typical.step, found.window) == (0, (0, 1300, "steps 0 and 1 (5 steps are recorded)"))


def test_the_typical_step_is_that_of_all_ranks() -> None:
    rows = [step(0, 0, 100, "r0:main"), step(1, 1000, 300, "r0:main"), step(0, 20, 200, "r1:main")]
    assert shown(rows, ranks=2).window == (20, 220, "step 0 (1 step is recorded)")


def test_tracks_of_several_ranks_name_their_rank_host_first() -> None:
    rows = [("kernel", "k", 5, 5, f"r{rank}:stream 7") for rank in (1, 0)]
    found = shown([*rows, ("op", "a", 0, 9, "r0:main"), ("op", "a", 0, 9, "r1:main")], ranks=2)
    names = ["rank 0: main", "GPU 0 (rank 0) stream 7", "rank 1: main", "GPU 1 (rank 1) stream 7"]
    assert [track.name for track in found.tracks] == names
    assert [track.process for track in found.tracks] == [0, 0, 1, 1]
    assert found.processes == ["rank 0, pid 100 on h", "rank 1, pid 101 on h"]


def test_an_empty_trace_has_no_timeline() -> None:
    assert timeline_slices(memory_trace([])) is None
