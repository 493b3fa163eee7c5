"""Which rank a process of the trial is: from its launcher's variables, or from torch.distributed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..contract.recording import Rank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .torch_types import Torch

_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_LOCAL_RANK = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_WORLD = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def from_environ(environ: Mapping[str, str] | None = None) -> Rank:
    """The rank by the launcher's variables: torchrun's win over MPI's, and those over Slurm's."""
    env = os.environ if environ is None else environ
    return Rank(_number(_RANK, 0, env), _number(_LOCAL_RANK, 0, env), _number(_WORLD, 1, env))


def current(torch: Torch) -> Rank:
    """The rank of this process as torch.distributed knows it, else as its launcher's variables say.

    Args:
        torch: the torch module, None when the process has none.
    """
    found = from_environ()
    distributed = getattr(torch, "distributed", None)
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return Rank(int(distributed.get_rank()), found.local_rank, int(distributed.get_world_size()))
    except RuntimeError:
        pass
    return found


def _number(names: tuple[str, ...], default: int, environ: Mapping[str, str]) -> int:
    """The first of the variables that holds a number of 0 or more, else the default."""
    for name in names:
        value = environ.get(name, "")
        if value.isdigit():
            return int(value)
    return default
