"""profrun: one YAML job, profiled on NVIDIA or AMD, into one trace format, with numbers you can trust.

``plan`` and ``submit`` run a job, and ``improve`` tries what makes it faster; ``open``, ``normalize`` and
``compare`` look at traces (docs/python.md). ``range`` and ``step`` are for code that is profiled: they do
nothing while no profiler runs. Importing this package imports none of torch, docker, duckdb; the rest is
loaded when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from profrun.errors import ProfrunError
from profrun.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from profrun.api.comparison import Comparison, compare
    from profrun.api.improvement import improve
    from profrun.api.run import Run, all_runs, find_run, plan, submit
    from profrun.api.table import Table
    from profrun.api.trace import Trace, normalize
    from profrun.api.trace import open_trace as open
    from profrun.in_job.api import Range

__version__ = VERSION

_LAZY = {
    "Comparison": "comparison",
    "Run": "run",
    "Table": "table",
    "Trace": "trace",
    "all_runs": "run",
    "compare": "comparison",
    "find_run": "run",
    "improve": "improvement",
    "normalize": "trace",
    "open": "trace.open_trace",
    "plan": "run",
    "submit": "run",
}
"""Public name -> where it lies in ``profrun.api``."""

__all__ = [
    "Comparison",
    "ProfrunError",
    "Run",
    "Table",
    "Trace",
    "__version__",
    "all_runs",
    "compare",
    "find_run",
    "improve",
    "normalize",
    "open",
    "plan",
    "range",
    "step",
    "submit",
]

# Inside a job the hook has loaded its own copy of these two functions before this package was imported.
_api: Any = sys.modules.get("_profrun.in_job.api")
if _api is None:
    from profrun.in_job import api as _api
range: Callable[[str], Range] = _api.range
step: Callable[[], None] = _api.step
_api.imported()


if not TYPE_CHECKING:  # a type checker would take every name for one of ours

    def __getattr__(name: str) -> object:
        """Load what needs duckdb, numpy or a backend only when somebody asks for it."""
        if name not in _LAZY:
            raise AttributeError(f"module 'profrun' has no attribute {name!r}")
        module, _, attribute = _LAZY[name].partition(".")
        return getattr(importlib.import_module(f"profrun.api.{module}"), attribute or name)


def __dir__() -> list[str]:
    return sorted(__all__)
