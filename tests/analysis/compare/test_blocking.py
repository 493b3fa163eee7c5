"""Launch-blocking twins on real pairs, and on drawings whose overlap can be read off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial, read_trial
from profrun.analysis.compare.blocking import blocking_twins
from profrun.analysis.compare.blocking_model import Blocking
from profrun.analysis.compare.blocking_sentence import sentence
from profrun.contract.units import time_text
from profrun.errors import UsageError
from tests.analysis.compare.conftest import Recorded
from tests.analysis.kit import memory_trace, step
from tests.conftest import first


def _real(recorded: Recorded, name: str) -> Blocking:
    return blocking_twins([recorded(f"h200/torch/{name}")], [recorded(f"h200/torch/{name}_blocking")])


@pytest.mark.parametrize(
    ("name", "kernels"), first(2, [("mlp", 5), ("train", 313), ("transformer", 18), ("matmul_add_64", 2)])
)
def test_real_twins(recorded: Recorded, name: str, kernels: int) -> None:
    found = _real(recorded, name)
    assert found.ratio is not None
    assert found.ratio > 1
    assert (found.ci95, found.verdict, found.exit_code) == (None, "inconclusive", 2)  # one trial a side
    assert found.trials_needed is not None
    assert found.kernel_multiset_equal is True
    assert recorded(f"h200/torch/{name}").work.kernels == kernels
    few = name == "matmul_add_64"  # its two short kernels end before a wait could be told from a launch
    assert found.took_effect is (None if few else True)
    assert found.kernel_ns is not None
    assert found.overlap_ns is not None
    assert found.blocking_overlap_ns is not None
    # Blocking leaves nothing that runs beside the host, but for fills, which it does not wait for.
    assert found.blocking_overlap_ns < 0.01 * found.kernel_ns[1]
    assert found.overlap_ns > 0.8 * found.kernel_ns[0]
    assert found.kernels_same_speed is True
    async_launch, blocking_launch = found.launch_ns
    assert async_launch is not None
    assert blocking_launch is not None
    assert blocking_launch > 2 * async_launch
    assert found.sentence.startswith(time_text(found.overlap_ns))
    assert found.variables == ("CUDA_LAUNCH_BLOCKING=1",)


def test_an_op_holds_its_kernel_under_blocking(recorded: Recorded) -> None:
    ops = {row.name: row for row in _real(recorded, "mlp").per_op}
    for name in ("aten::mm", "aten::gelu", "aten::mul"):
        assert ops[name].blocking_ns > ops[name].device_ns > 0
        assert ops[name].latency_ns == pytest.approx(ops[name].blocking_ns / ops[name].calls)
    assert ops["aten::gelu"].async_ns < ops["aten::gelu"].device_ns  # it returned before its kernel ended
    assert ops["aten::mm"].calls == 3


def test_backward_holds_what_autograds_thread_launched(recorded: Recorded) -> None:
    rows = {row.name: row for row in _real(recorded, "train").per_op if row.kind == "range"}
    times = {name: rows[name].device_ns for name in ("forward", "backward", "optimizer")}
    whole = recorded("h200/torch/train_blocking").typical
    assert sum(times.values()) == pytest.approx(sum(unit.gpu_ns for unit in whole) / len(whole), rel=0.01)
    assert times["backward"] > times["forward"]


def _launches(*kernels: tuple[int, int], blocking: bool) -> list[Any]:
    """A step of 1000 with a launch of 10 at 0, 100, 200, ...; each (start, ns) is a kernel of one launch."""
    rows: list[Any] = [step(1, 0, 1000), ("op", "aten::x", 0, 900, "main")]
    for number, (start, ns) in enumerate(kernels):
        at = 100 * number
        end = start + ns if blocking else at + 10
        rows.append(("api", "cudaLaunchKernel", at, end - at, "main"))
        rows.append(("kernel", "k", start, ns, "stream 7", {"launch": len(rows) - 1}))
    return rows


def _trial(rows: list[Any], label: str, **changes: Any) -> ComparedTrial:
    trial = read_trial(memory_trace(rows, meta={"job": {"blocking": label == "b"}}), label=label)
    return replace(trial, conditions=replace(trial.conditions, fingerprint=label, **changes))


def test_overlap_is_gpu_work_that_the_host_did_not_wait_for() -> None:
    # Kernels of 50 after launches of 10 at 0, 100, 200, ...: each starts 20 after its launch began.
    kernels = [(100 * number + 20, 50) for number in range(5)]
    asynchronous = _trial(_launches(*kernels, blocking=False), "a")
    blocking = _trial(_launches(*kernels, blocking=True), "b")
    found = blocking_twins([asynchronous], [blocking])
    assert (found.overlap_ns, found.blocking_overlap_ns) == (250, 0)
    assert found.launch_ns == (10, 70)
    assert found.took_effect is True
    assert found.concurrent_ns == (0, 0)


def test_a_synchronising_call_is_no_overlap() -> None:
    rows = [*_launches((20, 50), blocking=False), ("api", "cudaStreamSynchronize", 30, 50, "main")]
    found = blocking_twins([_trial(rows, "a")], [_trial(_launches((20, 50), blocking=True), "b")])
    assert found.overlap_ns == 10  # the kernel runs 20 to 70, the host waits from 30
    (sync,) = found.sync_points
    assert (sync.name, sync.async_calls, sync.blocking_calls, sync.async_ns) == (
        "cudaStreamSynchronize",
        1,
        0,
        50,
    )


def test_a_variable_that_did_not_reach_the_program_is_told() -> None:
    rows = _launches(*((100 * number + 20, 50) for number in range(5)), blocking=False)
    found = blocking_twins([_trial(rows, "a")], [_trial(rows, "b")])
    assert found.took_effect is False
    assert found.sentence.startswith("Launches did not block")


def test_few_launches_do_not_tell_whether_they_blocked() -> None:
    """The diagnosis asks for five launches, and so does this."""
    rows = _launches((20, 50), (120, 50), blocking=True)
    assert blocking_twins([_trial(rows, "a")], [_trial(rows, "b")]).took_effect is None


def test_without_a_gpu_blocking_means_nothing() -> None:
    rows = [step(1, 0, 1000), ("op", "aten::mm", 10, 900, "main")]
    found = blocking_twins(
        [_trial(rows, "a", vendor="none", inputs="[2] f")], [_trial(rows, "b", vendor="none", inputs="[2] f")]
    )
    assert found.sentence.startswith("There is no GPU here, so launch blocking changes nothing")
    assert found.kernel_multiset_equal is None


def test_other_kernels_are_named_and_the_ratio_is_not_of_blocking() -> None:
    more = _launches((20, 50), (120, 50), blocking=True)
    found = blocking_twins([_trial(_launches((20, 50), blocking=False), "a")], [_trial(more, "b")])
    if found.verdict == "incomparable":  # without shapes the kernels are all that tells of the work
        assert "nothing tells" in found.sentence
    same = {"inputs": "[2] f"}
    found = blocking_twins(
        [_trial(_launches((20, 50), blocking=False), "a", **same)], [_trial(more, "b", **same)]
    )
    assert found.kernel_multiset_equal is False
    (difference,) = found.kernel_differences
    assert (difference.name, difference.async_calls, difference.blocking_calls) == ("k", 1, 2)
    assert "not launch the same kernels" in found.sentence


def test_two_streams_lose_their_concurrency() -> None:
    beside: list[Any] = [
        step(1, 0, 1000),
        ("api", "cudaLaunchKernel", 0, 10, "main"),
        ("kernel", "k", 20, 100, "stream 7", {"launch": 1}),
        ("api", "cudaLaunchKernel", 20, 10, "main"),
        ("kernel", "k", 40, 100, "stream 8", {"launch": 3}),
        ("api", "cudaLaunchKernel", 40, 10, "main"),
        ("kernel", "k", 160, 10, "stream 8", {"launch": 5}),
    ]
    one_by_one = _launches((20, 100), (140, 100), (260, 10), blocking=True)
    same = {"inputs": "[2] f"}
    found = blocking_twins([_trial(beside, "a", **same)], [_trial(one_by_one, "b", **same)])
    assert found.concurrent_ns == (80, 0)


def test_times_come_from_unprofiled_trials_where_there_are_some(recorded: Recorded) -> None:
    profiled = [recorded("h200/torch/mlp")], [recorded("h200/torch/mlp_blocking")]

    def plain(time: int, number: int) -> ComparedTrial:
        conditions = replace(
            profiled[0][0].conditions,
            collector="none",
            measure="event",
            profiled=False,
            fingerprint=f"{time}/{number}",
            blocking=time > 100,
            values={"batch": 8},
            inputs="[8] f",
        )
        samples = tuple(
            replace(one, time_ns=time + number + place) for place, one in enumerate(profiled[0][0].samples)
        )
        return replace(
            profiled[0][0], conditions=conditions, samples=samples, kernel_groups=(), host_ops=(), series={}
        )

    found = blocking_twins(
        [*profiled[0], *(plain(100, n) for n in range(3))], [*profiled[1], *(plain(200, n) for n in range(3))]
    )
    assert found.timed_by == "none"
    assert found.trials == (3, 3)
    assert found.ratio == pytest.approx(2.0, rel=0.02)
    assert found.ci95 is not None
    assert found.exit_code == 0
    assert found.kernel_multiset_equal is True  # from the profiled ones
    assert found.per_op
    # The cost is the difference of the times in the first line, not that of the profiled steps.
    assert found.step_ns is not None
    cost = time_text(found.step_ns[1] - found.step_ns[0])
    assert f"GPU work per step ran while the host went on under {found.detailed_by}; " in found.sentence
    assert f"asynchronous launches save {cost} per step without a profiler" in found.sentence
    assert found.hidden_ns is not None
    assert time_text(found.hidden_ns) not in found.sentence
    unproven = replace(found, ci95=(0.9, 4.0), verdict="inconclusive")
    assert "save" not in sentence(unproven, "nvidia")
    dear = replace(found, overlap_ns=1.0)
    assert f"blocking costs {cost} per step without a profiler, more than" in sentence(dear, "nvidia")


def test_twins_need_both_sides(recorded: Recorded) -> None:
    one = recorded("h200/torch/mlp")
    with pytest.raises(UsageError, match="without and with blocking"):
        blocking_twins([one], [])
    other = replace(one, conditions=replace(one.conditions, collector="nsys", tool="nsys", fingerprint="x"))
    with pytest.raises(UsageError, match="no collector has trials both"):
        blocking_twins([one], [other])


def test_twins_are_timed_and_traced_by_one_collector_as_the_job_names_it(recorded: Recorded) -> None:
    """A timeline and counters of one tool are two points: their trials are not repeats of each other."""
    plain, blocking = recorded("h200/torch/mlp"), recorded("h200/torch/mlp_blocking")

    def named(trial: ComparedTrial, collector: str, **more: Any) -> ComparedTrial:
        conditions = replace(
            trial.conditions,
            collector=collector,
            tool="rocprof",
            fingerprint=f"{trial.conditions.fingerprint}/{collector}",
            **more,
        )
        return replace(trial, conditions=conditions)

    both = [[named(one, "counters", replayed=True), named(one, "timeline")] for one in (plain, blocking)]
    found = blocking_twins(*both)
    assert (found.timed_by, found.trials) == ("timeline", (1, 1))
    assert found.kernel_multiset_equal is True
