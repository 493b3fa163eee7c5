"""What is no finding: set-up work outside the steps, waiting collectives, blocking launches, near ties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.diagnose import RuleFinding, UnprofiledStep, diagnose
from profrun.analysis.rules.recording import buffer_request
from profrun.contract.finding import SEVERITIES
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step
from tests.analysis.rules.cases import ADD, BLOCKED, CASES, LAUNCH, NCCL, NVJET, SOFTMAX, US, gpu, grid
from tests.conftest import ROOT

# What the H200 recordings must show.
MUST = {
    "matmul_add_64": ({"overhead-bound"}, {"compute-bound"}),
    "matmul_add_4096": ({"compute-bound"}, {"overhead-bound", "low-utilization"}),
    "transformer": (
        {"tf32-gemm", "unfused-attention", "overhead-bound", "low-utilization"},
        {"compute-bound"},
    ),
    "transformer_optim": (set(), {"tf32-gemm", "unfused-attention", "overhead-bound", "low-utilization"}),
    "mlp": ({"kernel-mix", "pointwise-chains"}, {"inductor-fusion", "launch-blocking"}),
    "mlp_compile": ({"inductor-fusion"}, {"pointwise-chains"}),
    "train": ({"implicit-sync", "overhead-bound"}, {"launch-blocking"}),
    "mlp_blocking": ({"launch-blocking"}, {"overhead-bound"}),
    "matmul_add_64_blocking": (set(), {"launch-blocking"}),  # kernels of 2 us in calls of 16 us tell nothing
    "transformer_blocking": ({"launch-blocking"}, {"overhead-bound"}),
    "train_blocking": ({"launch-blocking"}, {"overhead-bound"}),
}


def messages(name: str, rule: str, real: Callable[..., Trace]) -> str:
    findings = diagnose(real(f"h200/torch/{name}.json.gz"))
    return " | ".join(finding.what for finding in findings if finding.code == rule)


REQUEST: Row = ("overhead", "Activity Buffer Request", 100 * US, 200 * US, "main")

# Before the first step: a copy longer than all steps, and a chain of point-wise kernels.
SETUP: list[Row] = [
    ("memcpy", "Memcpy HtoD", -5000 * US, 4000 * US, "stream 7", {"copies.direction": "HtoD"}),
    ("kernel", ADD, -900 * US, 300 * US, "stream 7"),
    ("kernel", ADD, -500 * US, 300 * US, "stream 7"),
]


def ask(rows: Sequence[Row], rule: str, name: str = "") -> list[RuleFinding]:
    return [one for one in diagnose(memory_trace(rows)) if one.code == rule and name in one.what]


@pytest.mark.parametrize("rule", ["copies-not-overlapped", "pointwise-chains", "memory-bound"])
def test_set_up_outside_the_steps_is_no_finding_of_the_steps(rule: str) -> None:
    assert ask([*gpu([(NVJET, 10 * US, 85 * US)]), *SETUP], rule) == []


def test_what_bounds_the_steps_is_told_from_their_own_work() -> None:
    (found,) = ask([*gpu([(NVJET, 10 * US, 85 * US)]), *SETUP], "compute-bound")
    assert found.evidence["compute_share"] == 1.0


def test_a_recording_without_steps_has_no_rate_a_step() -> None:
    rows = [("kernel", ADD, at * 10 * US, 9 * US, "stream 7") for at in range(4)]
    (found,) = ask(rows, "pointwise-chains")
    assert "(1 in the recording, the longest of 4)" in found.what


@pytest.mark.parametrize("rule", ["few-blocks", "dominant-kernel"])
def test_a_collective_uses_few_blocks_and_waits_by_design(rule: str) -> None:
    work = [(NCCL, 10 * US, 60 * US), (ADD, 75 * US, 5 * US)]
    assert ask(gpu(work, columns=grid(24)), rule, "AllReduce") == []
    assert ask(gpu([(NCCL, 10 * US, 80 * US)], columns=grid(24)), rule) == []


def test_a_near_tie_has_no_dominant_kernel() -> None:
    assert ask(gpu([(NVJET, 10 * US, 31 * US), (ADD, 45 * US, 30 * US)]), "dominant-kernel") == []
    assert ask(gpu([(NVJET, 10 * US, 46 * US), (ADD, 60 * US, 30 * US)]), "dominant-kernel")


def test_utilization_under_blocking_launches_is_not_the_programs() -> None:
    assert ask(BLOCKED, "low-utilization") == []
    assert ask(BLOCKED, "launch-blocking")


def test_without_op_records_nobody_is_blamed_by_name() -> None:
    rows = gpu([(NVJET, 10 * US, 20 * US), (SOFTMAX, 40 * US, 5 * US)])
    (found,) = ask(rows, "unfused-attention")
    assert "beside GEMMs (no ops are recorded)" in found.what
    assert found.evidence["bmm_calls"] is None
    waits: list[Row] = [*rows, ("api", "cudaStreamSynchronize", 50 * US, 20 * US, "main")]
    (sync,) = ask(waits, "explicit-sync")
    assert "the program or an op of it (none is recorded)" in sync.what


def test_a_recording_without_steps_is_not_judged_as_hard() -> None:
    idle = [("range", *row[1:]) if row[0] == "step" else row for row in gpu([(ADD, 10 * US, 4 * US)])]
    found = {one.code: one for one in diagnose(memory_trace(idle))}
    assert found["overhead-bound"].severity == found["low-utilization"].severity == "info"
    assert "the recording takes 300 us" in found["overhead-bound"].what
    assert "set-up counts too" in found["overhead-bound"].what
    assert not {"launches_per_step", "step_ns"} & set(found["overhead-bound"].evidence)
    assert found["low-utilization"].explained_by == "overhead-bound"


def test_a_gpu_that_copies_all_the_time_is_not_idle() -> None:
    rows = gpu([(ADD, 10 * US, 4 * US)])
    assert ask(rows, "low-utilization")
    copy = ("memcpy", "Memcpy HtoD", 15 * US, 280 * US, "stream 8", {"copies.direction": "HtoD"})
    assert ask([*rows, copy], "low-utilization") == []


def test_a_cost_that_no_step_feels_is_for_information() -> None:
    small = gpu([(ADD, 10 * US, US), (ADD, 12 * US, US)], columns=grid(8))
    for rule in ("pointwise-chains", "few-blocks"):
        assert ask(small, rule)[0].severity == "info"
    large = gpu([(ADD, 10 * US, 30 * US), (ADD, 50 * US, 30 * US)], columns=grid(8))
    for rule in ("pointwise-chains", "few-blocks"):
        assert ask(large, rule)[0].severity == "warning"


def test_kernels_of_a_graph_have_paid_their_launch_already() -> None:
    tiny = [(ADD, 6 * US + at * 5 * US, 2 * US) for at in range(12)]
    assert ask(gpu(tiny), "tiny-kernels")
    graphed = [(kind, "cudaGraphLaunch" if kind == "api" else name, *rest) for kind, name, *rest in gpu(tiny)]
    assert ask(graphed, "tiny-kernels") == []


def test_grids_of_few_kernels_say_nothing_of_all() -> None:
    rows = gpu([(ADD, 10 * US, 5 * US)], columns=grid(8))
    rows.append(("kernel", NVJET, 220 * US, 70 * US, "stream 7", {"launch": 7}))
    assert ask(rows, "few-blocks") == []


def test_threads_that_wait_together_wait_once() -> None:
    """Two threads wait 60 us each for the same 60 us: 60 % of the step, not 120 %."""
    rows = gpu([(NVJET, 10 * US, 60 * US)], count=1)
    rows += [("api", "cudaDeviceSynchronize", 20 * US, 60 * US, track) for track in ("main", "loader")]
    (found,) = ask(rows, "explicit-sync")
    assert found.evidence["total_ns"] == 60 * US
    assert found.evidence["share"] == 0.6


def test_the_line_to_blame_is_the_programs_not_torchs() -> None:
    rows = gpu([(NVJET, 10 * US, 60 * US)], count=1)
    rows += [
        ("python", "train.py(12): step", 15 * US, 80 * US, "main"),
        ("python", "torch/cuda/__init__.py(975): synchronize", 18 * US, 70 * US, "main"),
        ("api", "cudaDeviceSynchronize", 20 * US, 60 * US, "main"),
    ]
    (found,) = ask(rows, "explicit-sync")
    assert "at train.py(12): step" in found.what


def test_steps_that_differ_show_the_fullest() -> None:
    rows = gpu([(NVJET, 10 * US, 60 * US)], count=2)
    rows += [
        step(2, 200 * US, 50 * US),
        step(3, 250 * US, 90 * US),
        ("api", LAUNCH, 255 * US, 2 * US, "main"),
        ("kernel", NVJET, 260 * US, 60 * US, "stream 7", {"launch": 8}),
    ]
    (found,) = ask(rows, "kernel-mix")
    assert found.what == "1 kernels in the fullest of 4 steps, 0 in the emptiest: 1 gemm"


def test_the_h200_recordings_by_nsys(real: Callable[..., Trace]) -> None:
    """Their set-up (weights copied, five warm-up steps) lies outside the step ranges."""
    found = {one.code: one.what for one in diagnose(real("h200/nsys/mlp.sqlite"))}
    assert "copies-not-overlapped" not in found
    assert "9 chains of point-wise kernels (1 per step, the longest of 2)" in found["pointwise-chains"]


@pytest.mark.parametrize(
    "rows", [[], [step(0, 0, 0)], [("kernel", "k", 5, 0, "stream 1")], [("op", "a", 0, 0, "main")]]
)
def test_odd_traces_are_no_error(rows: list[tuple[object, ...]]) -> None:
    diagnose(memory_trace(rows))


def test_no_finding_rests_on_a_withheld_number() -> None:
    rows = [
        step(0, 0, 1000), ("api", "cudaGraphLaunch", 10, 5, "main"),
        ("api", "cudaLaunchKernel", 20, 5, "main"),
        ("kernel", "k", 100, 10, "stream 7", {"launch": 2}),
    ]  # fmt: skip
    found = {finding.code for finding in diagnose(memory_trace(rows))}
    assert "graph-kernels-hidden" in found
    assert not found & {"overhead-bound", "low-utilization", "tiny-kernels"}


def test_a_doubtful_number_marks_its_finding() -> None:
    rows = [
        step(0, 0, 1000), ("api", "cudaLaunchKernel", 20, 5, "main"),
        ("kernel", "k", 100, 10, "stream 7", {"launch": 1}), ("kernel", "old", 5, 2, "stream 7"),
    ]  # fmt: skip
    (finding,) = [one for one in diagnose(memory_trace(rows)) if one.code == "low-utilization"]
    assert finding.quality == ("window_edge",)
    document = finding.to_json()
    assert {"code", "severity", "what", "why", "fix", "title", "threshold", "evidence", "quality"} <= set(
        document
    )
    assert document["evidence"]["utilization"] == pytest.approx(
        10 / 993
    )  # the window starts after stray work


def test_gravest_first() -> None:
    order = [
        SEVERITIES.index(finding.severity)
        for finding in diagnose(memory_trace(CASES["overhead-bound"][0].rows))
    ]
    assert order == sorted(order)
    assert len(set(order)) > 1


@pytest.mark.parametrize("name", MUST)
def test_the_h200_recordings(name: str, real: Callable[..., Trace]) -> None:
    findings = diagnose(real(f"h200/torch/{name}.json.gz"))
    found = {finding.code for finding in findings}
    must, must_not = MUST[name]
    assert must <= found
    assert not must_not & found


def test_the_recipe_of_a_step_and_what_the_compiler_made_of_it(real: Callable[..., Trace]) -> None:
    assert "5 kernels in every step: 3 gemm + 2 elementwise" in messages("mlp", "kernel-mix", real)
    assert "4 kernels in every step: 3 gemm + 1 elementwise" in messages("mlp_compile", "kernel-mix", real)
    assert "triton_poi_fused_gelu_mul_0 fuses gelu + mul" in messages("mlp_compile", "inductor-fusion", real)
    gemms = [
        {row[0] for row in real(f"h200/torch/{name}.json.gz").sql(
            "SELECT DISTINCT name FROM slices WHERE kind = 'kernel' AND name LIKE 'nvjet%'").rows}
        for name in ("mlp", "mlp_compile")
    ]  # fmt: skip
    assert gemms[0] == gemms[1]


def test_the_item_that_waits(real: Callable[..., Trace]) -> None:
    said = messages("train", "implicit-sync", real)
    assert "1 times per step the host waits for the GPU: by aten::item in cudaStreamSynchronize" in said


def test_the_straggler_of_two_ranks(real: Callable[..., Trace]) -> None:
    findings = diagnose(real("h200/ddp/ddp_rank0.json.gz", "h200/ddp/ddp_rank1.json.gz"))
    (finding,) = [one for one in findings if one.code == "straggler"]
    assert "wait 29.85 ms per step for rank 1" in finding.what
    assert [(row.name, row.total_ns) for row in finding.rows] == [("rank 1", 89_547_855), ("rank 0", 0)]
    assert (Path(ROOT) / "docs" / "rules" / "straggler.md").exists()


def unprofiled(us: float) -> UnprofiledStep:
    return UnprofiledStep(
        round(us * US), round(us * US), round(us * US), trials=3, steps=15, clock="cuda_event"
    )


def test_a_kernel_that_keeps_the_gpu_busy_without_a_profiler_is_no_late_host() -> None:
    """The GPU works 37 us of a step that takes 100 us under the profiler, and 41 us without it."""
    rows = gpu([(NVJET, 10 * US, 37 * US)])
    (profiled,) = [one for one in diagnose(memory_trace(rows)) if one.code == "overhead-bound"]
    assert (profiled.severity, profiled.basis) == ("info", "profiled")  # the profiler alone may be the reason
    (known,) = [
        one for one in diagnose(memory_trace(rows), unprofiled=unprofiled(41)) if one.code == "overhead-bound"
    ]
    assert (known.severity, known.basis, known.step_ns) == ("warning", "unprofiled", 41 * US)
    assert known.gain_ns == 4 * US
    assert "a step takes 41 us without a profiler (100 us with it)" in known.what
    assert "the GPU works 90.2 % of it" in known.what
    found = {one.code for one in diagnose(memory_trace(rows), unprofiled=unprofiled(38))}
    assert not {"overhead-bound", "low-utilization"} & found


def test_a_late_host_is_critical_only_by_the_step_without_a_profiler() -> None:
    rows = gpu([(ADD, 10 * US, 4 * US)])
    (profiled,) = [one for one in diagnose(memory_trace(rows)) if one.code == "overhead-bound"]
    assert profiled.severity == "warning"
    assert profiled.gain is not None
    assert profiled.gain.text.endswith("per step (the profiler's cost included)")
    (known,) = [
        one for one in diagnose(memory_trace(rows), unprofiled=unprofiled(50)) if one.code == "overhead-bound"
    ]
    assert known.severity == "critical"
    assert known.gain_ns == 46 * US


def test_the_profilers_cost_is_said_where_it_is_known() -> None:
    rows = gpu([(ADD, 10 * US, 4 * US)])
    found = {one.code: one for one in diagnose(memory_trace(rows), unprofiled=unprofiled(50))}
    assert found["profiler-overhead"].what == "a step takes 100 us with the profiler and 50 us without it"
    assert "profiler-overhead" not in {
        one.code for one in diagnose(memory_trace(rows), unprofiled=unprofiled(95))
    }


def test_a_slower_step_without_a_profiler_has_the_range_of_its_trials_or_of_its_steps() -> None:
    rows = gpu([(ADD, 10 * US, 4 * US)])

    def said(trials: int) -> str:
        twin = UnprofiledStep(130 * US, 120 * US, 150 * US, trials, 10, "wall")
        found = {one.code: one.what for one in diagnose(memory_trace(rows), unprofiled=twin)}
        return found["slower-twin"]

    assert "130 us without a profiler (medians of 2 trials: 120 to 150 us)" in said(2)
    assert "130 us without a profiler (half of the 10 steps of one trial: 120 to 150 us)" in said(1)


def test_kernels_of_the_compiler_are_rows_of_one_finding() -> None:
    names = [f"triton_poi_fused_gelu_mul_{number}" for number in range(7)]
    rows = gpu([(name, 10 * US + place * 10 * US, 5 * US) for place, name in enumerate(names)])
    (found,) = [one for one in diagnose(memory_trace(rows)) if one.code == "inductor-fusion"]
    assert {row.name for row in found.rows} == set(names)
    assert {(row.calls, row.total_ns, row.detail) for row in found.rows} == {(3, 15 * US, "gelu + mul")}
    assert found.what.startswith(
        "7 kernels; the one with most time, triton_poi_fused_gelu_mul_0 fuses gelu + mul"
    )


def test_no_launch_has_gpu_work_while_a_graph_is_captured() -> None:
    """The launches of a capture run nothing: an idle GPU tells nothing then."""
    rows = gpu([(ADD, 10 * US, 4 * US)])
    captured: list[Row] = [("api", LAUNCH, 30 * US + at * US, 500, "main") for at in range(40)]
    captured += [("api", LAUNCH, 130 * US + at * US, 500, "main") for at in range(40)]
    assert ask(rows, "overhead-bound")
    for rule in ("overhead-bound", "low-utilization", "tiny-kernels"):
        assert ask([*rows, *captured], rule) == []


def test_a_long_launch_while_the_gpu_works_waited_for_its_queue() -> None:
    """A launch of 300 us among short ones: the GPU has work all along, or none."""
    short: list[Row] = [("api", LAUNCH, at * US, 500, "main") for at in range(12)]
    long: list[Row] = [step(0, 0, 600 * US), *short, ("api", LAUNCH, 50 * US, 300 * US, "main")]
    assert ask(long, "buffer-request")
    busy = ("kernel", ADD, 40 * US, 400 * US, "stream 7", {"launch": 1})
    assert ask([*long, busy], "buffer-request") == []


def test_a_buffer_request_is_told_of_a_step_that_does_not_count() -> None:
    """Step 0 is cold (900 us beside 300 us): its request of 200 us is told, and explains no idle time."""
    steps = [step(0, 0, 900 * US), step(1, 900 * US, 300 * US), step(2, 1200 * US, 300 * US)]
    (found,) = ask([*steps, REQUEST], "buffer-request")
    assert found.what == (
        "1 time Activity Buffer Request inside step 0, 200 us in all; step 0 is left out of all shares"
    )
    assert found.evidence["steps"] == [0]


def test_a_buffer_request_before_the_first_step_is_no_finding() -> None:
    assert ask([step(0, 300 * US, 900 * US), REQUEST], "buffer-request") == []


def test_a_buffer_request_of_a_left_out_step_accounts_for_no_idle_time() -> None:
    """The same request of 200 us in steps of 900 us: in step 0, which is cold, and in step 1."""
    steps = [step(0, 0, 2900 * US), step(1, 2900 * US, 900 * US), step(2, 3800 * US, 900 * US)]
    for start, idle in ((100 * US, 0.0), (3000 * US, 100 * US)):
        rows = [*steps, ("overhead", "Activity Buffer Request", start, 200 * US, "main")]
        (hit,) = buffer_request.find(Context(memory_trace(rows)))
        assert hit.idle_ns == idle


def test_a_long_launch_is_told_with_its_step() -> None:
    """A launch of 300 us in step 0, which is cold; 12 short ones in steps 0 to 2."""
    short: list[Row] = [("api", LAUNCH, 10 + at * 100 * US, 500, "main") for at in range(12)]
    steps = [step(0, 0, 900 * US), step(1, 900 * US, 200 * US), step(2, 1100 * US, 200 * US)]
    (found,) = ask([*steps, *short, ("api", LAUNCH, 50 * US, 300 * US, "main")], "buffer-request")
    assert "1 launch call takes over 200 us inside step 0 (median 500 ns)" in found.what
    assert found.what.endswith("; step 0 is left out of all shares")


def test_every_warning_about_the_program_says_what_could_be_gained(real: Callable[..., Trace]) -> None:
    for name in ("train", "transformer", "mlp", "rep1_mlp_compile"):
        for one in diagnose(real(f"h200/torch/{name}.json.gz")):
            if one.severity != "info":
                assert one.gain is not None
                assert 0 < one.gain.ns <= one.gain.step_ns
                assert one.gain_share == one.gain.ns / one.gain.step_ns
                assert one.bound.endswith(".")


def test_work_that_the_step_does_not_wait_for_gains_nothing(real: Callable[..., Trace]) -> None:
    """75 us of 1.3 ms are in TF32, but the GPU waits for the host between the kernels."""
    found = {one.code: one for one in diagnose(real("h200/torch/transformer.json.gz"))}
    tf32 = found["tf32-gemm"]
    assert (tf32.gain_ns, tf32.severity) == (0, "info")
    assert tf32.work_ns == pytest.approx(75_262 / 2, rel=0.01)
