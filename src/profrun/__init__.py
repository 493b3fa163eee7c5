"""profrun: one YAML job, profiled on NVIDIA or AMD, into one trace format, with numbers you can trust.

Public names: ``open``, ``compare``, ``Trace`` for analysis; ``range`` and ``step`` for code that is
profiled (they do nothing when nobody profiles). Importing this package imports none of torch, docker, duckdb.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from profrun.errors import ProfrunError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from profrun.in_job.api import Range
    from profrun.traces.trace import Trace

    compare: Callable[..., Any]

__version__ = "0.1.0"
__all__ = ["ProfrunError", "Trace", "__version__", "compare", "open", "range", "step"]

# Inside a job the hook has loaded its own copy of these two functions before this package was imported.
_api: Any = sys.modules.get("_profrun.in_job.api")
if _api is None:
    from profrun.in_job import api as _api
range: Callable[[str], Range] = _api.range
step: Callable[[], None] = _api.step
_api.imported()


def open(path: str | Path) -> Trace:
    """Open a trace folder.

    Raises:
        ProfrunError: it is not a trace, or of an unknown format version.
    """
    from profrun.traces.trace import Trace

    return Trace(path)


def __getattr__(name: str) -> Any:
    """Load ``Trace`` and ``compare`` only when somebody asks for them (they need duckdb, numpy)."""
    if name == "Trace":
        from profrun.traces.trace import Trace

        return Trace
    if name == "compare":  # by name: the runner imports this package, and must not reach the analysis
        return importlib.import_module("profrun.analysis.compare.api").compare
    raise AttributeError(f"module 'profrun' has no attribute {name!r}")
