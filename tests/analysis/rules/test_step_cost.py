"""What a step costs, the bounds of a gain, and the severity that follows from its share."""

from __future__ import annotations

import pytest

from profrun.analysis.rules.step_cost import Basis, Gain, Side, StepCost, UnprofiledStep, severity_of
from profrun.contract.denominator import RECORDING, RUN, STEP, Denominator
from profrun.contract.finding import Severity

US = 1000
TWIN = UnprofiledStep(ns=40 * US, low_ns=39 * US, high_ns=41 * US, trials=3, steps=15, clock="wall")


def cost(work: float, *, recorded: float = 100 * US, twin: UnprofiledStep | None = None) -> StepCost:
    return StepCost(recorded, work, work, STEP, twin)


def gain(ns: int, of: int, basis: Basis = "unprofiled", side: Side = "gpu") -> Gain:
    return Gain(ns, of, basis, side, ns)


@pytest.mark.parametrize(
    ("share", "basis", "side", "severity"),
    [
        (0.049, "unprofiled", "host", "info"),
        (0.05, "unprofiled", "host", "warning"),
        (0.299, "unprofiled", "gpu", "warning"),
        (0.30, "unprofiled", "host", "critical"),
        (0.30, "profiled", "gpu", "critical"),
        (0.99, "profiled", "host", "warning"),  # part of it may be the profiler's
        (0.30, "recording", "gpu", "critical"),
        (0.99, "recording", "host", "info"),  # set-up is in it
    ],
)
def test_severity_follows_from_the_share(share: float, basis: Basis, side: Side, severity: Severity) -> None:
    assert severity_of(gain(round(share * 1000), 1000, basis, side)) == severity


def test_the_step_time_is_the_unprofiled_one_where_it_is_known() -> None:
    assert (cost(20 * US).step_ns, cost(20 * US).basis) == (100 * US, "profiled")
    known = cost(20 * US, twin=TWIN)
    assert (known.step_ns, known.basis, known.busy_share) == (40 * US, "unprofiled", 0.5)
    without_steps = StepCost(100 * US, 20 * US, 20 * US, RECORDING, TWIN)
    assert (without_steps.step_ns, without_steps.basis) == (100 * US, "recording")


def test_host_time_gains_no_more_than_the_gpu_is_idle() -> None:
    """A GPU that works 36 of 40 us leaves 4 us, whatever the host does under a profiler."""
    busy = cost(36 * US, twin=TWIN)
    assert busy.host_gain(60 * US).ns == 4 * US
    assert severity_of(busy.host_gain(60 * US)) == "warning"
    assert cost(36 * US).host_gain(60 * US).ns == 60 * US
    assert busy.host_gain(60 * US, beside_ns=6 * US).ns == 10 * US
    assert cost(50 * US, twin=TWIN).host_gain(9).ns == 0  # more work than the step is long: no idle time


def test_other_host_work_leaves_the_rest_of_the_step() -> None:
    """60 us of it as recorded are at least 20 us without a profiler."""
    assert cost(0).left_by(60 * US) == 40 * US
    assert cost(0, twin=TWIN).left_by(60 * US) == 20 * US
    assert cost(0, twin=TWIN).left_by(150 * US) == 0


def test_a_step_is_no_shorter_than_the_work_that_remains() -> None:
    """Work of 80 us; without a profiler a step takes 40 us, because copies are faster then."""
    assert cost(80 * US).gpu_gain(95 * US, 50 * US).ns == 70 * US
    assert cost(80 * US).gpu_gain(45 * US, 50 * US).ns == 45 * US
    assert cost(80 * US, twin=TWIN).gpu_gain(75 * US, 75 * US).ns == round(37.5 * US)  # 5 us take 2.5 us
    assert cost(80 * US, twin=TWIN).gpu_gain(10 * US, 10 * US).ns == 5 * US


def test_no_gain_is_larger_than_the_step_or_negative() -> None:
    assert cost(0, twin=TWIN).host_gain(900 * US).ns == 40 * US
    assert cost(0).gpu_gain(-5.0, 0.0).ns == 0
    assert cost(0).gpu_gain(900 * US, 1.0).ns == 100 * US
    assert gain(0, 0).share == 0.0


@pytest.mark.parametrize(
    ("work", "twin", "host"),
    [(33 * US, None, True), (34 * US, None, False), (35 * US, TWIN, True), (36 * US, TWIN, False)],
)
def test_who_sets_the_pace(work: int, twin: UnprofiledStep | None, host: bool) -> None:
    """A recorded step of 100 us, or one of 40 us without a profiler."""
    assert cost(work, twin=twin).host_sets_pace is host


def test_the_sentence() -> None:
    assert gain(3_100_000, 39_000_000).text == "at most 3.1 ms of 39 ms per step"
    profiled = gain(3_100_000, 39_000_000, "profiled", "host")
    assert profiled.text == "at most 3.1 ms of 39 ms per step (the profiler's cost included)"
    for of, text in (
        (RECORDING, "of the recording"),
        (RUN, "of the run"),
        (Denominator("run", 10 * 10**9), "of the first 10 s of the run"),
    ):
        whole = Gain(3_100_000, 39_000_000, "profiled", "gpu", 3_100_000, of)
        assert whole.text == f"at most 3.1 ms of 39 ms {text}"
    more = Gain(3_100_000, 39_000_000, "unprofiled", "gpu", 9_000_000)
    assert more.text == (
        "at most 3.1 ms of 39 ms per step (9 ms less work, but the step does not wait for all of it)"
    )
