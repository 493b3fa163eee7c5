"""Why no clock fits: each reason planted into the same program."""

from __future__ import annotations

import pytest

from profrun.traces.causality.judge import judge
from profrun.traces.causality.recording import Recording
from tests.traces.causality.kit import Row, launches, recording, wait


def program(stream: str = "stream 7", start: int = 0, gpu: int = 0, count: int = 30) -> list[Row]:
    """Launches every 100 us, kernels of 20 us, each followed by a wait; rows count their launches from 0."""
    rows: list[Row] = []
    for number in range(count):
        at = start + 100 * number
        kernel = launches((at, at + 8, at + 28), stream=stream, gpu=gpu)
        rows += [kernel[0], (*kernel[1][:5], len(rows)), wait(at + 5, at + 33)]
    return rows


def after(rows: list[Row], more: list[Row]) -> list[Row]:
    """Rows of another program behind some rows."""
    return rows + [(*row[:5], row[5] + len(rows) if row[5] >= 0 else -1) for row in more]


def reasons(rec: Recording) -> tuple[set[str], set[str]]:
    """Verdicts and codes."""
    found = judge(rec)
    return {clock.verdict for clock in found.clocks}, {one.code for one in found.contradictions}


def test_the_program_is_sound() -> None:
    assert reasons(recording(program())) == ({"consistent"}, set())


@pytest.mark.parametrize("gpu", [-5000, 5000])
def test_a_clock_that_jumps(gpu: int) -> None:
    rows = after(program(), program(start=3000, gpu=gpu))
    found = judge(recording(rows))
    assert [clock.verdict for clock in found.clocks] == ["contradiction"]
    (jump,) = [one for one in found.contradictions if one.code == "clock_jump"]
    assert (jump.count, jump.total) == (30, 60)
    assert jump.amount is not None
    assert abs(jump.amount + gpu * 1000) < 15_000


@pytest.mark.parametrize("gpu", [-5000, 5000])
def test_one_stream_on_a_clock_of_its_own(gpu: int) -> None:
    """The second stream launches in the pauses of the first."""
    other = [row for row in program("stream 9", start=50, gpu=gpu, count=12) if "Synchronize" not in row[1]]
    other = [(*row[:5], 2 * (number // 2) if row[0] == "kernel" else -1) for number, row in enumerate(other)]
    verdicts, codes = reasons(recording(after(program(), other)))
    assert verdicts == {"consistent"}
    assert "stream_displaced" in codes


@pytest.mark.parametrize("factor", [1000, 0.001])
def test_gpu_times_in_another_unit(factor: float) -> None:
    rows = [
        (*row[:2], int(row[2] * factor), int(row[3] * factor), *row[4:]) if row[0] == "kernel" else row
        for row in program()
    ]
    found = judge(recording(rows))
    assert [clock.verdict for clock in found.clocks] == ["contradiction"]
    assert [one.amount for one in found.contradictions if one.code == "gpu_time_unit"] == [factor]


def test_work_that_comes_long_after_all_launches() -> None:
    launched = [row for row in program(gpu=2_000_000) if "Synchronize" not in row[1]]
    launched = [
        (*row[:5], 2 * (number // 2) if row[0] == "kernel" else -1) for number, row in enumerate(launched)
    ]
    assert reasons(recording(launched)) == ({"consistent"}, {"gpu_work_late"})
    assert reasons(recording(program(gpu=2_000_000)))[0] == {"offset"}  # waits bound it from above
