"""Every job that comes with profrun runs on a CPU: copied as a user copies it, recorded by torch, one repeat.

All of them together take less than five minutes of two CPU cores. A claim that needs no GPU is held; every
other claim is not checked, and says that there is no GPU. One repeat has no interval, so that claims about
times are not checked either.
"""

from __future__ import annotations

import resource
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from profrun.analysis.compare.expect.claims import needs_gpu
from profrun.jobs.examples import names
from profrun.jobs.load import load_job
from tests.cli.running import program
from tests.conftest import missing

pytestmark = pytest.mark.jobs

TOGETHER_S = 2 * 300
"""CPU seconds that all jobs may take together: five minutes of two cores."""
NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}


@dataclass(frozen=True)
class OnCpu:
    """What a job does on a CPU.

    Attributes:
        held: claims that are held.
        cpu_s: CPU seconds that it may take, of the trials, their traces and the report.
        timed: claims about times, which one repeat cannot check.
    """

    held: int
    cpu_s: int
    timed: int = 0


EXPECTED: Mapping[str, OnCpu] = {
    "ddp": OnCpu(held=4, cpu_s=90),
    "train": OnCpu(held=1, cpu_s=70),
    "tensor_cores": OnCpu(held=2, cpu_s=60),
    "mlp": OnCpu(held=4, cpu_s=60),
    "generate": OnCpu(held=2, cpu_s=55),
    "many_ops": OnCpu(held=1, timed=2, cpu_s=50),
    "matmul_add": OnCpu(held=3, cpu_s=45),
    "transformer_ablation": OnCpu(held=2, cpu_s=45),
    "linear": OnCpu(held=3, cpu_s=40),
    "triton_fused": OnCpu(held=2, cpu_s=35),
    "variability": OnCpu(held=1, cpu_s=20),
    "transformer": OnCpu(held=2, cpu_s=20),
    "transformer_blocking": OnCpu(held=1, cpu_s=10),
}
"""The dearest first, so that two workers end at about the same time."""


def test_every_job_is_here_and_all_take_less_than_five_minutes() -> None:
    assert sorted(EXPECTED) == names()
    assert all(one.held for one in EXPECTED.values())
    assert sum(one.cpu_s for one in EXPECTED.values()) <= TOGETHER_S


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    """What the programs of the jobs need."""
    if find_spec("torch") is None:
        missing("torch")
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        missing("a C++ compiler, which torch.compile needs on a CPU,")


@pytest.mark.parametrize("name", EXPECTED)
def test_a_job_runs_on_a_cpu(name: str, tmp_path: Path) -> None:
    assert program("job", "examples", name, cwd=tmp_path).code == 0
    before = _cpu_seconds()
    words = ("submit", f"{name}.yaml", "--collectors", "torch", "--repeats", "1", "--runs", "runs", "--json")
    done = program(*words, cwd=tmp_path, env=NO_GPU, timeout=800)
    spent = _cpu_seconds() - before
    assert done.code == 0, done.err
    found, job = done.json, load_job(tmp_path / f"{name}.yaml")
    assert [(one["variant"], one["collector"], one["state"]) for one in found["trials"]] == [
        (variant, "torch", "finished") for variant in job.variants
    ]
    claims = found["expectations"]
    assert [one["number"] for one in claims] == list(range(len(job.expect)))
    told = {True: "no GPU", False: "no 95 % interval"}
    wrong = [
        one
        for one in claims
        if one["state"] != "held" and told[needs_gpu(job.expect[one["number"]])] not in _why(one)
    ]
    assert wrong == []
    held = sum(one["state"] == "held" for one in claims)
    timed = sum("no 95 % interval" in _why(one) for one in claims)
    assert (held, timed) == (EXPECTED[name].held, EXPECTED[name].timed)
    assert spent <= EXPECTED[name].cpu_s


def _why(claim: Mapping[str, Any]) -> str:
    """Why a claim is not checked: by the check that says so."""
    return next((one["why"] for one in claim["checks"] if one["state"] == "not checked"), "")


def _cpu_seconds() -> float:
    """CPU seconds of all programs that this process started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
