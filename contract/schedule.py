"""Which steps of a program are recorded: ``Schedule``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Steps to skip, to warm up and to record, counted as ``torch.profiler.schedule`` counts them.

    The first ``skip_first`` steps are skipped; then follow ``repeat`` cycles of ``wait`` + ``warmup`` +
    ``active`` steps, of which the ``active`` ones are recorded.
    """

    wait: int = 1
    warmup: int = 1
    active: int = 3
    repeat: int = 1
    skip_first: int = 0
