"""What must hold on real recordings: same against same, eager against compiled, twins, and known changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profrun.analysis.compare import ComparedTrial, Comparison, compare, read_trial
from profrun.analysis.compare.model import By
from profrun.analysis.compare.stats import estimate, verdict
from profrun.collectors.normalize import normalize
from profrun.errors import UsageError
from profrun.traces.trace import Trace
from tests.analysis.compare.conftest import Recorded
from tests.analysis.compare.recordings import (
    changed,
    five_percent_longer,
    two_steps_as_one,
    without_gelu_kernel,
)
from tests.analysis.conftest import Open
from tests.cli.running import call
from tests.conftest import ROOT, first, shared_data

TORCH = "h200/torch/"
REPEATS = [f"{TORCH}rep{number}_mlp" for number in (1, 2, 3)]
COMPILED = [f"{TORCH}rep{number}_mlp_compile" for number in (1, 2, 3)]


def _codes(found: Comparison) -> set[str]:
    return {one.code for one in found.reasons if one.stops}


def _sums_hold(found: Comparison) -> None:
    """Rows add up to the GPU part, parts to the total, and the rest is shown."""
    assert found.total_delta_ns is not None
    parts = {part.name: part.delta_ns for part in found.parts}
    assert found.total_delta_ns == pytest.approx(sum(parts.values()))
    assert sum(row.delta_ns for row in found.kernels) == pytest.approx(parts["gpu"], abs=1e-3)
    explained = sum(row.delta_ns for row in found.rows)
    assert found.unexplained_ns == pytest.approx(found.total_delta_ns - explained, abs=1e-3)
    a, b = found.sides
    assert found.total_delta_ns == pytest.approx(b.typical_ns - a.typical_ns)


@pytest.mark.parametrize(("one", "two", "three"), [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_repeats_are_never_faster_or_slower(recorded: Recorded, one: int, two: int, three: int) -> None:
    for a, b in (([one], [two]), ([one, two], [three])):
        found = compare([recorded(REPEATS[n]) for n in a], [recorded(REPEATS[n]) for n in b])
        assert found.verdict in ("same", "inconclusive")
        assert {row.status for row in found.kernels} == {"unclear"}  # a side of one trial proves nothing
        assert _codes(found) == set()


def _half(trial: ComparedTrial, odd: int) -> ComparedTrial:
    """Every second step of a trial, as a trial of its own."""
    from dataclasses import replace

    conditions = replace(trial.conditions, fingerprint=f"{trial.conditions.fingerprint}/{odd}")
    return replace(trial, conditions=conditions, samples=trial.samples[2 + odd :: 2])


def test_halves_of_three_repeats_are_the_same(recorded: Recorded) -> None:
    """Three trials a side with real noise: an interval there is, and it says 'same'."""
    found = compare(
        [_half(recorded(name), 0) for name in REPEATS], [_half(recorded(name), 1) for name in REPEATS]
    )
    assert found.ci95 is not None
    assert found.ci95[0] <= 1 <= found.ci95[1]
    assert found.verdict in ("same", "inconclusive")


def _unprofiled(name: str) -> list[list[float]]:
    """Step times by GPU events of each process that ran this workload without a profiler."""
    rows = [json.loads(line) for line in shared_data("h200/truth.jsonl").read_text().splitlines()]
    return [row["event_ms"] for row in rows if (row["name"], row["blocking"]) == (name, "0")]


@pytest.mark.parametrize("name", ["mlp", "mlp_compile", "transformer"])
@pytest.mark.parametrize("one", [(0, 1), (0, 2), (0, 3)])
def test_four_processes_two_against_two_raise_no_alarm(name: str, one: tuple[int, int]) -> None:
    trials = _unprofiled(name)
    assert [len(trial) for trial in trials] == [20, 20, 20, 20]
    a = [trials[number] for number in one]
    b = [trial for number, trial in enumerate(trials) if number not in one]
    assert verdict(estimate(a, b)) not in ("faster", "slower")


def test_four_processes_of_two_workloads_tell_them_apart() -> None:
    found = estimate(_unprofiled("transformer"), _unprofiled("mlp"))
    assert verdict(found) == "faster"
    assert found.ratio < 0.7


def test_compiled_mlp_fuses_gelu_and_mul_and_keeps_the_gemms(recorded: Recorded) -> None:
    found = compare([recorded(f"{TORCH}mlp")], [recorded(f"{TORCH}mlp_compile")])
    _sums_hold(found)
    (fused,) = [row for row in found.kernels if row.status == "replaced"]
    assert fused.b_names == ("triton_poi_fused_gelu_mul",)
    assert fused.by == "fusion"
    assert len(fused.a_names) == 2
    assert any("Gelu" in name for name in fused.a_names)
    assert any("BinaryFunctor" in name for name in fused.a_names)
    assert (fused.a_calls, fused.b_calls) == (2, 1)
    gemms = [row for row in found.kernels if row.category == "gemm"]
    assert [row.status for row in gemms] == ["unclear", "unclear"]
    assert sum(row.a_calls for row in gemms) == sum(row.b_calls for row in gemms) == 3
    assert found.trials == (1, 1)
    assert (found.verdict, found.ci95) == ("inconclusive", None)
    assert found.trials_needed is not None
    assert found.exit_code == 2


@pytest.mark.thorough
def test_three_repeats_prove_what_compiling_does_to_the_gpu(recorded: Recorded) -> None:
    found = compare([recorded(name) for name in REPEATS], [recorded(name) for name in COMPILED])
    _sums_hold(found)
    gpu = next(metric for metric in found.metrics if metric.name == "GPU work")
    assert gpu.verdict == "faster"
    assert gpu.ci95 is not None
    assert gpu.ci95[1] < 1
    fused = next(row for row in found.kernels if row.status == "replaced")
    assert fused.ci95 is not None
    assert fused.ci95[1] < 0.9


def test_categories_have_intervals_with_repeats(recorded: Recorded) -> None:
    found = compare([recorded(name) for name in REPEATS], [recorded(name) for name in COMPILED])
    rows = {row.name: row for row in found.categories}
    assert set(rows) == {"gemm", "elementwise", "memset"}
    assert rows["elementwise"].status == "faster"
    assert rows["elementwise"].ci95 is not None
    assert rows["elementwise"].ci95[1] < 0.9
    assert rows["gemm"].ci95 is not None
    assert sum(row.delta_ns for row in found.categories) == pytest.approx(
        sum(row.delta_ns for row in found.kernels)
    )


def test_a_bias_goes_into_the_gemm(recorded: Recorded) -> None:
    found = compare([recorded(f"{TORCH}matmul_add_4096")], [recorded(f"{TORCH}matmul_add_4096_compile")])
    _sums_hold(found)
    replaced = next(row for row in found.kernels if row.status == "replaced")
    assert (replaced.by, replaced.a_calls, replaced.b_calls) == ("fusion", 2, 1)
    assert "epilogue none -> bias" in replaced.changes
    assert "_bias_" in replaced.b_names[0]
    assert {row.status for row in found.kernels} == {"replaced", "unclear"}  # the fill stays


def test_a_larger_batch_is_refused_without_shapes(tmp_path: Path) -> None:
    """The layer norms of both variants tell: 2048 rows per step against 65536."""
    trials = []
    for variant in ("baseline", "optimised"):
        file = ROOT / f"tests/data/h200/transformer/{variant}-torch-r1/rank0/pt.trace.json.gz"
        normalize([file], tmp_path / variant)
        with Trace(tmp_path / variant) as trace:
            trials.append(read_trial(trace, label=variant))
    a, b = trials
    assert a.work.matrix_flops is None
    found = compare([a], [b])
    assert _codes(found) == {"work"}
    assert "but with 524 288 and 16 777 216 threads per step" in str(found.reasons[0])


def test_different_work_has_no_number_unless_it_is_divided(recorded: Recorded) -> None:
    a, b = recorded(f"{TORCH}transformer"), recorded(f"{TORCH}transformer_optim")
    found = compare([a], [b])
    assert (found.verdict, found.exit_code) == ("incomparable", 2)
    assert (found.ratio, found.ci95, found.rows, found.kernels, found.parts) == (None, None, (), (), ())
    (stop,) = [one for one in found.reasons if one.stops]
    assert stop.what.startswith("different work per step: 13.42 GFLOP of matrix work against 687.2")
    per = compare([a], [b], per="token")
    assert [(side.per) for side in per.sides] == [16 * 128, 32 * 2048]
    assert per.ratio == pytest.approx(2694856 / 65536 / (1222169 / 2048))
    _sums_hold(per)
    assert compare([a], [b], per="2048,65536").ratio == pytest.approx(per.ratio)
    with pytest.raises(UsageError, match="does not tell its batch"):
        compare([a], [b], per="batch")


def test_blocking_is_no_comparison_of_its_own(recorded: Recorded) -> None:
    found = compare([recorded(f"{TORCH}mlp")], [recorded(f"{TORCH}mlp_blocking")])
    assert _codes(found) == {"blocking"}
    allowed = compare([recorded(f"{TORCH}mlp")], [recorded(f"{TORCH}mlp_blocking")], allow=["blocking"])
    assert allowed.ratio is not None
    assert [one.code for one in allowed.reasons if one.allowed] == ["blocking"]


PAIRS = [
    "gaunernst_bert-small-uncased__1016001",
    "Qwen_Qwen1.5-0.5B-Chat__1016005",
]


@pytest.mark.parametrize("model", PAIRS)
@pytest.mark.parametrize("by", first(1, ["op", "category", "kernel"]))
def test_h100_and_mi300x_are_brought_together(recorded: Recorded, model: str, by: str) -> None:
    found = compare(
        [recorded(f"amd/kineto-h100-counterparts/h100/{model}")],
        [recorded(f"amd/kineto-rocm-tracelens/mi300/{model}")],
        by=by,  # type: ignore[arg-type]  # one of the three words above
    )
    assert _codes(found) == set()
    _sums_hold(found)
    for side in found.sides:
        assert side.aligned_share is not None
        assert side.aligned_share >= 0.95
        assert side.attributed_share is not None
        assert side.attributed_share >= 0.95
    assert found.vendors is not None
    a, b = found.vendors.rates[0].a, found.vendors.rates[0].b
    assert a is not None
    assert b is not None
    assert a.flops == b.flops
    assert a.peak_tflops != b.peak_tflops
    for rate in (a, b):
        assert rate.share is not None
        assert 0 < rate.share < 1


def test_attention_of_two_vendors_is_one_op(recorded: Recorded) -> None:
    a, b = (
        recorded(f"amd/{folder}/{PAIRS[0]}")
        for folder in ("kineto-h100-counterparts/h100", "kineto-rocm-tracelens/mi300")
    )
    rows = {row.name: row for row in compare([a], [b], by="op").rows}
    attention = rows["aten::_flash_attention_forward"]
    assert attention.a_names[0].startswith("pytorch_flash::flash_fwd_kernel")
    assert attention.b_names == ("attn_fwd",)
    assert attention.a_calls == attention.b_calls == 4


# What is done to a recording on purpose must come out.


@pytest.mark.thorough
def test_five_percent_longer_is_slower(recorded: Recorded) -> None:
    a = [recorded(name) for name in REPEATS]
    b = [changed(name, five_percent_longer) for name in REPEATS]
    found = compare(a, b)
    assert found.verdict == "slower"
    assert found.exit_code == 1
    assert found.ratio == pytest.approx(1.05, abs=0.001)
    assert found.ci95 is not None
    assert found.ci95[0] <= 1.05 <= found.ci95[1]
    big = [row for row in found.kernels if row.a_ns > 10_000]
    assert {row.status for row in big} == {"slower"}
    for row in big:
        assert row.ratio == pytest.approx(1.05, abs=0.002)
    back = compare(b, a)
    assert back.verdict == "faster"
    assert found.ratio is not None
    assert back.ratio == pytest.approx(1 / found.ratio)
    assert found.total_delta_ns is not None
    assert back.total_delta_ns == pytest.approx(-found.total_delta_ns)


def test_swapping_sides_swaps_the_rows(recorded: Recorded) -> None:
    a, b = [recorded(f"{TORCH}mlp")], [recorded(f"{TORCH}mlp_compile")]
    forward, back = compare(a, b), compare(b, a)
    mirrored = {(row.b_names, row.a_names): row.delta_ns for row in back.kernels}
    assert {(row.a_names, row.b_names) for row in forward.kernels} == set(mirrored)
    for row in forward.kernels:
        assert mirrored[(row.a_names, row.b_names)] == pytest.approx(-row.delta_ns)


def test_a_dropped_kernel_is_removed(recorded: Recorded) -> None:
    found = compare([recorded(REPEATS[0])], [changed(REPEATS[1], without_gelu_kernel)])
    (gone,) = [row for row in found.kernels if row.status == "removed"]
    assert "Gelu" in gone.name
    assert gone.delta_ns == -gone.a_ns
    assert gone.b_calls == 0
    _sums_hold(found)


def test_two_steps_in_one_are_more_work_not_slower(recorded: Recorded) -> None:
    found = compare([recorded(REPEATS[0])], [changed(REPEATS[1], two_steps_as_one)])
    assert found.verdict == "incomparable"
    assert _codes(found) == {"work"}
    assert "(2 times)" in found.reasons[0].what
    # Divided by the work it is the same again, within the noise of two single trials.
    per = compare([recorded(REPEATS[0])], [changed(REPEATS[1], two_steps_as_one)], per="gflop")
    assert per.ratio == pytest.approx(1.0, abs=0.1)


def test_a_recording_is_not_compared_with_itself(recorded: Recorded) -> None:
    found = compare([recorded(REPEATS[0])], [recorded(REPEATS[0])])
    assert _codes(found) == {"same_recording"}
    assert found.ratio is None
    twice = compare([recorded(REPEATS[0]), recorded(REPEATS[0])], [recorded(REPEATS[1])])
    assert _codes(twice) == {"same_recording"}


def test_views_of_one_difference_agree(recorded: Recorded) -> None:
    a, b = [recorded(f"{TORCH}mlp")], [recorded(f"{TORCH}mlp_compile")]
    totals = set()
    views: tuple[By, ...] = ("kernel", "op", "range", "module", "category")
    for by in views:
        found = compare(a, b, by=by)
        totals.add(round(sum(row.delta_ns for row in found.rows), 3))
        _sums_hold(found)
    assert len(totals) == 1
    ops = {row.name: row for row in compare(a, b, by="op").rows}
    assert (ops["aten::mm"].a_calls, ops["aten::mm"].b_calls) == (5, 5)  # three GEMMs, two fills
    assert (ops["mlp_fwd"].a_calls, ops["mlp_fwd"].b_calls) == (2, 1)  # gelu and mul against one kernel
    steps = compare(a, b, by="step").rows
    assert [row.a_ns for row in steps] == [504319, 333212, 277341]


def test_two_tools_saw_the_same_kernels_in_the_same_places(real: Open) -> None:
    """The training step under torch's profiler and under nsys: every kernel is matched by name, as often, and
    forward, backward and optimizer launch the same number of kernels by either tool's ranges."""
    a = read_trial(real("h200/torch/train.json.gz"), label="torch")
    b = read_trial(real("h200/nsys/train.sqlite"), label="nsys")
    assert _codes(compare([a], [b])) == {"collector"}  # same kernels and grids: the same work
    found = compare([a], [b], allow=["collector"])
    assert {row.by for row in found.kernels} == {"name"}
    assert all(row.a_calls == pytest.approx(row.b_calls) for row in found.kernels)
    assert sum(row.a_calls for row in found.kernels if not row.name.startswith("Mem")) == 313
    ranges = {row.name: row for row in compare([a], [b], allow=["collector"], by="range").rows}
    for name, calls in (("forward", 106), ("backward", 238), ("optimizer", 16)):
        assert (ranges[name].a_calls, ranges[name].b_calls) == (calls, calls)
        assert ranges[name].ratio == pytest.approx(1.0, abs=0.02)


