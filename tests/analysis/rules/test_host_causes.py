"""Host work that is a cause of its own: above all, what is compiling and what is running compiled code."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.rules.host_causes import (
    allocation_slices,
    compile_slices,
    is_compile_work,
    loader_slices,
    profiler_slices,
)
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step
from tests.conftest import ROOT

COMPILE = ROOT / "tests/data/compile"
STEP: list[Row] = [step(0, 0, 1000), step(1, 1000, 1000)]


@pytest.mark.parametrize(
    "name",
    [
        "_compile.compile_inner (dynamo_timed)",
        "OutputGraph.call_user_compiler (dynamo_timed)",
        "compile_fx_inner (dynamo_timed)",
        "entire_frame_compile",
        "entire_backward_compile",
        "FusionKernelRuntime::compileFusionParallel",
        "KernelExecutor::compile",
    ],
)
def test_work_of_a_compiler(name: str) -> None:
    assert is_compile_work(name)


@pytest.mark.parametrize(
    "name",
    [
        "CompiledFunction",
        "CompiledFunctionBackward",
        "autograd::engine::evaluate_function: CompiledFunctionBackward",
        "Torch-Compiled Region: 0/3",
        "## Call CompiledFxGraph fud64jsrxcxliekg7lptyw24yz5k3oa65b73wjfbhz6j2fg6ouu7 ##",
        "TorchDynamo Cache Lookup",
        "Compiled step",
        "aten::compile_fx",
    ],
)
def test_running_compiled_code_is_none(name: str) -> None:
    assert not is_compile_work(name)


@pytest.mark.parametrize(
    ("kind", "name", "find"),
    [
        ("op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", loader_slices),
        ("range", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", loader_slices),
        ("op", "compile_fx_inner (dynamo_timed)", compile_slices),
        ("api", "cudaMalloc", allocation_slices),
        ("api", "hipFree", allocation_slices),
        ("overhead", "Buffer Flush", profiler_slices),
    ],
)
def test_only_inside_the_steps(kind: str, name: str, find: object) -> None:
    rows = [(kind, name, -50, 10, "main"), *STEP, (kind, name, 500, 10, "main")]
    assert list(find(Context(memory_trace(rows)))) == [3]  # type: ignore[operator]


def recompilation(folder: Path, name: str) -> list[str]:
    normalize([COMPILE / f"{name}.json.gz"], folder / name)
    with Trace(folder / name) as trace:
        return [one.what for one in diagnose(trace) if one.code == "recompilation"]


def test_a_real_program_that_compiles_in_each_step_and_one_that_does_not(tmp_path: Path) -> None:
    """Both run version 2 or later of their function, and CompiledFunctionBackward."""
    (said,) = recompilation(tmp_path, "recompiled")
    assert said.startswith("the compiler works 123.8 ms per step (4 times in 4 steps)")
    assert "Torch-Compiled Region: 0/6" in said
    assert recompilation(tmp_path, "cached") == []


def test_what_compiling_costs_is_said_per_step(tmp_path: Path) -> None:
    normalize([COMPILE / "recompiled.json.gz"], tmp_path / "t")
    with Trace(tmp_path / "t") as trace:
        first = diagnose(trace)[0]
        asked = "SELECT sum(dur_ns)::BIGINT FROM slices WHERE name = '{}'"
        whole = trace.sql(asked.format("entire_frame_compile")).scalar()
    assert first.code == "recompilation"
    assert first.gain_ns is not None
    assert first.gain_ns == pytest.approx(whole / 4, rel=0.02)  # parts of it have ranges of their own
    assert first.gain_share is not None
    assert first.gain_share > 0.7
    assert first.severity == "warning"  # host time under a profiler


def test_a_region_that_starts_long_after_its_look_up_was_compiled_between() -> None:
    """Where a tool records no range of the compiler."""
    ms = 1_000_000
    rows = [
        step(0, 0, 100 * ms),
        ("op", "TorchDynamo Cache Lookup", 1 * ms, 20_000, "main"),
        ("op", "Torch-Compiled Region: 0/1", 41 * ms, 5 * ms, "main"),
        ("op", "TorchDynamo Cache Lookup", 60 * ms, 20_000, "main"),
        ("op", "Torch-Compiled Region: 0/2", 60 * ms + 50_000, 5 * ms, "main"),
        ("op", "Torch-Compiled Region: 1/0", 90 * ms, 5 * ms, "main"),  # without a look-up of its own
    ]
    (found,) = [one for one in diagnose(memory_trace(rows)) if one.code == "recompilation"]
    assert found.gain_ns == 40 * ms - 20_000
    assert found.evidence["names"] == ["Torch-Compiled Region: 0/1"]
