"""profrun inside a job whose image has no profrun: ``range`` and ``step`` for code that is profiled."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["range", "step"]

_api: Any = sys.modules.get("_profrun.in_job.api")
if _api is None:
    raise ImportError("this is profrun's shim for jobs; outside of one, install profrun")
range = _api.range
step = _api.step
_api.imported()


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"profrun.{name} is not here: the image has no profrun, and its stand-in offers profrun.range and "
        "profrun.step; pip install profrun in the image for the rest"
    )
