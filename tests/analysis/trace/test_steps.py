"""Steps: which ranges they are, work by launch, windows and wall time, each on one screen."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.steps import step_index, step_spans, steps
from profrun.analysis.trace.wall_time import WALL_ROLES
from tests.analysis.kit import memory_trace, step

LAUNCH = "cudaLaunchKernel"


def test_work_belongs_to_the_step_that_launched_it_wherever_it_runs() -> None:
    trace = memory_trace(
        [
            step(0, 0, 100), step(1, 100, 100),
            ("api", LAUNCH, 10, 5, "main"), ("api", LAUNCH, 20, 5, "main"), ("api", LAUNCH, 110, 5, "main"),
            ("kernel", "gemm", 30, 60, "stream 7", {"launch": 2}),
            ("kernel", "gemm", 120, 50, "stream 7", {"launch": 3}),  # launched in step 0, runs in step 1
            ("kernel", "gemm", 180, 90, "stream 7", {"launch": 4}),  # runs past its step
            ("kernel", "gemm", 1, 4, "stream 7"),  # launched before the recording
        ]
    )  # fmt: skip
    found = [
        (row.step, row.kernels, row.kernel_ns, row.gpu_busy_ns, row.idle_ns, row.launches)
        for row in steps(trace)
    ]
    #        step, kernels, their time, their union, host range without any GPU work, calls
    assert found == [(0, 2, 110, 110, 36, 2), (1, 1, 90, 90, 30, 1)]


def test_windows_extend_to_the_end_of_launched_work_and_start_after_the_step_before() -> None:
    trace = memory_trace(
        [
            step(0, 0, 100), step(1, 110, 40),
            ("api", LAUNCH, 10, 5, "main"), ("api", LAUNCH, 115, 5, "main"),
            ("kernel", "a", 20, 105, "stream 7", {"launch": 2}),  # ends at 125, after step 1 began
            ("kernel", "b", 125, 75, "stream 7", {"launch": 3}),
        ]
    )  # fmt: skip
    starts, ends, numbers = step_spans(frame(trace), 0)
    assert list(zip(starts.tolist(), ends.tolist(), numbers.tolist(), strict=True)) == [
        (0, 125, 0),
        (125, 200, 1),
    ]
    assert [row.span_ns for row in steps(trace)] == [125, 75]


def test_a_last_step_with_little_work_is_cut_from_the_window_but_listed() -> None:
    rows = [step(0, 0, 100), step(1, 100, 100), step(2, 200, 100)]
    for number, calls in enumerate((5, 5, 3)):
        for place in range(calls):
            at = number * 100 + 10 * place
            rows += [
                ("api", LAUNCH, at, 2, "main"),
                ("kernel", "k", at + 3, 5, "stream 7", {"launch": len(rows)}),
            ]
    trace = memory_trace(rows)
    assert step_spans(frame(trace), 0)[2].tolist() == [0, 1]
    assert [row.kernels for row in steps(trace)] == [5, 5, 3]


def test_one_family_of_names_and_no_step_inside_a_step() -> None:
    trace = memory_trace(
        [
            ("step", "ProfilerStep#3", 0, 100, "main"), step(3, 5, 90), step(4, 105, 90),
            ("step", "ProfilerStep#4", 100, 100, "main"), ("step", "profrun.step#9", 10, 5, "main"),
        ]
    )  # fmt: skip
    index = step_index(frame(trace))
    assert index.slices.tolist() == [1, 2]
    assert index.numbers.tolist() == [3, 4]


def test_a_run_without_steps_is_one_step_whatever_else_is_called_a_step() -> None:
    trace = memory_trace(
        [
            ("step", "profrun.run", 10, 100, "main"), ("step", "step 5", 20, 30, "main"),
            ("api", LAUNCH, 5, 2, "main"), ("api", LAUNCH, 60, 5, "worker"),
            ("kernel", "early", 8, 1, "stream 7", {"launch": 2}),  # launched before the run begins
            ("kernel", "a", 70, 5, "stream 7", {"launch": 3}),
        ]
    )  # fmt: skip
    assert [(row.step, row.ts_ns, row.dur_ns, row.kernels) for row in steps(trace)] == [(0, 10, 100, 1)]
    assert trace.sql("SELECT step, name, dur_ns FROM steps").rows == [(0, "profrun.run", 100)]


def test_gpu_copies_of_step_ranges_are_no_steps() -> None:
    trace = memory_trace(
        [("step", "ProfilerStep#3", 0, 100, "main"), ("step", "ProfilerStep#3", 5, 90, "stream 7")]
    )
    assert len(steps(trace)) == 1


def test_wall_roles_are_exclusive_and_add_up() -> None:
    trace = memory_trace(
        [
            step(0, 0, 100),
            ("op", "aten::mm", 10, 30, "main"), ("api", LAUNCH, 20, 10, "main"),
            ("op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 60, 20, "main"),
            ("kernel", "gemm", 25, 20, "stream 7", {"launch": 2}),
            ("memcpy", "Memcpy HtoD (Pinned -> Device)", 40, 10, "stream 9", {"copies.direction": "HtoD"}),
            ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 70, 5, "stream 9"),
        ]
    )  # fmt: skip
    (row,) = steps(trace)
    #        kernel, memcpy after it, comm inside the data loading, call before the kernel, loading, op, rest
    want = {
        "kernel": 20,
        "memcpy": 5,
        "memset": 0,
        "comm": 5,
        "runtime": 5,
        "dataloader": 15,
        "cpu_op": 10,
        "other": 40,
    }
    assert row.wall_ns == want
    assert sum(row.wall_ns.values()) == row.span_ns == 100
    assert tuple(row.wall_ns) == WALL_ROLES


def test_backward_launches_of_another_thread_are_the_steps_too() -> None:
    trace = memory_trace(
        [
            step(0, 0, 100), ("range", "backward", 20, 60, "main"),
            ("op", "AddmmBackward0", 30, 30, "autograd"), ("api", LAUNCH, 40, 5, "autograd"),
            ("kernel", "gemm", 50, 10, "stream 7", {"launch": 3}),
        ]
    )  # fmt: skip
    assert steps(trace)[0].kernels == 1
    from profrun.analysis.trace.ranges import ranges

    (row,) = [row for row in ranges(trace) if row.name == "backward"]
    assert (row.gpu_ns, row.adopted_ns, row.adopted_slices) == (0, 10, 1)


def test_amd_copy_kernels_are_copies() -> None:
    trace = memory_trace(
        [
            step(0, 0, 100),
            ("api", "hipMemcpyAsync", 10, 5, "main"), ("api", "hipMemsetAsync", 20, 5, "main"),
            ("kernel", "__amd_rocclr_copyBuffer", 20, 10, "stream 0", {"launch": 1}),
            ("kernel", "__amd_rocclr_fillBufferAligned.kd", 30, 7, "stream 0", {"launch": 2}),
        ],
        device={"vendor": "amd"},
    )  # fmt: skip
    (row,) = steps(trace)
    assert (row.kernels, row.kernel_ns, row.memcpy_ns, row.memset_ns) == (2, 0, 10, 7)


def test_without_steps_there_are_no_rows_and_no_error() -> None:
    assert steps(memory_trace([("op", "aten::mm", 0, 5, "main")])) == []
    assert steps(memory_trace([])) == []


@pytest.mark.parametrize("ranks", [1, 2])
def test_each_rank_has_its_own_steps(ranks: int) -> None:
    rows = [step(0, 0, 100)]
    if ranks == 2:
        rows += [step(0, 10, 100, "r1:main"), ("api", LAUNCH, 20, 5, "r1:main"),
                 ("kernel", "k", 40, 10, "r1:stream 7", {"launch": 2})]  # fmt: skip
    found = [(row.rank, row.kernels) for row in steps(memory_trace(rows, ranks=ranks))]
    assert found == [(0, 0), (1, 1)][:ranks]


def test_work_on_a_gpu_that_another_process_owns() -> None:
    """A merged file whose events state no rank: all GPUs belong to one process, and all processes launch."""
    rows = [
        step(0, 0, 100),
        ("step", "ProfilerStep#5", 0, 100, "r1:main"),
        ("step", "ProfilerStep#6", 100, 100, "r1:main"),
        ("api", LAUNCH, 10, 5, "main"),
        ("api", LAUNCH, 110, 5, "r1:main"),
        ("kernel", "gemm", 20, 60, "stream 7", {"launch": 3}),
        ("kernel", "gemm", 120, 90, "stream 7", {"launch": 4}),  # launched by rank 1, on rank 0's GPU
    ]
    trace = memory_trace(rows, ranks=2)
    found = [(row.rank, row.step, row.kernels, row.kernel_ns, row.span_ns) for row in steps(trace)]
    assert found == [(0, 0, 1, 60, 100), (1, 5, 0, 0, 100), (1, 6, 1, 90, 110)]
    assert step_spans(frame(trace), 1)[1].tolist() == [100, 210]
