"""Energy per step of runs with counters of known power."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from profrun.analysis.trace.energy import counted_energy, sampled_gpus, step_energy
from profrun.analysis.trace.readings import Readings
from profrun.collectors.normalize import normalize
from profrun.contract.codec import to_json
from profrun.contract.sampling import Quantity, SampledSource, SamplesHeader
from profrun.contract.steps import Anchor, StepsDevice, StepsFile, StepTime
from profrun.traces.trace import Trace
from tests.analysis.sampled_runs import MS, piecewise, read_counter, sampled_run

TIMES = np.arange(-987, 12_000, 100.0)


def gpu(busy_watts: float, idle_watts: float = 120) -> dict[Quantity, Readings]:
    """A GPU that is busy from 0 to 10 s, and its readings of power at one moment."""
    energy = piecewise((-2000, idle_watts), (0, busy_watts), (10_000, idle_watts))
    power = np.where((TIMES >= 0) & (TIMES < 10_000), busy_watts, idle_watts)
    return {
        "energy": read_counter(energy, TIMES),
        "power": Readings((TIMES * MS).astype(np.int64), power.astype(np.float64)),
    }


def test_a_step_of_100_ms_at_700_w_costs_70_j(tmp_path: Path) -> None:
    found = step_energy(sampled_run(tmp_path / "t", {0: gpu(700)}))
    assert found is not None
    assert found.joules == pytest.approx(70.0)
    assert found.watts == pytest.approx(700)
    assert (found.steps, found.length_ns, found.gpus, found.why) == (100, 10_000 * MS, 1, None)
    assert found.resolution == pytest.approx(0.02)
    assert found.integral_j == pytest.approx(70.0, rel=0.02)  # each reading holds until the next


def test_the_gpus_of_a_trial_add_up_and_each_counts_once(tmp_path: Path) -> None:
    """Devices 0, 2 and 4 are one GPU, seen by three processes, and so are 1 and 3; 0 has no readings."""
    gpus = {1: gpu(300), 2: gpu(700), 4: gpu(700)}
    trace = sampled_run(tmp_path / "t", gpus, uuids=("GPU-x", "y", "x", "GPU-Y", "x"))
    found = step_energy(trace)
    assert sampled_gpus(trace) == (1, 2)
    assert found is not None
    assert found.joules == pytest.approx(100.0)
    assert found.gpus == 2


def test_a_gpu_that_did_not_work_for_the_trial_is_left_out(tmp_path: Path) -> None:
    kernel = [("kernel", "k", 0, MS, "stream 7")]
    trace = sampled_run(tmp_path / "t", {0: gpu(700), 1: gpu(300)}, uuids=("x", "y"), slices=kernel)
    found = step_energy(trace)
    assert found is not None
    assert found.joules == pytest.approx(70.0)
    assert found.gpus == 1


def test_too_few_steps_are_refused_with_the_number_that_is_enough(tmp_path: Path) -> None:
    found = step_energy(sampled_run(tmp_path / "t", {0: gpu(700)}, steps=4))
    assert found is not None
    assert found.joules is None
    assert found.why == "400 ms of steady steps; 4 s are needed: run at least 42 steady steps"
    enough = step_energy(sampled_run(tmp_path / "u", {0: gpu(700)}, steps=42))
    assert enough is not None
    assert enough.joules == pytest.approx(70.0)


def test_steps_that_a_profiler_disturbs_do_not_count(tmp_path: Path) -> None:
    """Steps 0 to 8 are too short for the counter; the profiler disturbs 9 to 19, and 80 are left."""
    trace = sampled_run(tmp_path / "t", {0: gpu(700)}, window=(10, 20), collector="torch")
    found = step_energy(trace)
    assert found is not None
    assert found.joules == pytest.approx(70.0)
    assert found.steps == 80


def test_a_gpu_without_a_counter_has_no_energy(tmp_path: Path) -> None:
    power_only: dict[Quantity, Readings] = {"power": gpu(700)["power"]}
    alone = step_energy(sampled_run(tmp_path / "t", {0: power_only}))
    assert alone is not None
    assert (alone.joules, alone.integral_j) == (None, None)
    assert alone.why == "no GPU has an energy counter that could be read"
    both = step_energy(sampled_run(tmp_path / "u", {0: gpu(700), 1: power_only}, uuids=("x", "y")))
    assert both is not None
    assert both.why == "1 of 2 GPUs lacks an energy counter that could be read"


def test_readings_that_end_early_are_named(tmp_path: Path) -> None:
    early = gpu(700)["energy"]
    trace = sampled_run(tmp_path / "t", {0: {"energy": early.between(-2000 * MS, 3000 * MS)}})
    found = step_energy(trace)
    assert found is not None
    assert found.why == "10 s of steady steps, of which the counter covers 2.71 s; 4 s are needed"


def test_without_samples_or_steps_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert step_energy(sampled_run(tmp_path / "t", {})) is None
    assert step_energy(sampled_run(tmp_path / "u", {0: gpu(700)}, steps=0)) is None


def test_only_the_steps_at_the_steady_level_count(tmp_path: Path) -> None:
    """20 steps of 100 ms at 400 W, then 60 of 150 ms at 700 W: the second phase lasts longer."""
    energy = piecewise((-2000, 120), (0, 400), (2000, 700), (11_000, 120))
    rng = np.random.default_rng(0)
    durs = np.concatenate((np.full(20, 100.0), np.full(60, 150.0))) * rng.normal(1, 0.002, 80)
    counter = read_counter(energy, np.arange(-987, 13_000, 100.0))
    found = step_energy(sampled_run(tmp_path / "t", {0: {"energy": counter}}, step_ms=durs.tolist()))
    assert found is not None
    assert found.steps == 60
    assert found.watts == pytest.approx(700, rel=0.02)
    assert found.joules == pytest.approx(105, rel=0.02)


def test_the_bounds_are_wider_where_the_age_of_the_values_was_not_measured(tmp_path: Path) -> None:
    def width(vendor: str) -> float:
        trace = sampled_run(tmp_path / vendor, {0: gpu(700)}, vendor=vendor)
        found = counted_energy(trace, 0, 0, 10_000 * MS)
        assert found is not None
        assert found.watts == pytest.approx(700, rel=0.01)
        assert found.low_j is not None
        assert found.high_j is not None
        return found.high_j - found.low_j

    assert width("amd") > width("nvidia") + 700 * 0.1


def test_the_files_of_a_trial_give_its_energy(tmp_path: Path) -> None:
    """100 steps of 100 ms at 700 W, in the files that the hook and the sampler write."""
    epoch = 1_700_000_000_000_000_000
    anchor = Anchor(epoch, 300, 400)
    steps = StepsFile(
        rank=0,
        pid=10,
        how="optimizer",
        clock="cuda_event",
        anchor=anchor,
        host="h",
        device=StepsDevice("nvidia", 0, "NVIDIA H200", uuid="GPU-ABC"),
        steps=tuple(StepTime(number, epoch + number * 100 * MS, 100 * MS) for number in range(100)),
    )
    (tmp_path / "steps.json").write_text(json.dumps(to_json(steps)))
    source = SampledSource("gpu", ("power", "energy"), vendor="nvidia", index=0, uuid="abc", name="H200")
    lines = [json.dumps(to_json(SamplesHeader("h", 1, anchor, 10.0, (source,))))]
    counter = read_counter(piecewise((-2000, 120), (0, 700), (10_000, 120)), TIMES)
    for at, joules in zip(counter.times.tolist(), counter.values.tolist(), strict=True):
        lines.append(json.dumps([epoch + at, 0, 700.0 if 0 <= at < 10_000 * MS else 120.0, joules]))
    (tmp_path / "samples.h.jsonl").write_text("\n".join(lines) + "\n")
    normalize([tmp_path / "steps.json"], tmp_path / "trace", samples=[tmp_path / "samples.h.jsonl"])
    with Trace(tmp_path / "trace") as trace:
        found = step_energy(trace)
    assert found is not None
    assert found.joules == pytest.approx(70.0)
    assert (found.steps, found.gpus) == (100, 1)
