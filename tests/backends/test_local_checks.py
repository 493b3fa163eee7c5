"""What the local backend refuses before anything starts."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from profrun.backends.local_checks import check_machine
from profrun.errors import UnavailableError
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
        check_machine(plan.job, tmp_path)
