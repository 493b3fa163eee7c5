"""This process, as every part of the hook knows it: ``HookProcess``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .hook_errors import report

if TYPE_CHECKING:
    from ..contract.finding import Finding
    from .config import HookConfig
    from .torch_types import Torch


class HookProcess:
    """Facts of one process, and whether the hook still follows it.

    Attributes:
        schedule: which steps are recorded.
        torch: the torch module once it is imported, else None.
        pid: of this process; the hook of a forked child is that of the child.
        forked: it was forked from a process that the hook was in.
        over: nothing is followed any more: the process ends, or the hook has failed.
        warnings: findings for exit.json, each once.
        out_of_memory: the program ended for want of GPU memory.
        work: what is known of the work per step, for comparability.
    """

    def __init__(self, config: HookConfig) -> None:
        self.config = config
        self.schedule = config.schedule.steps()
        self.torch: Torch = None
        self.pid = os.getpid()
        self.forked = False
        self.over = False
        self.warnings: list[Finding] = []
        self.out_of_memory = False
        self.work: dict[str, object] = dict(config.values)

    def warn(self, finding: Finding) -> None:
        """Keep a finding for exit.json."""
        if finding not in self.warnings:
            self.warnings.append(finding)

    def fail(self, error: Exception) -> None:
        """Something went wrong in the hook: the program goes on without it."""
        report(error)
        self.over = True

    def ignored(self) -> bool:
        """Whether what happens now makes no steps: the hook is over, or this is a DataLoader worker."""
        if self.over:
            return True
        if not self.forked or self.torch is None:
            return False
        data = getattr(self.torch.utils, "data", None)
        return data is not None and data.get_worker_info() is not None

    def capturing(self) -> bool:
        """Whether a CUDA graph is being captured: what is captured does not run now and is no step."""
        torch = self.torch
        if torch is None or not torch.cuda.is_initialized():
            return False
        return bool(torch.cuda.is_current_stream_capturing())

    def after_fork(self) -> None:
        """This is a forked child now."""
        self.pid = os.getpid()
        self.forked = True
        self.over = False
        self.warnings = []