def test_ranks_are_one_step_as_long_as_the_slowest(real: Open) -> None:
    trial = read_trial(real("h200/ddp/ddp_rank0.json.gz", "h200/ddp/ddp_rank1.json.gz"))
    assert trial.conditions.ranks == 2
    by_step: dict[int, list[int]] = {}
    for unit in trial.samples:
        by_step.setdefault(unit.step, []).append(unit.time_ns)
    assert {len(times) for times in by_step.values()} == {2}
    assert trial.times == [max(times) for times in by_step.values()]
    one = compare([trial], [read_trial(real("h200/torch/train.json.gz"))])
    assert "ranks" in _codes(one)


def test_kernels_under_replay_are_not_compared(real: Open) -> None:
    counters = read_trial(real("h200/ncu/mlp_raw.csv"))
    found = compare([counters], [read_trial(real("h200/nsys/mlp.sqlite"))])
    assert "replayed" in _codes(found)
    assert found.ratio is None


def test_a_baseline_is_compared_by_name(
    real: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repeats = [str(real(f"h200/torch/rep{number}_mlp.json.gz").path) for number in (1, 2)]
    compiled = str(real("h200/torch/rep1_mlp_compile.json.gz").path)
    kept = tmp_path / "kept"
    assert call(capsys, "baseline", "save", "main", *repeats, "--dir", kept).code == 0
    found = call(capsys, "baseline", "compare", "main", compiled, "--dir", kept, "--json")
    assert found.code == 2  # one trial against two
    direct = call(capsys, "compare", *repeats, "vs", compiled, "--json")
    # Labels of a baseline's trials are those they were saved with.
    assert found.json["kernels"] == direct.json["kernels"]
    assert found.json["verdict"] == "inconclusive"
    missing = call(capsys, "baseline", "compare", "other", compiled, "--dir", kept)
    assert (missing.code, "there are main" in missing.err) == (64, True)
    gated = call(
        capsys,
        "baseline",
        "compare",
        "main",
        compiled,
        "--dir",
        kept,
        "--fail-on",
        "slower > 3%",
        "--markdown",
    )
    assert gated.code == 2
    assert "| `slower > 3%` | inconclusive |" in gated.out


def test_json_has_the_agreed_keys(real: Open, capsys: pytest.CaptureFixture[str]) -> None:
    plain, compiled, blocking = (
        str(real(f"h200/torch/{name}.json.gz").path) for name in ("mlp", "mlp_compile", "mlp_blocking")
    )
    found = call(capsys, "compare", plain, "vs", compiled, "--json").json
    assert {"verdict", "ratio", "ci95", "mde", "trials", "kernels", "reasons"} <= set(found)
    assert {"name", "category", "a_ns", "b_ns", "delta_ns", "status"} <= set(found["kernels"][0])
    twins = call(capsys, "blocking", plain, "vs", blocking, "--json").json
    assert {"ratio", "ci95", "per_op", "kernel_multiset_equal", "overlap_ns"} <= set(twins)
    assert twins["kernel_multiset_equal"] is True
    refused = call(capsys, "compare", plain, "vs", blocking, "--json")
    assert refused.code == 2
    assert (refused.json["verdict"], refused.json["ratio"], refused.json["kernels"]) == (
        "incomparable",
        None,
        [],
    )
