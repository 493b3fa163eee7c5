"""The environment of the user's command: the hook, the launcher's ranks, blocking and visible GPUs."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from . import hook_errors, vendor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..contract.command import Command
    from ..contract.finding import Finding


def slurm_ranks(env: dict[str, str]) -> None:
    """Under srun: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT as torch.distributed reads them."""
    if "SLURM_PROCID" not in env or "RANK" in env:
        return
    world = int(env.get("SLURM_STEP_NUM_TASKS") or env.get("SLURM_NTASKS") or 1)
    if world <= 1:
        return
    env["RANK"] = env["SLURM_PROCID"]
    env["LOCAL_RANK"] = env.get("SLURM_LOCALID", "0")
    env["WORLD_SIZE"] = str(world)
    env.setdefault(
        "MASTER_ADDR", first_host(env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST", ""))
    )
    job = env.get("SLURM_JOB_ID", "0")
    env.setdefault("MASTER_PORT", str(20000 + int(job) % 20000 if job.isdigit() else 29500))


def first_host(nodes: str) -> str:
    """The first host of Slurm's list: 'n[3-5,9],m1' -> 'n3', 'gpu[007-010]' -> 'gpu007'."""
    found = re.match(r"([^,\[]+)(?:\[([^\],-]+)[^\]]*\])?([^,]*)", nodes)
    if found is None:
        return "127.0.0.1"
    return found.group(1) + (found.group(2) or "") + found.group(3)


def environment(
    command: Command, base: Mapping[str, str], gpus: str, bundle: Path
) -> tuple[dict[str, str], list[Finding]]:
    """What the user's command runs with, and what the user should know of it.

    Args:
        base: the wrapper's own environment.
        gpus: the vendor of the GPUs.
        bundle: folder of run.py and ``site/``.
    """
    env = {**base, **command.env}
    slurm_ranks(env)
    told = vendor.blocking_env(env, gpus, blocking=command.blocking)
    told += vendor.visible_env(env, gpus)
    site = str(bundle / "site")
    paths = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path and path != site]
    env["PYTHONPATH"] = os.pathsep.join([site, *paths])
    env.pop(hook_errors.ENV, None)
    return env, told
