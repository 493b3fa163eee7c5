"""Steps as samples: their times, and which GPU work belongs to them."""

from __future__ import annotations

from profrun.analysis.compare import read_trial
from tests.analysis.kit import memory_trace, step


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
