"""The answers of a run: each variant's step time without a profiler, and what its recording tells."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from profrun.contract.paths import TrialPaths
from profrun.runner.answers import answers, diagnosed, told_by
from profrun.runner.default_comparisons import points_of
from profrun.store.documents import Steps
from profrun.store.run_answer import VariantAnswer
from profrun.store.runs import Run
from profrun.store.state import RunState, TrialRecord
from profrun.traces.trace import Trace
from tests.analysis.compare.trials import trial
from tests.tracekit import ThinSlice, make_trace

MS = 1_000_000
STEP: list[ThinSlice] = [
    ("step", "profrun.step#1", 0, 10 * MS, "main"),
    ("api", "cudaLaunchKernel", 100, 500, "main", {"parent": 0, "depth": 1}),
    ("kernel", "some_gemm", 1 * MS, 2 * MS, "stream 7", {"launch": 1}),
]


MULTIPLY: list[ThinSlice] = [
    STEP[0],
    ("op", "aten::mm", 50, 900, "main", {
        "ops.shapes": "[[4096,4096],[4096,4096]]", "ops.dtypes": '["c10::BFloat16","c10::BFloat16"]',
        "parent": 0, "depth": 1,
    }),
    ("api", "cudaLaunchKernel", 100, 500, "main", {"parent": 1, "depth": 2}),
    ("kernel", "some_gemm", 1 * MS, 2 * MS, "stream 7", {"launch": 2}),
]  # fmt: skip


def record(
    root: Path, number: int, variant: str, collector: str, steps: list[int], slices: list[ThinSlice] = STEP
) -> TrialRecord:
    """A finished trial with a trace in which the GPU works 2 of 10 ms per step."""
    folder = root / f"{number:03}-{variant}-{collector}"
    folder.mkdir()
    device = {"name": "NVIDIA H200"} if slices is MULTIPLY else None
    make_trace(folder / "trace", slices, meta={"collector": collector}, device=device).close()
    return TrialRecord(
        id=folder.name,
        index=number,
        variant=variant,
        collector=collector,
        blocking=False,
        repeat=1,
        state="finished",
        paths=TrialPaths(folder),
        trace=folder / "trace",
        steps=Steps(how="optimizer", clock="cuda_event", measured=tuple(steps)),
        serial=collector == "ncu",
    )


def asked(root: Path, *records: TrialRecord) -> tuple[VariantAnswer, ...]:
    state = RunState(Run(root), "t", "local", root, 5, "finished", False, records)
    points = points_of(records)
    told = told_by(points)
    found = {}
    for one in told.values():
        assert one.trace is not None
        with Trace(one.trace) as trace:
            found[one.id] = diagnosed(trace, one, state)
    return answers(points, found, {})


def test_mfu_is_of_the_step_without_a_profiler(tmp_path: Path) -> None:
    """137.4 GFLOP of the recording in the 5 ms of the other trial, of 989.4 TFLOP/s: 2.8 %."""
    (answer,) = asked(
        tmp_path,
        record(tmp_path, 0, "a", "none", [5 * MS] * 3, MULTIPLY),
        record(tmp_path, 1, "a", "torch", [10 * MS] * 3, MULTIPLY),
    )
    assert answer.use is not None
    assert (answer.use.flops, answer.use.dtype, answer.step_ns) == (2 * 4096**3, "bf16", 5 * MS)
    assert answer.use.mfu == answer.use.hfu == pytest.approx(2 * 4096**3 / 5e-3 / 989.4e12)
    (profiled,) = asked(tmp_path, record(tmp_path, 2, "a", "torch", [10 * MS] * 3, MULTIPLY))
    assert profiled.use is not None
    assert profiled.use.mfu == pytest.approx(answer.use.mfu / 2)


def test_the_step_is_that_without_a_profiler_and_shares_are_of_it(tmp_path: Path) -> None:
    (answer,) = asked(
        tmp_path,
        record(tmp_path, 0, "a", "none", [4 * MS, 4 * MS, 7 * MS]),
        record(tmp_path, 1, "a", "torch", [10 * MS] * 3),
        record(tmp_path, 2, "a", "none", [6 * MS, 6 * MS, 9 * MS]),
    )
    assert answer.step is not None
    assert answer.step.ns == round(math.sqrt(4 * MS * 6 * MS))
    assert (answer.step.low_ns, answer.step.high_ns) == (4 * MS, 6 * MS)
    assert (answer.step.trials, answer.step.steps, answer.step.profiled_by) == (2, 6, None)
    assert answer.step.mean_ns == round(math.sqrt(5 * MS * 7 * MS))
    assert (answer.trial, answer.basis) == ("001-a-torch", "unprofiled")
    assert (answer.gpu_ns, answer.step_ns) == (2 * MS, answer.step.ns)
    assert answer.gpu_share == pytest.approx(2 / math.sqrt(24))
    assert [(part.name, part.share) for part in answer.parts] == [("gemm", 1.0)]
    assert [one.gain_ns for one in answer.findings] == sorted(
        (one.gain_ns for one in answer.findings), reverse=True
    )
    assert all(one.remedy for one in answer.findings)


def test_without_such_a_trial_the_step_is_the_recorded_one_and_says_so(tmp_path: Path) -> None:
    (answer,) = asked(tmp_path, record(tmp_path, 0, "a", "torch", [10 * MS] * 3))
    assert answer.step is not None
    assert (answer.step.ns, answer.step.profiled_by, answer.basis) == (10 * MS, "torch", "profiled")


def test_serialised_kernels_tell_nothing_of_a_step(tmp_path: Path) -> None:
    (answer,) = asked(
        tmp_path,
        record(tmp_path, 0, "a", "none", [4 * MS] * 3),
        record(tmp_path, 1, "a", "ncu", [90 * MS] * 3),
    )
    assert (answer.trial, answer.gpu_ns, answer.parts) == (None, None, ())
    assert answer.step is not None
    assert answer.step.ns == 4 * MS


def test_variants_come_in_the_order_of_the_plan(tmp_path: Path) -> None:
    found = asked(
        tmp_path,
        record(tmp_path, 0, "slow", "torch", [10 * MS]),
        record(tmp_path, 1, "fast", "torch", [10 * MS]),
    )
    assert [one.variant for one in found] == ["slow", "fast"]


def test_the_energy_is_that_of_the_trials_that_the_step_time_is_of(tmp_path: Path) -> None:
    """Geometric mean of the trials without a profiler; one that does not tell it leaves it unknown."""
    records = [
        record(tmp_path, n, "eager", name, [5 * MS]) for n, name in enumerate(("none", "none", "torch"))
    ]

    def energy(*joules: float | None) -> float | None:
        trials = {
            one.id: replace(trial(), energy_j=value) for one, value in zip(records, joules, strict=True)
        }
        return answers(points_of(records), {}, trials)[0].energy_j

    assert energy(2.0, 8.0, 100.0) == pytest.approx(4.0)
    assert energy(2.0, None, 100.0) is None
    assert answers(points_of(records), {}, {})[0].energy_j is None
