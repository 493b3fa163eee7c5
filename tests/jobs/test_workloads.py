"""The workloads run as they stand, with plain PyTorch and without profrun, on a CPU in seconds."""

from __future__ import annotations

import ast
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from profrun.jobs.load import load_job
from profrun.plans.make import make_plan

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "jobs" / "workloads").glob("*.py"))

PROBE = """
import json, os, runpy, sys, traceback
import torch

def profiled(argv):
    sys.argv = argv
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        runpy.run_path(argv[0], run_name="__main__")
    print("NAMES", sorted({event.key for event in profile.key_averages()}))
    print("PROFRUN", any(name.split(".")[0] == "profrun" for name in sys.modules))

for number, argv in enumerate(json.loads(sys.argv[2])):
    child = os.fork()
    if not child:
        log = open(f"{sys.argv[1]}/{number}", "w", buffering=1)
        os.dup2(log.fileno(), 1), os.dup2(log.fileno(), 2)
        try:
            profiled(argv)
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    open(f"{sys.argv[1]}/{number}.code", "w").write(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""
"""Runs each program in a fork of one process, so that torch is imported once."""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_workload_does_not_import_profrun(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.split(".")[0] == "profrun" for name in names)


def _programs() -> dict[str, list[str]]:
    """argv of each program that is run."""
    trials = make_plan(load_job(ROOT / "jobs" / "transformer.yaml")).trials
    transformer = {trial.variant: [*trial.argv[1:], "--steps", "3"] for trial in trials}
    return transformer | {
        "train": ["workloads/train.py", "--steps", "3", "--log-every", "3"],
        "train_graph": ["workloads/train.py", "--steps", "3", "--batch", "64", "--graph", "--prefetch"],
        "train_loader": ["workloads/train.py", "--steps", "3", "--data", "loader", "--workers", "1"],
        "no_cache": ["workloads/generate.py", "--mode", "no_cache", "--requests", "2"],
        "cache": ["workloads/generate.py", "--mode", "cache", "--requests", "2"],
        "graph": ["workloads/generate.py", "--mode", "graph", "--requests", "2"],
        "variability": ["workloads/variability.py", "--before", "load", "--per-step", "2", "--steps", "3"],
        "matmul_add": ["workloads/matmul_add.py", "--steps", "3", "--warmup", "2", "--size", "4096"],
        "bare": ["workloads/matmul_add.py", "--steps", "3", "--bare"],
        "many_ops": ["workloads/many_ops.py", "--steps", "3", "--ops", "4"],
        "linear": ["workloads/linear.py", "--steps", "3"],
        "untransposed": ["workloads/linear.py", "--steps", "3", "--layout", "untransposed"],
        "mlp": ["workloads/mlp.py", "--steps", "3", "--rows", "8"],
        "mlp_new_rows": [
            "workloads/mlp.py",
            "--steps",
            "4",
            "--mode=liger",
            "--then-rows=4096",
            "--change-at=2",
        ],
        "read": ["workloads/transformer.py", "--read", "--steps", "2"],
        "fp32": ["workloads/tensor_cores.py", "--type", "fp32", "--size", "1024", "--steps", "2"],
        "fp8": ["workloads/tensor_cores.py", "--type", "fp8", "--size", "8192", "--steps", "2"],
        "fused": ["workloads/triton_fused.py", "--mode", "triton", "--steps", "2"],
    }


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Output of each workload under torch.profiler, in a process without GPUs."""
    folder, programs = tmp_path_factory.mktemp("outputs"), _programs()
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(folder), json.dumps(list(programs.values()))],
        cwd=ROOT / "jobs",
        capture_output=True,
        text=True,
        timeout=240,
        env={"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "", "HOME": "/tmp", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = {}
    for number, name in enumerate(programs):
        found[name] = (folder / str(number)).read_text()
        assert (folder / f"{number}.code").read_text() == "0", found[name]
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("variant", "names", "absent", "said"),
    [
        (
            "baseline",
            ["Self-Attention", "Add & Norm 1", "MLP", "Add & Norm 2", "aten::softmax"],
            "aten::scaled_dot_product_attention",
            "no GPU here: batch 16 -> 2, one thread, so that a CPU finishes in seconds",
        ),
        (
            "optimised",
            ["Self-Attention", "Add & Norm 1", "MLP", "Add & Norm 2", "aten::scaled_dot_product_attention"],
            "aten::softmax",
            "no GPU here: batch 32 -> 2, seq 2048 -> 128, precision fp16 -> bf16, one thread, so that",
        ),
    ],
    ids=["baseline", "optimised"],
)
def test_the_transformer_of_the_job(
    variant: str, names: list[str], absent: str, said: str, outputs: dict[str, str]
) -> None:
    out = outputs[variant]
    assert said in out
    assert "transformer layer: 3 steps, batch 2, seq 128" in out
    assert all(f"'{name}'" in out for name in names)
    assert f"'{absent}'" not in out
    assert "PROFRUN False" in out


