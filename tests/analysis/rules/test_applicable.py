"""A finding asks only for experiments that can change the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from profrun.analysis.rules.applicable import applicable
from profrun.analysis.rules.diagnose import diagnose
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step

ASKED = ("compile=default", "fused-optimizer", "cudnn-benchmark")
FORWARD: Row = ("op", "aten::addmm", 10, 20, "main")


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ([FORWARD], "compile=default"),
        ([FORWARD, ("op", "autograd::engine::evaluate_function: X", 40, 20, "main")], "fused-optimizer"),
        ([FORWARD, ("op", "AddmmBackward0, seq = 7", 40, 20, "main")], "fused-optimizer"),
        ([FORWARD, ("op", "CompiledFunctionBackward", 40, 20, "main")], "fused-optimizer"),
        ([FORWARD, ("range", "Optimizer.step#AdamW.step", 70, 20, "main")], "fused-optimizer"),
        ([FORWARD, ("op", "aten::cudnn_convolution", 40, 20, "main")], "cudnn-benchmark"),
        ([FORWARD, ("api", "cudaGraphLaunch", 40, 20, "main")], "fused-optimizer cudnn-benchmark"),
        ([("api", "cudaLaunchKernel", 10, 20, "main")], "fused-optimizer cudnn-benchmark"),  # not of torch
    ],
)
def test_what_cannot_change_the_program_is_not_asked_for(rows: Sequence[Row], left: str) -> None:
    trace = memory_trace([step(0, 0, 100), *rows])
    assert set(applicable(trace, ASKED)) == {"compile=default", *left.split()}
    assert applicable(trace, ("compile=default", "tf32")) == ("compile=default", "tf32")


@pytest.mark.parametrize(
    ("name", "asked", "others"),
    [
        ("train", {"compile=default", "fused-optimizer"}, {"cudnn-benchmark"}),
        ("mlp", {"compile=default", "autocast=bfloat16"}, {"cudnn-benchmark", "fused-optimizer"}),
        ("matmul_add_64", {"compile=default", "cuda-graphs"}, {"fused-optimizer"}),
    ],
)
def test_findings_of_real_programs(
    real: Callable[..., Trace], name: str, asked: set[str], others: set[str]
) -> None:
    found = {text for one in diagnose(real(f"h200/torch/{name}.json.gz")) for text in one.experiments}
    assert asked <= found
    assert found.isdisjoint(others)
