"""Calls that wait for the GPU, and the lines of the program that make them."""

from __future__ import annotations

from typing import Any

from profrun.analysis.compare.address_join import joined
from profrun.analysis.trace.addresses import addresses
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.waiting_calls import waiting_calls, waiting_lines
from profrun.contract.line_names import Line, line_name
from tests.analysis.kit import memory_trace

LOSS, SAVE = Line("/me/train.py", 9, "train"), Line("/me/train.py", 12, "save")
SYNC = "cudaStreamSynchronize"


def rows(*steps: list[tuple[str, Line | None]], lines: bool = True) -> list[tuple[Any, ...]]:
    """Steps that make these calls from these lines; ranges of lines only with ``lines``."""
    found: list[tuple[Any, ...]] = []
    for number, calls in enumerate(steps):
        start = number * 1000
        found.append(("step", f"ProfilerStep#{number}", start, 900, "main"))
        for place, (name, line) in enumerate(calls):
            at = start + 100 * (place + 1)
            if lines and line is not None:
                found.append(("range", line_name(line), at, 50, "main"))
            found.append(("api", name, at + 10, 20, "main"))
    return found


def test_calls_that_wait_are_found_by_step_and_those_of_the_main_thread_come_first() -> None:
    one = [*rows([(SYNC, None), ("cudaLaunchKernel", None), ("cudaMemcpy", None)], lines=False)]
    one += [("api", "cudaEventSynchronize", 50, 5, "other"), ("api", SYNC, 950, 5, "main")]
    (found,) = waiting_calls(frame(memory_trace(one)))
    assert (found.rank, found.names) == (0, (SYNC, "cudaMemcpy", "cudaEventSynchronize"))


def test_the_lines_of_a_mapping() -> None:
    trace = memory_trace(rows([(SYNC, LOSS), (SYNC, None), ("cudaMemcpy", SAVE)]))
    source = frame(trace)
    assert [(source.text(call), line) for call, line in waiting_lines(trace).items()] == [
        (SYNC, LOSS),
        ("cudaMemcpy", SAVE),
    ]


def test_a_trial_beside_the_mapping_has_the_lines_of_equal_steps() -> None:
    """Steps 0 and 1 of the mapping disagree about the second call; step 1 of the trial is of no such kind."""
    mapping = memory_trace(rows([(SYNC, LOSS), (SYNC, SAVE)], [(SYNC, LOSS), (SYNC, LOSS)]))
    assert addresses(mapping) is not None
    trial = memory_trace(rows([(SYNC, None), (SYNC, None)], [(SYNC, None)], lines=False))
    found = joined(trial, mapping)
    assert found is not None
    first = waiting_calls(frame(trial))[0].ids[0]
    assert found.waits == {int(first): LOSS}