@pytest.mark.thorough
def test_the_training_loop_steps_its_optimizer(outputs: dict[str, str]) -> None:
    out = outputs["train"]
    assert "no GPU here: batch 2" in out
    assert re.search(
        r"trained 3 steps of 2 sequences on cpu: median step [\d.]+ ms; last loss \d\.\d{3}\n", out
    )
    for name in ("copy", "forward", "backward", "optimizer", "Optimizer.step#AdamW.step"):
        assert f"'{name}'" in out
    assert "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__" in out  # it prepares its batches so


@pytest.mark.thorough
def test_the_training_loop_says_what_it_leaves_out_on_a_cpu(outputs: dict[str, str]) -> None:
    out = outputs["train_graph"]
    assert "no GPU here: batch 8" in out
    assert "; without --graph; without --prefetch\n" in out
    assert "last loss not read" in out


@pytest.mark.thorough
def test_the_training_loop_loads_in_other_processes(outputs: dict[str, str]) -> None:
    assert "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__" in outputs["train_loader"]


@pytest.mark.thorough
def test_every_way_to_keep_keys_and_values_gives_the_same_tokens(outputs: dict[str, str]) -> None:
    """Without a cache there is nothing to get wrong."""
    tokens = {
        name: re.findall(r"sum of tokens (\d+)", outputs[name]) for name in ("no_cache", "cache", "graph")
    }
    assert tokens["cache"] == tokens["graph"] == tokens["no_cache"] != []
    for name in ("prefill", "decode", "aten::scaled_dot_product_attention"):
        assert f"'{name}'" in outputs["cache"]
    assert "'aten::index_copy_'" in outputs["graph"]
    assert "without a CUDA graph" in outputs["graph"]


@pytest.mark.thorough
def test_the_products_say_how_much_they_vary(outputs: dict[str, str]) -> None:
    out = outputs["variability"]
    assert "no GPU here: size 128, 0.3 s before" in out
    assert "product of 128 x 128 on cpu, 2 per step: without the first step, median" in out
    assert "no clock is read" in out


@pytest.mark.thorough
def test_products_are_told_in_cycles_and_single_long_steps_do_not_count() -> None:
    """Two products per step at 1500 MHz: 4 ms are 6 million cycles, so 3 million per product."""
    program = runpy.run_path(str(ROOT / "jobs" / "workloads" / "variability.py"))
    times = [4.0, 4.0, 4.0, 4.1, 3.9, 4.0, 4.0, 4.0, 4.0, 4.0, 65.0]
    starts = [float(number) for number in range(len(times))]
    reader = program["ClockReader"]("uuid")
    assert program["cycles"](times, starts, reader, 2) == "the clock could not be read"
    reader.times, reader.mhz = [0.0, 2.5, 9.5], [1980, 1500, 1470]
    said = program["cycles"](times, starts, reader, 2)
    assert said == "clock 1500 MHz (1470 to 1980), so 3.00 million cycles per product"
    told = program["spread"](times)
    assert told.endswith("80 % of the steps take 4.000 to 4.100 ms (2.5% of the median)")


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_two_ranks_train_together(mode: str) -> None:
    options = ["--mode", mode, "--steps", "3", "--late-rows", "0.5"]
    done = subprocess.run(
        ["torchrun", "--standalone", "--nproc-per-node", "2", "workloads/ddp.py", *options],
        cwd=ROOT / "jobs",
        capture_output=True,
        text=True,
        timeout=240,
        env={
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "CUDA_VISIBLE_DEVICES": "",
            "HOME": "/tmp",
        },
    )
    assert done.returncode == 0, done.stderr
    assert "no GPU here: rows 64, width 64, 4 layers, buckets of 25 KiB, gloo" in done.stdout
    assert f"rank 0 of 2, {mode}, 64 rows on cpu: median step" in done.stdout
    assert f"rank 1 of 2, {mode}, 96 rows on cpu: median step" in done.stdout


