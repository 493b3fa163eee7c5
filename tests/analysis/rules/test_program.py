"""What a program already does is not advised to it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from profrun.analysis.rules.context import Context
from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.rules.program import Program
from tests.analysis.kit import Row, memory_trace
from tests.analysis.rules.cases import ADD, NVJET, SGEMM, TF32, US, copies, gpu

ATEN: Row = ("op", "aten::add", 20 * US, 5 * US, "main")
REGION: Row = ("op", "Torch-Compiled Region: 0/0", 20 * US, 5 * US, "main")
OWN = "my_kernel(float*)"


def seen(rows: Sequence[Row]) -> Program:
    return Context(memory_trace(rows)).program


def graphs(rows: Sequence[Row]) -> list[Row]:
    return [(kind, "cudaGraphLaunch" if kind == "api" else name, *rest) for kind, name, *rest in rows]


def advice(rows: Sequence[Row], code: str) -> str:
    (found,) = [one for one in diagnose(memory_trace(rows)) if one.code == code]
    return found.fix


def test_what_a_program_does() -> None:
    plain = seen(gpu([(OWN, 10 * US, 4 * US)]))
    assert plain == Program(
        torch=False, graphs=False, compiled=False, half=False, tf32=False, loader_workers=None
    )
    assert seen([*gpu([(OWN, 10 * US, 4 * US)]), ATEN]).torch
    assert seen(gpu([(ADD, 10 * US, 4 * US)])).torch
    assert seen(graphs(gpu([(ADD, 10 * US, 4 * US)]))).graphs
    assert seen([*gpu([(ADD, 10 * US, 4 * US)]), REGION]).compiled
    assert seen(gpu([("triton_poi_fused_gelu_mul_0", 10 * US, 4 * US)])).compiled
    assert seen(gpu([(NVJET, 10 * US, 4 * US)])).half
    assert seen(gpu([(TF32, 10 * US, 4 * US)])).tf32


@pytest.mark.parametrize(("iterator", "workers"), [("_SingleProcess", False), ("_MultiProcessing", True)])
def test_workers_of_the_loader(iterator: str, workers: bool) -> None:
    fetch = ("op", f"enumerate(DataLoader)#{iterator}DataLoaderIter.__next__", 20 * US, 70 * US, "main")
    rows = [*gpu([(ADD, 10 * US, 4 * US)]), fetch]
    assert seen(rows).loader_workers is workers
    said = advice(rows, "dataloader-stall")
    assert ("num_workers > 0" in said) is not workers


def test_no_graphs_to_graphs_and_no_compiler_to_compiled_code() -> None:
    idle = [(ADD, 10 * US, 4 * US)]
    assert "graphs" in advice(gpu(idle), "overhead-bound")
    assert "torch.compile," in advice(gpu(idle), "overhead-bound")
    assert "CUDA or HIP graphs" not in advice(graphs(gpu(idle)), "overhead-bound")
    assert "torch.compile," not in advice([*gpu(idle), REGION], "overhead-bound")
    chain = [(ADD, 10 * US, 30 * US), (ADD, 45 * US, 30 * US)]
    assert "torch.compile made part of this program" in advice([*gpu(chain), REGION], "pointwise-chains")


def test_no_words_of_pytorch_to_a_program_without_it() -> None:
    rows = gpu([(OWN, 10 * US, 4 * US)])
    for finding in diagnose(memory_trace(rows)):
        assert "torch" not in finding.fix, finding.code
    for finding in diagnose(memory_trace(copies("HtoD", kind="pageable"))):
        if finding.code in ("pageable-copies", "copies-not-overlapped", "host-device-copies"):
            assert "torch" not in finding.fix


def test_tf32_is_advised_where_it_is_not_on() -> None:
    assert "set_float32_matmul_precision" in advice([*gpu([(SGEMM, 10 * US, 20 * US)]), ATEN], "fp32-gemm")
    both = gpu([(SGEMM, 10 * US, 20 * US), (TF32, 40 * US, 20 * US)])
    assert "TF32 is on for a part" in advice([*both, ATEN], "fp32-gemm")
    mixed = gpu([(SGEMM, 10 * US, 20 * US), (NVJET, 40 * US, 40 * US)])
    assert "outside of autocast" in advice([*mixed, ATEN], "fp32-gemm")


def test_a_gpu_without_tf32_gets_no_advice_of_it() -> None:
    rows = [*gpu([(SGEMM, 10 * US, 20 * US)]), ATEN]
    (found,) = [
        one
        for one in diagnose(memory_trace(rows, device={"name": "Tesla V100-SXM2-32GB", "arch": "sm_70"}))
        if one.code == "fp32-gemm"
    ]
    assert "float16" in found.fix
    assert "TF32 nor bf16" in found.fix
