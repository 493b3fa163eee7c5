"""What a trace says of its clocks: read from its meta, or judged where the trace does not have it.

``profrun normalize`` judges every recording and writes down what it found. A trace of an older version, or of
another writer, is judged when it is asked for the first time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.frame import frame
from profrun.traces.causality.judge import judge
from profrun.traces.causality.model import Judgement, judgement_of
from profrun.traces.causality.recording import Recording, recording_of
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from profrun.traces.trace import Trace


@memoised
def recording(trace: Trace) -> Recording:
    """The columns of a trace that causality constraints are made of."""
    source = frame(trace)
    columns: dict[str, NDArray[np.integer]] = {
        "kind": source.kind,
        "ts": source.ts,
        "end": source.end,
        "track": source.track,
        "launch": source.launch,
        "parent": source.parent,
    }
    return recording_of(trace.tables, columns, meta=trace.meta)


@memoised
def judgement(trace: Trace) -> Judgement:
    """The clocks of a trace, and its records that contradict each other; empty without a timeline."""
    meta = trace.meta
    if meta.get("replayed"):
        return Judgement()
    if "clocks" in meta:
        return judgement_of(meta["clocks"], meta.get("contradictions", []))
    return judge(recording(trace))
