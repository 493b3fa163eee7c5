"""Every step of the run, recorded or not: ``run_steps`` of a trace.

The hook times all steps of the program, under a profiler too. Steps that a profiler records, or warms up for,
may take longer than the others (``RunSteps.disturbed``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class RunSteps:
    """The steps of a run in their order; of several ranks the slowest, because the others wait for it.

    Attributes:
        numbers: of the steps, int64, shape (steps,), increasing; a step that was not measured is not in it.
        starts: their begins on the axis of the trace, ns (of several ranks the first), likewise.
        durs: their durations, ns, likewise; all above 0.
        window: whether the schedule records the step, bool, shape (steps,).
        disturbed: whether a profiler records the step or warms up for it, bool, shape (steps,); none is in a
            trial without a profiler.
    """

    numbers: Ints
    starts: Ints
    durs: Ints
    window: NDArray[np.bool_]
    disturbed: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def ends(self) -> Ints:
        """Ends of the steps on the axis of the trace, ns."""
        return self.starts + self.durs


@memoised
def run_steps(trace: Trace) -> RunSteps | None:
    """The steps of the run; None for a trace without them (of another program's files, or of format 1.1)."""
    found = trace.tables.execute(
        "SELECT step, min(ts_ns) AS ts, max(dur_ns) AS dur, bool_or(part = 'active') AS window, "
        "bool_or(part = 'active' OR part = 'warmup') AS near FROM step_times WHERE dur_ns > 0 "
        "GROUP BY step ORDER BY step"
    ).fetchnumpy()
    if not len(found["step"]):
        return None
    window, near = (np.asarray(found[name], dtype=np.bool_) for name in ("window", "near"))
    profiled = trace.meta.get("collector") != "none"
    return RunSteps(
        numbers=np.asarray(found["step"], dtype=np.int64),
        starts=np.asarray(found["ts"], dtype=np.int64),
        durs=np.asarray(found["dur"], dtype=np.int64),
        window=window,
        disturbed=near if profiled else np.zeros(len(near), dtype=np.bool_),
    )
