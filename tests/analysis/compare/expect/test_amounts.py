"""Claims about counts: launches per step, and bytes through the GPU's memory. They need no interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import read_trial
from profrun.analysis.compare.expect import Told, judge, tell
from profrun.contract.denominator import RUN, STEP, Denominator
from profrun.jobs.expectation import DramBytes, Expectation, Ratio
from profrun.store.run_claims import CheckResult
from profrun.traces.trace import Trace
from tests.analysis.compare.expect.steps import MS, check_of, recorded
from tests.analysis.kit import memory_trace

MIB = 1 << 20


def launching(variant: str, *kernels: int, work: dict[str, Any] | None = None) -> list[Trace]:
    """Trials of a variant, each with steps of so many kernels."""
    return [
        recorded(variant, MS, ("k",) * count, number=number, work=work)
        for number, count in enumerate(kernels)
    ]


@pytest.mark.parametrize(
    ("eager", "compiled", "state", "found"),
    [
        ((20,), (10,), "held", "0.500 times, 10 against 20 launches per step"),
        ((20, 20), (12,), "refuted", "0.600 times, 12 against 20 launches per step"),
        (
            (20,),
            (9, 10),
            "held",
            "0.475 times (0.450 to 0.500 by trial), 9.5 (9 to 10 by trial) against 20 launches per step",
        ),
        (
            (19, 21),
            (10,),
            "not checked",
            "0.500 times (0.476 to 0.526 by trial), 10 against 20 (19 to 21 by trial) launches per step",
        ),
        (
            (20,),
            (11, 12),
            "refuted",
            "0.575 times (0.550 to 0.600 by trial), 11.5 (11 to 12 by trial) against 20 launches per step",
        ),
    ],
)
def test_a_ratio_of_launches_is_counted(
    eager: tuple[int, ...], compiled: tuple[int, ...], state: str, found: str
) -> None:
    """Kernels per step of each trial; the limit is a half."""
    claim = Expectation(variant=("compiled",), ratio=Ratio(to="eager", of="launches", below=0.5))
    result = check_of(claim, *launching("eager", *eager), *launching("compiled", *compiled))
    assert (result.state, result.found, result.ci95) == (state, found, None)
    assert result.value == pytest.approx(float(found.split()[0]))
    why = "the trials differ: 0.476 to 0.526 reaches over the limits (at most 0.500)"
    assert result.why == (why if state == "not checked" else "")


def test_where_the_steps_of_a_trial_differ_the_median_counts() -> None:
    """The first of three steps launches 3 kernels, the others 1."""
    rows: list[Any] = []
    for step, count in enumerate((3, 1, 1)):
        rows.append(("step", f"profrun.step#{step}", step * MS, MS, "main"))
        for place in range(count):
            at = step * MS + place * 10_000
            rows.append(("api", "cudaLaunchKernel", at, 10, "main"))
            rows.append(("kernel", "k", at + 1000, 4000, "stream 7", {"launch": len(rows) - 1}))
    trace = memory_trace(rows, meta={"job": {"variant": "compiled", "collector": "torch"}})
    claim = Expectation(variant=("compiled",), ratio=Ratio(to="eager", of="launches", below=0.5))
    result = check_of(claim, *launching("eager", 2), trace)
    assert (result.state, result.value) == ("held", 0.5)
    assert result.found.endswith("1 against 2 launches per step (the median, because the steps differ)")


def throttled(trace: Trace, claim: Expectation) -> Told:
    """What a trace tells whose GPU was slowed down."""
    trial = read_trial(trace)
    return tell(
        trace,
        [claim],
        trial=replace(trial, conditions=replace(trial.conditions, throttled=("sw_power_cap",))),
    )


@pytest.mark.parametrize(("of", "state"), [("launches", "held"), ("kernel_time", "not checked")])
def test_a_slow_clock_does_not_move_a_count(of: str, state: str) -> None:
    """The GPU of one side was throttled: its times prove nothing, its launches are what they are."""
    claim = Expectation(variant=("compiled",), ratio=Ratio(to="eager", of=of, below=0.5))
    told = [throttled(trace, claim) for trace in launching("compiled", 1, 1)]
    told += [tell(trace, [claim]) for trace in launching("eager", 2, 2)]
    (check,) = judge([claim], told, ["eager", "compiled"])[0].checks
    assert check.state == state
    assert ("throttled" in check.why) is (state == "not checked")


@pytest.mark.parametrize(
    ("per", "state", "told"),
    [
        (None, "not checked", "the variants cannot be compared: different work per step: batch 8 against 16"),
        ("batch", "held", "0.500 times, 3 against 3 launches per step, each divided by its batch"),
    ],
)
def test_other_work_makes_counts_incomparable(per: str | None, state: str, told: str) -> None:
    """The same launches for twice the batch are half as many per sample."""
    claim = Expectation(variant=("compiled",), ratio=Ratio(to="eager", of="launches", below=0.5, per=per))
    mine = recorded("compiled", MS, ("a", "b", "c"), work={"batch": 16})
    base = recorded("eager", 2 * MS, ("d", "e", "f"), work={"batch": 8})
    result = check_of(claim, base, mine)
    assert (result.state, (result.why or result.found).split(";")[0]) == (state, told)


def counted(variant: str, size: int) -> Trace:
    """A kernel that ncu counted the bytes of."""
    meta = {"collector": "ncu", "replayed": True, "job": {"variant": variant, "collector": "ncu"}}
    metrics = [{"slice": 0, "name": "dram__bytes.sum", "value": float(size), "unit": "byte"}]
    return memory_trace([("kernel", "k", 0, 1000, "stream 7")], meta=meta, side={"metrics": metrics})


def bytes_of(wanted: DramBytes, eager: list[int], compiled: list[int], of: Denominator = STEP) -> CheckResult:
    """The result of a claim about the compiled variant; ``of`` is what the hook saw of it."""
    claim = Expectation(variant=("compiled",), bytes=wanted)
    told = [tell(counted("eager", size), [claim], steps=1) for size in eager]
    told += [tell(counted("compiled", size), [claim], steps=1, steps_of=of) for size in compiled]
    return judge([claim], told, ["eager", "compiled"])[0].checks[0]


def test_bytes_are_of_what_was_recorded() -> None:
    """A program without steps is one run."""
    wanted = DramBytes(below=2.0 * MIB)
    per_step, of_run = bytes_of(wanted, [], [MIB]), bytes_of(wanted, [], [MIB], RUN)
    assert (per_step.found, of_run.found) == ("1 MiB per step", "1 MiB in the run")
    assert of_run.expected == "at most 2 MiB through the GPU's memory in the run"
    mixed = bytes_of(DramBytes(to="eager", below=2.0), [MIB], [MIB], RUN)
    assert mixed.why == "the bytes of some trials are in the run, those of others per step"


@pytest.mark.parametrize(("limit", "state"), [(0.4, "refuted"), (0.5, "not checked"), (0.6, "held")])
def test_bytes_of_trials_that_differ_are_judged_by_the_smallest_and_the_largest(
    limit: float, state: str
) -> None:
    """9 or 11 MiB against 20."""
    result = bytes_of(DramBytes(to="eager", below=limit), [20 * MIB], [9 * MIB, 11 * MIB])
    expected = (
        "0.500 times (0.450 to 0.550 by trial), 10 MiB (9 MiB to 11 MiB by trial) against 20 MiB per step"
    )
    assert (result.state, result.found, result.value) == (state, expected, 0.5)
