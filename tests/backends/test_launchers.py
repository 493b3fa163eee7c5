"""Which commands start their ranks themselves."""

from __future__ import annotations

import shlex

import pytest

from profrun.backends.launchers import launches


@pytest.mark.parametrize(
    "command",
    [
        "torchrun x.py",
        "/opt/venv/bin/torchrun --nproc-per-node 8 x.py",
        "python -m torch.distributed.run x.py",
        "python3.11 -u -m torch.distributed.launch x.py",
        "python -X dev -m torch.distributed.run x.py",
        "accelerate launch --num_processes 8 x.py",
        "python -m accelerate.commands.launch x.py",
        "deepspeed --num_gpus 8 x.py",
        "python -m deepspeed.launcher.runner x.py",
        "numactl --cpunodebind=0 --membind=0 torchrun x.py",
        "numactl -N 0 -m 0 python -m torch.distributed.run x.py",
        "env OMP_NUM_THREADS=8 torchrun x.py",
        "OMP_NUM_THREADS=8 torchrun x.py",
        "uv run torchrun x.py",
        "uv run --with torch accelerate launch x.py",
        "conda run -n train torchrun x.py",
        "nice -n 5 taskset -c 0-31 torchrun x.py",
        "bash -c 'torchrun x.py'",
        "bash -lc 'source env.sh && exec torchrun x.py'",
        "sh -c 'export A=1; numactl -N 0 torchrun x.py'",
        "bash -e -c 'cd src\ntorchrun x.py'",
        "bash -c 'A=1 torchrun x.py | tee log'",
        "bash -c 'if true; then torchrun x.py; fi'",
        "bash -c \"bash -c 'torchrun x.py'\"",
        "bash -c '(deepspeed x.py)'",
    ],
)
def test_a_launcher_is_seen(command: str) -> None:
    assert launches(shlex.split(command))


@pytest.mark.parametrize(
    "command",
    [
        "python x.py",
        "python torchrun",
        "python x.py -m torch.distributed.run",
        "python -m train torchrun",
        "accelerate config",
        "accelerate test",
        "echo torchrun",
        "bash torchrun.sh",
        "bash run.sh -c torchrun",
        "bash -c 'echo torchrun'",
        "bash -c 'python x.py --launcher torchrun'",
        "bash -c 'torchrun \"x.py'",
        "nice ./train.sh torchrun",
        "numactl -N 0 python x.py torchrun",
        "A=torchrun python x.py",
        "A=1",
        "numactl",
        "",
    ],
)
def test_what_only_looks_like_one_is_not(command: str) -> None:
    words = ["bash", "-c", 'torchrun "x.py'] if 'torchrun "x.py' in command else shlex.split(command)
    assert not launches(words)
