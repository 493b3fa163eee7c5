"""What the local backend refuses before anything starts."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from profrun.backends.gpu_choice import GpuSurvey
from profrun.backends.local_checks import busy_notes, choose_gpus, newcomers, uses_seen
from profrun.errors import UnavailableError
from profrun.in_job.gpu_use import GpuProcess, GpuUse
from profrun.jobs.model import Resources
from tests.backends.plans import one_trial


@pytest.mark.parametrize(
    ("sign", "asked", "refused"),
    [
        ((), 1, True),
        ((), 0, False),
        (("dev/dxg",), 1, False),  # WSL: GPUs that /proc does not count
        (("proc/driver/nvidia/gpus/0000:01:00.0/x",), 1, False),
        (("proc/driver/nvidia/gpus/0000:01:00.0/x", "dev/nvidiactl"), 2, True),
    ],
)
def test_a_local_gpu_is_refused_only_where_it_is_sure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: tuple[str, ...], asked: int, refused: bool
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no nvidia-smi
    for name in sign:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    plan, *_ = one_trial(tmp_path, asked)
    with pytest.raises(UnavailableError) if refused else contextlib.nullcontext():
        choose_gpus(plan.job, {}, tmp_path)


def two_gpus(root: Path) -> None:
    for name in ("proc/driver/nvidia/gpus/0000:01:00.0/x", "proc/driver/nvidia/gpus/0000:02:00.0/x"):
        (root / name).parent.mkdir(parents=True)
        (root / name).touch()


def test_which_gpus_a_process_sees(tmp_path: Path) -> None:
    two_gpus(tmp_path)
    busy = GpuSurvey((GpuUse(0, "", 9 << 30), GpuUse(1)))

    def ids(asked: Any, env: Mapping[str, str] | None = None, **environ: str) -> tuple[str, ...] | None:
        plan, *_ = one_trial(tmp_path, 1)
        job = dataclasses.replace(plan.job, env=env or {}, resources=Resources(gpus=asked))
        chosen = choose_gpus(job, environ, tmp_path, busy)
        return None if chosen is None else chosen.ids

    assert ids(1) == ("1",)
    assert ids((0,)) == ("0",)
    assert ids(0) == ()
    assert ids("auto") is None, "a program on this machine sees what it would see without profrun"
    assert ids(1, {"CUDA_VISIBLE_DEVICES": "0"}) is None, "the job says it itself"
    assert ids(1, CUDA_VISIBLE_DEVICES="1") == ("1",)
    with pytest.raises(UnavailableError, match="and 0 of 1 are free"):
        ids(1, CUDA_VISIBLE_DEVICES="0")


def test_a_gpu_in_use_that_the_program_sees_is_named(tmp_path: Path) -> None:
    """``auto`` hides no GPU, and most programs take the first one."""
    two_gpus(tmp_path)
    busy = GpuSurvey((GpuUse(0, "", 9 << 30), GpuUse(1)))

    def notes(asked: Any, env: Mapping[str, str] | None = None, **environ: str) -> list[str]:
        plan, *_ = one_trial(tmp_path, 1)
        job = dataclasses.replace(plan.job, env=env or {}, resources=Resources(gpus=asked))
        return busy_notes(uses_seen(job, environ, tmp_path, busy))

    (note,) = notes("auto")
    assert note.startswith("GPU 0 (9.0 GiB in use) is in use, and the program sees it")
    assert notes("auto", CUDA_VISIBLE_DEVICES="1") == []
    assert notes("auto", {"CUDA_VISIBLE_DEVICES": "1"}, CUDA_VISIBLE_DEVICES="0") == []


def test_only_a_process_that_came_since_is_named_before_a_trial() -> None:
    before = [GpuUse(0, processes=(GpuProcess(11),)), GpuUse(1, memory_used=9 << 30)]
    assert newcomers(before, before) == []
    assert newcomers(before, [GpuUse(0, memory_used=9 << 30)]) == [], "memory without a process"
    (told,) = newcomers(before, [GpuUse(0, processes=(GpuProcess(11), GpuProcess(12, memory=1 << 30)))])
    assert told.startswith("GPU 0 (pid 11; pid 12, 1.0 GiB) is in use by a process that is none of this run")
