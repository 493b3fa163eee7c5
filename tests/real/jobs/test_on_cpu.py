"""Every job that comes with profrun runs on a CPU: copied as a user copies it, recorded by torch, one repeat.

All of them together took 383 CPU seconds, which is less than five minutes of two cores. A claim that needs
no GPU is held; every other claim is not checked, and says that there is no GPU. One repeat has no interval,
so that claims about times are not checked either.
"""

from __future__ import annotations

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
from tests.cli.cost import cpu_seconds, quiet
from tests.cli.running import Done, program
from tests.conftest import missing

pytestmark = pytest.mark.jobs

NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}


@dataclass(frozen=True)
class OnCpu:
    """What a job does on a CPU.

    Attributes:
        held: claims that are held.
        imports: the CPU time of all it does was less than that of so many imports of torch. CPU seconds
            depend on the machine; this quotient hardly does. It may double before the test fails.
        timed: claims about times, which one repeat cannot check.
    """

    held: int
    imports: int
    timed: int = 0


EXPECTED: Mapping[str, OnCpu] = {
    "ddp": OnCpu(held=4, imports=45),
    "train": OnCpu(held=1, imports=35),
    "tensor_cores": OnCpu(held=2, imports=30),
    "mlp": OnCpu(held=4, imports=30),
    "generate": OnCpu(held=2, imports=27),
    "many_ops": OnCpu(held=1, timed=2, imports=25),
    "matmul_add": OnCpu(held=3, imports=22),
    "transformer_ablation": OnCpu(held=2, imports=22),
    "linear": OnCpu(held=3, imports=20),
    "triton_fused": OnCpu(held=2, imports=17),
    "variability": OnCpu(held=1, imports=10),
    "transformer": OnCpu(held=2, imports=10),
    "transformer_blocking": OnCpu(held=1, imports=5),
}
"""The dearest first, so that two workers end at about the same time."""


def test_every_job_is_here_and_has_a_claim_that_a_cpu_can_check() -> None:
    assert sorted(EXPECTED) == names()
    assert all(one.held for one in EXPECTED.values())


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
    words = ("submit", f"{name}.yaml", "--collectors", "torch", "--repeats", "1", "--runs", "runs", "--json")
    ended: list[Done] = []
    spent = cpu_seconds(lambda: ended.append(program(*words, cwd=tmp_path, env=NO_GPU, timeout=800)))
    (done,) = ended
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
    assert spent < 2 * EXPECTED[name].imports * cpu_seconds(lambda: quiet("-c", "import torch"))


def _why(claim: Mapping[str, Any]) -> str:
    """Why a claim is not checked: by the check that says so."""
    return next((one["why"] for one in claim["checks"] if one["state"] == "not checked"), "")
