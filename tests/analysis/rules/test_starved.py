"""A run without steps: its set-up is told as such, and is no time that the host costs a loop."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.analysis.rules.diagnose import RuleFinding, UnprofiledStep, diagnose
from profrun.contract.denominator import RUN, Denominator
from tests.analysis.kit import Row, memory_trace, run

MS = 1_000_000
ADD, MM = "add_kernel", "gemm_kernel"


def program(*, loops: int = 20) -> list[Row]:
    """40 ms of set-up; a gemm, whose library loads for 30 ms; then a gemm and an add every 2 ms, 1 ms busy.

    The last gap of the run, 10 ms, is its end. The GPU waits for 1 ms in each turn of the loop.
    """
    rows: list[Row] = []

    def launch(name: str, ts: int, dur: int) -> None:
        rows.append(("op", f"aten::{name}", ts - MS // 10, MS // 20, "main"))
        rows.append(("api", "cudaLaunchKernel", ts - MS // 20, MS // 50, "main"))
        rows.append(("kernel", name, ts, dur, "stream 7", {"launch": len(rows) - 1}))

    launch(ADD, 40 * MS, MS)
    launch(MM, 71 * MS, MS)
    for turn in range(loops):
        launch(MM, (73 + 2 * turn) * MS, MS // 2)
        launch(ADD, (73 + 2 * turn) * MS + MS // 2, MS // 2)
    end = (73 + 2 * loops) * MS
    return [*rows, run(0, end + 9 * MS)]


def found(rows: Sequence[Row], unprofiled: UnprofiledStep | None = None) -> dict[str, RuleFinding]:
    return {one.code: one for one in diagnose(memory_trace(rows), unprofiled=unprofiled)}


def test_set_up_is_a_finding_and_no_loss_of_the_loop() -> None:
    """Of 122 ms the run sets up for 40 + 30 + 10 ms, and its loop waits for 20 times 1 ms."""
    every = found(program())
    set_up = every["set-up"]
    assert set_up.evidence["set_up_ns"] == 80 * MS
    assert [(row.name, row.total_ns) for row in set_up.rows] == [
        ("before the first GPU work", 40 * MS),
        (f"before the first {MM}", 30 * MS),
        ("after the last GPU work", 10 * MS),
    ]
    assert set_up.gain is None
    assert set_up.severity == "info"
    assert every["overhead-bound"].gain_ns == 20 * MS
    assert every["overhead-bound"].step_ns == 122 * MS


def test_numbers_are_of_the_run() -> None:
    every = found(program(), UnprofiledStep(100 * MS, 100 * MS, 100 * MS, 1, 1, "wall", denominator=RUN))
    bound = every["overhead-bound"]
    assert bound.denominator == RUN
    assert bound.what.startswith(
        "the run takes 100 ms without a profiler (122 ms with it) for 22 ms of GPU work"
    )
    assert bound.extent == "42 launches in the run"
    assert bound.gain is not None
    assert bound.gain.text == "at most 20 ms of 100 ms of the run"
    assert not [one for one in every.values() if "per step" in one.what or "step" in one.extent]


def test_one_launch_is_no_plural() -> None:
    """A step of 100 us with one kernel of 10 us."""
    rows: list[Row] = []
    for start in (0, 100_000, 200_000):
        rows.append(("api", "cudaLaunchKernel", start + 80_000, 2_000, "main"))
        rows.append(("kernel", ADD, start + 85_000, 10_000, "stream 7", {"launch": len(rows) - 1}))
        rows.append(("step", f"ProfilerStep#{start // 100_000}", start, 100_000, "main"))
    assert found(rows)["overhead-bound"].extent == "1 launch per step"


def test_a_cut_recording_is_no_time_of_the_run() -> None:
    """A run of 10 s of which 122 ms were recorded: no gain is a part of the 10 s."""
    whole = UnprofiledStep(10_000 * MS, 10_000 * MS, 10_000 * MS, 1, 1, "wall", denominator=RUN)
    trace = memory_trace(program(), meta={"job": {"cut": True}})
    every = {one.code: one for one in diagnose(trace, unprofiled=whole)}
    bound = every["overhead-bound"]
    assert bound.denominator == Denominator("run", 122 * MS)
    assert (bound.step_ns, bound.basis) == (122 * MS, "profiled")
    assert bound.gain is not None
    assert "of 122 ms of the first 122 ms of the run" in bound.gain.text
    assert "slower-twin" not in every


def test_what_needs_several_steps_is_not_checked() -> None:
    """One allocation, one copy and one compilation: usual at the start of any program."""
    start: list[Row] = [
        ("api", "cudaMalloc", MS, 30 * MS, "main"),
        ("op", "_compile.compile_inner", 32 * MS, 5 * MS, "main"),
    ]
    codes = set(found([*program(), *start]))
    assert codes & {"allocator-churn", "recompilation", "cold-start", "dead-window"} == set()
