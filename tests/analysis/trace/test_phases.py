"""Ranges of one name as the steps of a trace: every number can be asked of a phase."""

from __future__ import annotations

from typing import Any

from profrun.analysis.compare.expect import judge, tell
from profrun.analysis.compare.reading import read_trial
from profrun.analysis.trace.phases import phase
from profrun.analysis.trace.steps import steps
from profrun.jobs.expectation import Expectation, Ratio
from tests.analysis.kit import memory_trace, step

US = 1000


def generation(start: int, first: int) -> list[Any]:
    """A step of 100 us: prefill (20 us) and two decodes (30 us each) launch one kernel each, the rest one."""
    rows: list[Any] = [step(start, start * US, 100 * US)]
    parts = (("prefill", 0, 20, "gemm"), ("decode", 20, 30, "gemv"), ("decode", 50, 30, "gemv"))
    for name, at, dur, kernel in (*parts, ("", 90, 0, "sample")):
        begin = start * US + at * US
        if name:
            rows.append(("range", name, begin, dur * US, "main"))
        rows.append(("api", "cudaLaunchKernel", begin + 10, 100, "main"))
        launch = {"launch": first + len(rows) - 1}
        rows.append(("kernel", kernel, begin + 1000, 5 * US, "stream 7", launch))
    return rows


ONE = generation(0, 0)
TWO = [*ONE, *generation(200, len(ONE))]


def test_each_range_of_the_name_is_a_step() -> None:
    decode = phase(memory_trace(TWO), "decode")
    assert decode is not None
    assert [(one.step, one.dur_ns, one.kernels) for one in steps(decode)] == [
        (0, 30 * US, 1),
        (1, 30 * US, 1),
        (2, 30 * US, 1),
        (3, 30 * US, 1),
    ]
    trial = read_trial(decode)
    assert {group.name: group.calls for group in trial.kernel_groups} == {"gemv": 4}


def test_the_trace_itself_stays_as_it_is() -> None:
    trace = memory_trace(TWO)
    before = steps(trace)
    phase(trace, "*")
    assert steps(trace) == before
    assert [one.kernels for one in before] == [4, 4]


def test_a_name_that_no_range_has_is_no_phase() -> None:
    assert phase(memory_trace(TWO), "training") is None


def test_ranges_outside_of_the_recorded_steps_do_not_count() -> None:
    """The second step is outside of the schedule's window, and so are its phases."""
    windows = {"extra": {"windows": {"0": "active", "200": "outside"}}}
    found = phase(memory_trace(TWO, meta=windows), "prefill")
    assert found is not None
    assert len(steps(found)) == 1


def test_a_range_round_several_steps_counts() -> None:
    """Each decoded token is a step, and the range is round them all."""
    rows = [("range", "generate", 0, 100, "main"), step(0, 10, 20), step(1, 40, 20)]
    found = phase(memory_trace(rows), "generate")
    assert found is not None
    assert [one.dur_ns for one in steps(found)] == [100]


def test_claims_about_a_phase() -> None:
    meta = {"job": {"variant": "a", "collector": "torch", "trial": "a1"}}
    claims = [
        Expectation(phase="decode", kernels_per_step=(1, 1), present=("gemv",), absent=("gemm",)),
        Expectation(phase="prefill", counts={"gemm": (1, 1)}),
        Expectation(counts={"gemv": (2, 2)}),
        Expectation(phase="decode", ratio=Ratio(to="b", above=1.0)),
    ]
    results = judge(claims, [tell(memory_trace(TWO, meta=meta), claims)], ["a"])
    assert [one.state for one in results] == ["held", "held", "held", "not checked"]
    assert results[3].checks[0].why == "no such trace of b"


def test_the_last_range_of_whole_steps_is_whole() -> None:
    """The last step of a recording may be cut off; the last decode of a whole step just launched less."""
    rows = [
        step(0, 0, 1000),
        *(("range", "decode", at, 100, "main") for at in (0, 200)),
        *(("api", "cudaLaunchKernel", at, 5, "main") for at in (10, 20, 210)),
        *(("kernel", "k", 40 * at, 10, "stream 7", {"launch": at}) for at in (3, 4, 5)),
    ]
    found = phase(memory_trace(rows), "decode")
    assert found is not None
    assert [(one.kernels, one.edge) for one in read_trial(found).samples] == [(2, False), (1, False)]
