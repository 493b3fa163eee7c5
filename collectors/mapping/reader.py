"""A mapping leaves the files of torch.profiler."""

from __future__ import annotations

from profrun.collectors.torch.reader import READERS

__all__ = ["READERS"]