@pytest.mark.thorough
def test_the_gated_mlp_runs_eagerly(outputs: dict[str, str]) -> None:
    out = outputs["mlp"]
    assert "gated MLP, eager, 3 steps of 8 rows, on cpu: median" in out
    assert "the output differs by 0.0e+00" in out
    assert "'aten::gelu'" in out
    assert "'mlp_fwd'" in out


@pytest.mark.thorough
def test_the_number_of_rows_changes_and_kernels_for_gpus_are_replaced_on_a_cpu(
    outputs: dict[str, str],
) -> None:
    out = outputs["mlp_new_rows"]
    assert "no GPU here: rows 8192 -> 64, then 4096 -> 32, fp32, one thread" in out
    assert "liger needs a GPU, and there is none" in out
    assert "4 steps of 64 rows, 32 from step 2 on, on cpu" in out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "said", "names", "absent"),
    [
        (
            "matmul_add",
            "matmul + add of 256 x 256 bfloat16 on cpu, 3 times: median",
            ["matmul_add", "aten::mm", "aten::add"],
            "aten::addmm",
        ),
        (
            "bare",
            "matmul + add of 64 x 64 bfloat16 on cpu, 3 times:",
            ["aten::mm", "aten::add"],
            "matmul_add",
        ),
        (
            "many_ops",
            "4 point-wise ops on 1024 numbers, eager, on cpu",
            ["aten::mul", "aten::sin"],
            "aten::add",
        ),
        (
            "linear",
            "linear 256 x 32 -> 64, linear, eager, on cpu",
            ["linear_fwd", "aten::t", "aten::addmm"],
            "aten::add",
        ),
        (
            "untransposed",
            "linear 256 x 32 -> 64, untransposed, eager, on cpu",
            ["linear_fwd", "aten::addmm"],
            "aten::t",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_the_programs_of_the_first_tutorials(
    name: str, said: str, names: list[str], absent: str, outputs: dict[str, str]
) -> None:
    out = outputs[name]
    assert "no GPU here" in out
    assert said in out
    assert all(f"'{one}'" in out for one in names)
    assert f"'{absent}'" not in out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "names", "said"),
    [
        ("read", ["aten::item"], ["2 steps, batch 2, seq 128, fp32"]),
        (
            "fp32",
            ["aten::mm"],
            ["size 1024 -> 64,", "4 products of 64 x 64 matrices in fp32 on cpu", "TFLOP/s"],
        ),
        (
            "fp8",
            ["aten::_scaled_mm"],
            ["size 8192 -> 128,", "4 products of 128 x 128 matrices in fp8 on cpu"],
        ),
        (
            "fused",
            ["aten::mul", "aten::add"],
            [
                "elements 268435456 -> 1048576,",
                "no GPU here, and Triton needs one: this runs torch's two kernels instead",
                "y = 2x + 3, triton: 1048576 elements on cpu",
            ],
        ),
    ],
)
def test_what_a_program_runs_and_says_on_a_cpu(
    program: str, names: list[str], said: list[str], outputs: dict[str, str]
) -> None:
    out = outputs[program]
    assert [text for text in said if text not in out] == []
    assert [name for name in names if f"'{name}'" not in out] == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("script", "flags"),
    [
        ("matmul_add", ["--compile"]),
        ("many_ops", ["--compile"]),
        ("linear", ["--compile"]),
        ("mlp", ["--mode", "compile"]),
    ],
    ids=["matmul_add", "many_ops", "linear", "mlp"],
)
def test_compiling_without_a_compiler_is_one_clear_line(
    script: str, flags: list[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, f"workloads/{script}.py", *flags],
        cwd=ROOT / "jobs",
        capture_output=True,
        text=True,
        timeout=240,
        env={"PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 1
    assert (
        done.stderr
        == "torch.compile needs a C++ compiler on a CPU, and none is on the PATH: install g++ or clang\n"
    )


@pytest.mark.parametrize("job", sorted((ROOT / "jobs").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_job_is_without_mistakes_and_runs_a_workload_that_exists(job: Path) -> None:
    trials = make_plan(load_job(job)).trials
    programs = {part for trial in trials for part in trial.argv if part.startswith("workloads/")}
    assert len(programs) == 1
    assert (job.parent / programs.pop()).is_file()
