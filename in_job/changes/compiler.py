"""What torch.compile has done in this process: ``graphs_made``."""

from __future__ import annotations

import sys
from typing import Any


def graphs_made() -> int:
    """How many graphs torch.compile has made; torch counts them (``torch._dynamo.utils``)."""
    module: Any = sys.modules.get("torch._dynamo.utils")
    return 0 if module is None else int(module.counters.get("stats", {}).get("unique_graphs", 0))
