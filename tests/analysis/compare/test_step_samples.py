"""Steps as samples: their times, and which GPU work belongs to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profrun.analysis.compare import read_trial
from profrun.analysis.compare.reading import in_phase
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace, step
from tests.tracekit import make_trace


def test_a_step_is_as_long_as_its_gpu_work_and_starts_where_the_last_one_ended() -> None:
    rows = [
        step(1, 0, 100),
        ("api", "cudaLaunchKernel", 10, 5, "main"),
        step(2, 100, 100),
        ("api", "cudaLaunchKernel", 110, 5, "main"),
        ("kernel", "k", 20, 200, "stream 7", {"launch": 1}),  # ends at 220, in step 2's time
        ("kernel", "k", 220, 150, "stream 7", {"launch": 3}),  # ends at 370
    ]
    trial = read_trial(memory_trace(rows))
    assert [(unit.time_ns, unit.host_ns, unit.gpu_ns) for unit in trial.samples] == [
        (220, 100, 200),
        (150, 100, 150),
    ]
    assert trial.times == [220, 150]
    assert trial.conditions.measure == "span"


def test_work_of_before_the_window_is_in_no_step() -> None:
    rows = [
        step(1, 0, 100),
        ("api", "cudaLaunchKernel", 10, 5, "main"),
        ("kernel", "old", 0, 30, "stream 7"),
        ("kernel", "k", 40, 20, "stream 7", {"launch": 1}),
    ]
    trial = read_trial(memory_trace(rows))
    assert [atom.name for atom in trial.kernel_groups] == ["k"]
    assert (trial.conditions.outside_ns, trial.conditions.total_gpu_ns) == (30, 50)
    assert trial.outside == {"unknown": 30}


def test_work_on_a_gpu_that_another_process_owns_belongs_to_the_step_that_launched_it() -> None:
    rows = [
        step(1, 0, 100),
        ("api", "cudaLaunchKernel", 10, 5, "main"),
        ("step", "ProfilerStep#1", 0, 100, "r1:main"),
        ("api", "cudaLaunchKernel", 10, 5, "r1:main"),
        ("kernel", "k", 20, 30, "stream 7", {"launch": 1}),
        ("kernel", "k", 60, 20, "stream 7", {"launch": 3}),  # launched by rank 1, on rank 0's GPU
    ]
    trial = read_trial(memory_trace(rows, ranks=2))
    assert [(unit.rank, unit.gpu_ns, unit.launches) for unit in trial.samples] == [(0, 30, 1), (1, 20, 1)]


def _run(tmp_path: Path, count: int) -> Trace:
    """The first third of the steps takes 100 us, the rest 112 us; two steps are in the window."""
    durs = [(100 + step % 3 if step < count // 3 else 112 + step % 3) * 1000 for step in range(count)]
    starts = np.concatenate(([0], np.cumsum(durs)[:-1])).tolist()
    times = [
        {
            "process": 0,
            "step": step,
            "ts_ns": start,
            "dur_ns": dur,
            "clock": "wall",
            "part": "active" if step in (3, 4) else "outside",
        }
        for step, (start, dur) in enumerate(zip(starts, durs, strict=True))
    ]
    slices = [("step", f"profrun.step#{n}", starts[n], durs[n], "main") for n in range(count)]
    windows = {str(row["step"]): row["part"] for row in times}
    meta = {"collector": "none", "epoch_ns": 5, "extra": {"windows": windows}}
    return make_trace(tmp_path / "t", slices, meta=meta, side={"step_times": times})


def test_without_a_profiler_the_steps_of_the_phase_count_that_was_asked_for(tmp_path: Path) -> None:
    with _run(tmp_path, 60) as trace:
        steady = read_trial(trace)
        assert (steady.phase, [one.step for one in steady.samples]) == ("steady", list(range(20, 60)))
        assert steady.conditions.began_ns == 5
        assert min(steady.times) == 112_000
        window = read_trial(trace, phase="window")
        assert [one.step for one in window.samples if not one.edge] == [3, 4]
        assert len(read_trial(trace, phase="all").times) == 60
        recorded = in_phase(steady, trace, "recorded")
        assert recorded.times == [100_000 + step % 3 * 1000 for step in range(20)]


@pytest.mark.thorough
def test_a_trial_of_many_steps_keeps_a_thousand_of_them(tmp_path: Path) -> None:
    with _run(tmp_path, 3000) as trace:
        trial = read_trial(trace)
    assert len(trial.samples) == 1000
    assert trial.samples[0].step >= 1000
    assert set(trial.times) == {112_000, 113_000, 114_000}
