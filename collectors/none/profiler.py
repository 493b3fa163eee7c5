"""No profiler: trials whose steps are only timed. The declaration."""

from __future__ import annotations

from dataclasses import dataclass

from ...contract.profilers import Profiler


@dataclass(frozen=True)
class Options:
    """There are none."""


PROFILER = Profiler(name="none", title="no profiler", options=Options)
