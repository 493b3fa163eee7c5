"""Claims between variants: the same kernels, and ratios that only an interval can decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare.expect import judge, tell
from profrun.analysis.compare.expect.model import Told
from profrun.jobs.expectation import Expectation, Ratio, SameKernels
from profrun.traces.trace import Trace
from tests.analysis.compare.expect.steps import COMPILED, EAGER, MS, check_of, recorded
from tests.analysis.kit import memory_trace


@pytest.mark.parametrize(
    ("only", "state", "found"),
    [
        (None, "refuted", "gelu_kernel 0 times per step, 1 times in eager and 2 more"),
        (("gemm",), "held", "the same 1 kernel per step"),
        (("*gelu*",), "refuted", "gelu_kernel 0 times per step, 1 times in eager and 1 more"),
    ],
)
def test_the_same_kernels(only: tuple[str, ...] | None, state: str, found: str) -> None:
    claim = Expectation(variant=("compiled",), same_kernels=SameKernels(as_="eager", only=only))
    result = check_of(claim, recorded("eager", MS), recorded("compiled", MS, COMPILED))
    assert (result.state, result.found) == (state, found)


def test_kernels_that_neither_variant_has_prove_nothing() -> None:
    claim = Expectation(variant=("compiled",), same_kernels=SameKernels(as_="eager", only=("attention",)))
    result = check_of(claim, recorded("eager", MS), recorded("compiled", MS, COMPILED))
    assert (result.state, result.why) == ("not checked", "neither variant launches attention")


def trials(eager: int, compiled: int, count: int = 3) -> list[Trace]:
    """Repeats of both variants with steps of so many ns."""
    return [
        recorded(name, dur, number=number)
        for name, dur in (("eager", eager), ("compiled", compiled))
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("limits", "state"),
    [
        ({"below": 0.6}, "held"),
        ({"between": (0.4, 0.6)}, "held"),
        ({"below": 0.4}, "refuted"),
        ({"above": 1.0}, "refuted"),
        ({"below": 0.5}, "not checked"),  # the interval is about 0.49 to 0.51
    ],
)
def test_the_interval_decides_on_a_ratio(limits: dict[str, Any], state: str) -> None:
    """Steps of 1 ms against 0.5 ms, three trials each."""
    claim = Expectation(variant=("compiled",), ratio=Ratio(to="eager", **limits))
    result = check_of(claim, *trials(MS, MS // 2))
    assert result.state == state
    assert result.ci95 is not None
    low, high = result.ci95
    assert low < 0.5 < high
    assert result.value == pytest.approx(0.5, abs=0.01)
    assert ("reaches over the limits (at most 0.5)" in result.why) is (state == "not checked")


def test_one_trial_has_no_interval() -> None:
    claim = Expectation(variant=("compiled",), ratio=Ratio(to="eager", below=9.0))
    result = check_of(claim, *trials(MS, MS // 2, 1))
    assert result.state == "not checked"
    assert result.value == pytest.approx(0.5, abs=0.01)
    assert result.why == "1 trial per variant has no 95 % interval (at least 2 have)"
    assert result.fix == "run the job with `--repeats 3`"


@pytest.mark.parametrize(("of", "value"), [("kernel_time", 2 / 3), ("gpu_busy", 2 / 3)])
def test_a_ratio_of_another_quantity(of: str, value: float) -> None:
    """Two kernels of 4 us instead of three."""
    claim = Expectation(variant=("compiled",), ratio=Ratio(to="eager", of=of, below=0.9))
    traces = [recorded("eager", MS, number=n) for n in range(2)]
    traces += [recorded("compiled", MS, COMPILED, number=n) for n in range(2)]
    result = check_of(claim, *traces)
    assert result.value == pytest.approx(value)
    assert result.state == "held"


def _with_energy(told: Told, joules: float | None, note: str | None = None) -> Told:
    trials = {phase: replace(one, energy_j=joules, energy_note=note) for phase, one in told.trials.items()}
    return replace(told, trials=trials)


@pytest.mark.parametrize(
    ("joules", "state", "text"),
    [
        ((2.0, 2.01, 1.5, 1.51), "held", "0.751 times"),
        ((2.0, 2.01, 2.0, 2.01), "refuted", "1.000 times"),
        ((2.0, 2.01, 1.5, None), "not checked", "2 s of steady steps; 4 s are needed"),
    ],
)
def test_a_ratio_of_energies(joules: tuple[float | None, ...], state: str, text: str) -> None:
    claim = Expectation(variant=("compiled",), ratio=Ratio(to="eager", of="energy", below=0.9))
    told = [
        _with_energy(tell(trace, [claim]), energy, None if energy else "2 s of steady steps; 4 s are needed")
        for trace, energy in zip(trials(MS, MS // 2, 2), joules, strict=True)
    ]
    (result,) = judge([claim], told, ["eager", "compiled"])
    assert result.checks[0].state == state
    assert text in f"{result.checks[0].found} {result.checks[0].why}"


def test_the_energy_of_a_part_of_a_step_is_not_known() -> None:
    claim = Expectation(variant=("compiled",), phase="MLP", ratio=Ratio(to="eager", of="energy", below=0.9))
    result = check_of(claim, *trials(MS, MS, 2))
    assert (result.state, result.why) == ("not checked", "the energy of a part of a step is not known")


def test_a_ratio_to_a_variant_without_a_trace_is_not_checked() -> None:
    claim = Expectation(variant=("compiled",), ratio=Ratio(to="eager", below=1.0))
    result = check_of(claim, recorded("compiled", MS))
    assert (result.state, result.why) == ("not checked", "no such trace of eager")


@pytest.mark.parametrize("twin", [False, True])
def test_a_phase_of_the_other_variant_counts_though_the_claim_does_not_select_it(*, twin: bool) -> None:
    """The range is 100 us of both steps on one side, and 300 us on the other."""

    def trial(number: int, dur: int, *, other: bool) -> Trace:
        rows: list[Any] = []
        for place in range(3):
            rows.append(("step", f"profrun.step#{place}", place * MS, MS, "main"))
            rows.append(("range", "MLP", place * MS + 10, dur + 100 * number + place, "main"))
        variant = "eager" if twin or not other else "compiled"
        job = {"variant": variant, "collector": "torch", "trial": f"{other}-{number}"}
        return memory_trace(rows, meta={"job": job, "launch_blocking": twin and other})

    claim = Expectation(
        variant=("eager" if twin else "compiled",),
        blocking="on" if twin else None,
        phase="MLP",
        ratio=Ratio(to="eager", of="cpu_time", above=2.5),
    )
    traces = [trial(number, dur, other=dur > 200_000) for number in range(3) for dur in (100_000, 300_000)]
    result = check_of(claim, *traces)
    assert (result.state, round(result.value or 0, 1)) == ("held", 3.0)


def test_an_interval_is_of_the_collector_with_the_most_trials() -> None:
    """Two trials by torch and one by nsys of each variant; nsys comes later in the job."""
    claim = Expectation(variant=("compiled",), ratio=Ratio(to="eager", of="kernel_time", below=0.9))
    traces = [
        recorded(variant, MS, kernels, number=number, collector=collector)
        for collector, count in (("ncu", 3), ("torch", 2), ("nsys", 1))
        for variant, kernels in (("eager", EAGER), ("compiled", COMPILED))
        for number in range(count)
    ]
    result = check_of(claim, *traces)
    assert (result.state, result.why) == ("held", "")
    assert result.trials == ("compiled-torch-0", "compiled-torch-1", "eager-torch-0", "eager-torch-1")


def test_step_times_are_those_without_a_profiler_though_there_are_fewer_trials() -> None:
    """Steps take half the time without the profiler, and a third with it."""
    claim = Expectation(variant=("compiled",), ratio=Ratio(to="eager", below=0.6))
    traces = [
        recorded(variant, dur, number=number, collector=collector)
        for collector, count, durs in (("torch", 3, (3 * MS, MS)), ("none", 2, (2 * MS, MS)))
        for variant, dur in zip(("eager", "compiled"), durs, strict=True)
        for number in range(count)
    ]
    result = check_of(claim, *traces)
    assert result.value == pytest.approx(0.5, abs=0.01)
    assert result.trials == ("compiled-none-0", "compiled-none-1", "eager-none-0", "eager-none-1")
