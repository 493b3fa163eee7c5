"""Claims about what the GPU achieved: shares of its time and of its peaks, and bytes by counters."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.compare.expect import judge, tell
from profrun.jobs.expectation import Achieved, DramBytes, Expectation
from profrun.traces.trace import Trace
from tests.analysis.compare.expect.steps import TWO, ask
from tests.analysis.kit import memory_trace, step

US = 1000


def test_utilization_is_that_of_the_summary() -> None:
    """Two steps of 10 ms and 10 ms between them; kernels run 5 ms in each step: 10 of 30 ms."""
    (check,) = ask(memory_trace(TWO), {"achieved": Achieved(utilization=(0.3, 0.4))})
    assert check.answer.passed is True
    assert check.answer.value == pytest.approx(1 / 3)
    assert check.answer.found == "utilization of the recorded window 33.3 %"
    (check,) = ask(memory_trace(TWO), {"achieved": Achieved(utilization=(0.9, 1.0))})
    assert check.answer.passed is False


def copy_of(dur: int) -> Trace:
    """aten::mul of two tensors of 2**20 floats: 12 MiB go through memory in ``dur`` ns."""
    sizes = "[[1048576], [1048576]]"
    op = {"ops.shapes": sizes, "ops.dtypes": '["float", "float"]'}
    return memory_trace(
        [
            step(0, 0, 100 * US),
            ("op", "aten::mul", 10, 500, "main", op),
            ("api", "cudaLaunchKernel", 20, 10, "main"),
            ("kernel", "vectorized_elementwise_kernel", 2 * US, dur, "stream 7", {"launch": 2}),
        ]
    )


def test_the_memory_share_is_bytes_over_time_over_the_peak() -> None:
    """3 x 4 MiB in 4 us are 3146 GB/s, and the peak of an H200 is 4800 GB/s (its data sheet)."""
    (check,) = ask(copy_of(4 * US), {"achieved": Achieved(memory=(0.6, 0.7))})
    assert check.answer.passed is True
    assert check.answer.value == pytest.approx(3 * 2**22 / 4000 / 4800)
    assert check.answer.found == "65.5 % of the memory's peak (4800 GB/s), each input and output once"


def test_without_shapes_the_memory_share_is_not_known() -> None:
    (check,) = ask(memory_trace(TWO), {"achieved": Achieved(memory=(0.6, 0.7))})
    assert check.answer.passed is None
    assert "collect `counters`" in check.answer.why


def counted(*sizes: int, name: str = "dram__bytes.sum", variant: str = "a") -> Trace:
    """Kernels of 1 us each that ncu counted the bytes of."""
    rows: list[Any] = [("kernel", "k", number * US, US, "stream 7") for number in range(len(sizes))]
    metrics = [
        {"slice": number, "name": name, "value": float(size), "unit": "byte"}
        for number, size in enumerate(sizes)
    ]
    meta = {"collector": "ncu", "replayed": True, "job": {"variant": variant, "collector": "ncu"}}
    return memory_trace(rows, meta=meta, side={"metrics": metrics})


def test_bytes_are_those_of_all_kernels_per_step() -> None:
    """6 MB in two steps: 3 MB per step."""
    claims = [
        Expectation(variant=("a",), bytes=DramBytes(below=4e6)),
        Expectation(variant=("a",), bytes=DramBytes(below=2e6)),
        Expectation(variant=("a",), bytes=DramBytes(to="b", between=(0.4, 0.6))),
        Expectation(variant=("a",), bytes=DramBytes(to="c", below=1.0)),
        Expectation(variant=("a",), phase="decode", bytes=DramBytes(below=1.0)),
    ]
    told = [
        tell(counted(1_000_000, 2_000_000, 3_000_000), claims, steps=2),
        tell(counted(6_000_000, variant="b"), claims, steps=1),
        tell(counted(6_000_000, name="other", variant="c"), claims, steps=1),
    ]
    results = judge(claims, told, ["a", "b", "c"])
    assert [one.state for one in results] == ["held", "refuted", "held", "not checked", "not checked"]
    first, _, ratio, uncounted, phase = (one.checks[0] for one in results)
    assert (first.value, first.unit, first.found) == (3e6, "byte", "2.861 MiB per step")
    assert (ratio.value, ratio.unit) == (0.5, "ratio")
    assert uncounted.why == "no counter dram__bytes.sum was recorded"
    assert uncounted.fix == "collect `counters` with the metric dram__bytes.sum; docs/job-spec.md shows how"
    assert phase.why == "hardware counters know no ranges, so that they cannot be of a phase"


def test_bytes_per_step_need_the_number_of_steps() -> None:
    claim = Expectation(bytes=DramBytes(below=1e9))
    (result,) = judge([claim], [tell(counted(5), [claim])], ["a"])
    assert result.checks[0].why == "it is not known how many steps these counters are of"


def test_the_memory_share_by_counters() -> None:
    """2.4 MB in 1 us are 2400 GB/s: half of the peak."""
    (check,) = ask(counted(2_400_000), {"achieved": Achieved(memory=(0.4, 0.6))})
    assert check.answer.passed is True
    assert check.answer.value == pytest.approx(0.5)
