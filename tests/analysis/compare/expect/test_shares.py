"""Claims about what the GPU achieved: shares of its time and of its peaks, and bytes by counters."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.compare.expect import judge, tell
from profrun.jobs.expectation import Achieved, DramBytes, Expectation
from profrun.traces.trace import Trace
from tests.analysis.compare.expect.steps import TWO, ask
from tests.analysis.kit import memory_trace, step
from tests.analysis.rules.cases import grid

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


WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"


def occupied(*percent: float, collector: str = "ncu", durs: tuple[int, ...] = (US, 3 * US)) -> Trace:
    """Two kernels whose estimated occupancy is 100 %, with the counter where ``percent`` has it."""
    shape = grid(1024, est_occupancy=1.0)
    rows: list[Any] = [
        ("kernel", "k", number * 10 * US, dur, "stream 7", shape) for number, dur in enumerate(durs)
    ]
    metrics = [
        {"slice": number, "name": WARPS, "value": value, "unit": "%"} for number, value in enumerate(percent)
    ]
    job = {"variant": "a", "collector": collector}
    meta = {"collector": collector, "replayed": collector == "ncu", "job": job}
    return memory_trace(rows, meta=meta, side={"metrics": metrics})


def test_a_replayed_trace_without_the_counter_tells_no_occupancy() -> None:
    (check,) = ask(occupied(), {"achieved": Achieved(occupancy=(0.5, 1.0))})
    assert check.answer.passed is None
    assert WARPS in check.answer.why
    assert WARPS in check.answer.fix
    (check,) = ask(occupied(20.0), {"achieved": Achieved(occupancy=(0.5, 1.0))})
    assert check.answer.passed is None  # the kernel that has it is a quarter of the time


def test_the_measured_occupancy_is_weighted_by_time() -> None:
    """20 % for 1 us and 40 % for 3 us: 35 %."""
    (check,) = ask(occupied(20.0, 40.0), {"achieved": Achieved(occupancy=(0.3, 0.4))})
    assert check.answer.passed is True
    assert check.answer.value == pytest.approx(0.35)
    assert check.answer.found == f"measured occupancy 35.0 % ({WARPS})"


@pytest.mark.parametrize(
    ("percent", "state", "found"),
    [((), "refuted", "estimated occupancy 100.0 %"), ((20.0, 40.0), "held", "measured occupancy 35.0 %")],
)
def test_a_measured_occupancy_goes_before_an_estimate(
    percent: tuple[float, ...], state: str, found: str
) -> None:
    claims = [Expectation(variant=("a",), achieved=Achieved(occupancy=(0.0, 0.5)))]
    told = [tell(occupied(collector="torch"), claims), tell(occupied(*percent), claims)]
    (result,) = judge(claims, told, ["a"])
    assert result.state == state
    assert result.checks[0].found.startswith(found)


def test_a_replayed_trace_tells_no_sm_efficiency() -> None:
    """Its kernels ran one by one: the window is not the program's. A timeline only estimates it."""
    wanted = {"achieved": Achieved(sm_efficiency=(0.0, 1.0))}
    (check,) = ask(occupied(20.0, 40.0), wanted)
    assert check.answer.passed is None
    (check,) = ask(occupied(collector="torch"), wanted)
    assert check.answer.found.startswith("estimated SM efficiency of the recorded window ")
