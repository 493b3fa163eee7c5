"""Which rank a process of the trial is: from its launcher's variables, or from torch.distributed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..contract.recording import Rank
from .launchers import GIVEN_WORLD, PROCESSES, node_launcher, process_launcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .torch_types import Torch


def from_environ(environ: Mapping[str, str] | None = None) -> Rank:
    """The rank by the launcher's variables: torchrun's win over MPI's, and those over Slurm's.

    A launcher that starts one process per node counts where none of these does.
    """
    env = os.environ if environ is None else environ
    if process_launcher(env) is None:
        node = node_launcher(env)
        if node is not None:
            return Rank(int(env[node.rank]), 0, int(env[node.world]))
    return Rank(
        _number([one.rank for one in PROCESSES], 0, env),
        _number([one.local_rank for one in PROCESSES], 0, env),
        _number([*(one.world for one in PROCESSES), GIVEN_WORLD], 1, env),
    )


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


def _number(names: Sequence[str], default: int, environ: Mapping[str, str]) -> int:
    """The first of the variables that holds a number of 0 or more, else the default."""
    for name in names:
        value = environ.get(name, "")
        if value.isdigit():
            return int(value)
    return default
