"""Which slices a timeline shows, and in which rows: a small trace, the question, the rows."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.analysis.trace.timeline_slices import KINDS, MOST_ROWS, Timeline, timeline_slices
from tests.analysis.kit import Row, memory_trace, step


def shown(rows: Sequence[Row], *, most: int = 4000, ranks: int = 1) -> Timeline:
    found = timeline_slices(memory_trace(rows, ranks=ranks), most=most)
    assert found is not None
    return found


def test_gpu_work_is_kept_first_and_the_rest_is_counted() -> None:
    rows: list[Row] = [step(1, 0, 10_000)]
    rows += [("op", f"op{n}", 10 + 60 * n, n + 1, "main") for n in range(40)]
    rows += [("kernel", "k", 5000, 10, "stream 7", {"launch": 1})]
    rows += [("python", "f.py(1): f", 0, 10_000, "autograd")]
    found, everything = shown(rows, most=12), shown(rows)
    kept = [found.names[one.name] for one in found.slices]
    assert kept[0] == "profrun.step#1"
    assert "k" in kept
    assert {*kept} == {"profrun.step#1", "k", *(f"op{n}" for n in range(30, 40))}  # the longest
    assert (found.total, found.python, len(everything.slices)) == (43, 1, 42)
    kernel = next(one for one in everything.slices if KINDS[one.kind] == "kernel")
    assert kernel[:4] == (1, 0, 5000, 10)
    assert everything.names[everything.slices[kernel.launch].name] == "op0"
    assert found.slices[kept.index("k")].launch == -1  # its launch is not shown


def test_slices_that_overlap_on_a_stream_have_rows_of_their_own() -> None:
    found = shown(
        [
            ("kernel", "a", 0, 100, "stream 7"),
            ("kernel", "b", 50, 100, "stream 7"),
            ("kernel", "c", 100, 10, "stream 7"),
        ]
    )
    assert [one.row for one in found.slices] == [0, 1, 0]
    assert found.tracks == [("GPU 0 stream 7", 2)]
    assert found.label == "the whole recording (it has no steps)"


def test_host_slices_lie_by_depth_and_the_deepest_share_a_row() -> None:
    deep = MOST_ROWS + 3
    found = shown([("op", f"op{n}", n, 1000 - 2 * n, "main") for n in range(deep)])
    assert [one.row for one in found.slices] == [min(n, MOST_ROWS - 1) for n in range(deep)]
    assert found.tracks[0].rows == MOST_ROWS


def test_the_window_is_the_step_of_median_duration_and_the_next() -> None:
    found = shown([step(n, 1000 * n, dur) for n, dur in enumerate((900, 100, 500, 110, 120))])
    assert (found.label, found.start_ns, found.span_ns) == ("steps 3 and 4 of 5 recorded", 3000, 1120)
    assert [one.start_ns for one in found.slices] == [0, 1000]
    assert shown([step(1, 0, 10)]).label == "step 1 of 1 recorded"


def test_tracks_of_several_ranks_name_their_rank_host_first() -> None:
    rows = [("kernel", "k", 5, 5, f"r{rank}:stream 7") for rank in (1, 0)]
    found = shown([*rows, ("op", "a", 0, 9, "r0:main"), ("op", "a", 0, 9, "r1:main")], ranks=2)
    names = [track.name for track in found.tracks]
    assert names == ["rank 0: main", "GPU 0 (rank 0) stream 7", "rank 1: main", "GPU 1 (rank 1) stream 7"]
    assert ["GPU" in name for name in names] == [False, True, False, True]


def test_an_empty_trace_has_no_timeline() -> None:
    assert timeline_slices(memory_trace([])) is None
