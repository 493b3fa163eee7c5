"""Which steps a diagnosis judges: not a first one that the start of the recording made longer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.rules.judged_steps import JudgedSteps, judged_steps
from tests.analysis.kit import Row, memory_trace, step
from tests.analysis.rules.cases import ADD, LAUNCH, NVJET, US, gpu


def judged(rows: Sequence[Row], ranks: int = 1) -> JudgedSteps:
    return judged_steps(memory_trace(rows, ranks=ranks))


def numbers(found: JudgedSteps) -> list[int]:
    return [one.step for one in found.steps]


def one_launch(step_start: int, at: int, work: int, number: int) -> list[Row]:
    """A launch at a time of a step, and its kernel."""
    return [
        ("api", LAUNCH, step_start + at, US, "main"),
        ("kernel", NVJET, step_start + at + US, work, "stream 7", {"launch": number}),
    ]


def test_a_cold_first_step_is_left_out() -> None:
    rows = [step(0, 0, 300 * US), step(1, 300 * US, 100 * US), step(2, 400 * US, 100 * US)]
    rows += [
        row
        for place, at in enumerate((0, 300 * US, 400 * US))
        for row in one_launch(at, US, US, 3 + 2 * place)
    ]
    found = judged(rows)
    assert numbers(found) == [1, 2]
    assert [(one.step.step, one.why, one.usual_ns, one.judged) for one in found.left_out] == [
        (0, "cold", 100 * US, False)
    ]
    assert found.count == 2
    assert [starts.tolist() for starts, _ in found.spans.values()] == [[300 * US, 400 * US]]


def test_two_steps_tell_nothing_about_a_cold_one() -> None:
    rows = [step(0, 0, 300 * US), step(1, 300 * US, 100 * US)]
    rows += one_launch(0, US, US, 2) + one_launch(300 * US, US, US, 4)
    assert numbers(judged(rows)) == [0, 1]


def test_a_first_step_with_a_dead_begin_is_left_out_unless_it_is_the_only_one() -> None:
    one = [step(0, 0, 200 * US), *one_launch(0, 80 * US, US, 1)]
    alone = judged(one)
    assert numbers(alone) == [0]
    assert [(two.why, two.gap_ns, two.judged) for two in alone.left_out] == [("dead", 80 * US, True)]
    more = [*one, step(1, 200 * US, 200 * US), *one_launch(200 * US, US, US, 4)]
    assert numbers(judged(more)) == [1]


def test_a_fetch_of_a_batch_at_the_begin_is_no_dead_time() -> None:
    """Tools that record ranges only name the fetch by a range."""
    fetch = ("range", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", US, 150 * US, "main")
    rows = [step(0, 0, 200 * US), fetch, *one_launch(0, 180 * US, US, 2), step(1, 200 * US, 200 * US)]
    assert judged(rows).left_out == []


@pytest.mark.parametrize(
    ("calls", "gaps"),
    [
        (["cudaStreamIsCapturing", "cudaEventRecordWithFlags"], [80 * US]),
        (["cudaEventCreateWithFlags_v5000", "cudaEventRecord_v3020", "cudaEventDestroy"], [80 * US]),
        (["hipEventQuery", "hipEventElapsedTime", "hipEventRecord"], [80 * US]),
        (["cudaEventRecord", "cudaEventSynchronize"], []),  # this one waits
        (["cudaMemsetAsync"], []),
    ],
)
def test_an_event_at_the_begin_is_no_work(calls: list[str], gaps: list[int]) -> None:
    """The hook records one at the start of each step; the first launch comes after 80 us of 200."""
    early: list[Row] = [("api", name, (10 + place) * US, US, "main") for place, name in enumerate(calls)]
    rows = [step(0, 0, 200 * US), *early, *one_launch(0, 80 * US, US, 1 + len(early))]
    assert [one.gap_ns for one in judged(rows).left_out] == gaps


@pytest.mark.parametrize(("usual", "reasons"), [(1, ["dead"]), (40, ["dead"]), (80, [])])
def test_a_begin_that_the_other_steps_have_as_well_is_the_program_s(usual: int, reasons: list[str]) -> None:
    """80 us of the first step pass before its first launch, and so many us of the two others."""
    rows = [step(number, number * 200 * US, 200 * US) for number in range(3)]
    for number, at in enumerate((80, usual, usual)):
        rows += one_launch(number * 200 * US, at * US, US, len(rows))
    assert [one.why for one in judged(rows).left_out] == reasons


def test_a_first_step_with_events_alone_has_no_begin() -> None:
    rows: list[Row] = [step(0, 0, 200 * US), ("api", "cudaEventRecord", 80 * US, US, "main")]
    assert judged(rows).left_out == []


def test_each_rank_has_a_first_step_of_its_own() -> None:
    rows: list[Row] = []
    for rank, first in ((0, 100), (1, 400)):
        track = f"r{rank}:main"
        rows += [step(0, 0, first, track), step(1, first, 100, track), step(2, first + 100, 100, track)]
    found = judged(rows, ranks=2)
    assert [(one.rank, one.step) for one in found.steps] == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)]


def test_without_steps_the_processes_with_a_gpu_are_judged_as_a_whole() -> None:
    rows: list[Row] = [
        ("op", "a", 0, 100, "r0:main"),
        ("api", LAUNCH, 10, 5, "r0:main"),
        ("kernel", ADD, 20, 50, "r0:stream 7", {"launch": 1}),
        ("op", "b", 0, 900, "r1:main"),
    ]
    found = judged(rows, ranks=2)
    assert found.steps == []
    assert {process: (starts.tolist(), ends.tolist()) for process, (starts, ends) in found.spans.items()} == {
        0: ([0], [100])
    }
    assert found.count == 1


def test_what_the_start_of_the_recording_causes_is_in_no_share() -> None:
    """The first step takes 10 times as long, with an idle GPU; in the others it works all the time."""
    rows = [step(0, 0, 1000 * US), *one_launch(0, 900 * US, 90 * US, 1)]
    for number in (1, 2, 3):
        start = 1000 * US + (number - 1) * 100 * US
        rows.append(step(number, start, 100 * US))
        rows += one_launch(start, 0, 97 * US, len(rows))
    context = Context(memory_trace(rows))
    assert context.gpu_busy_share is not None
    assert context.gpu_busy_share > 0.9
    found = {one.code for one in diagnose(memory_trace(rows))}
    assert {"cold-start", "dead-window"} <= found
    assert not {"overhead-bound", "low-utilization"} & found


def test_rates_are_of_the_judged_steps() -> None:
    rows = [step(0, -1000 * US, 1000 * US), *gpu([(NVJET, 10 * US, 60 * US)])]
    context = Context(memory_trace(rows))
    assert (context.step_count, len(context.step_kernels)) == (3, 3)
