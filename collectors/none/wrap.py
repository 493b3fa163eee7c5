"""No profiler: the hook only times steps. Pure; shipped into the job."""

from __future__ import annotations

from ...contract.wrapping import Wrapped, WrapRequest


def wrap(request: WrapRequest) -> Wrapped:
    """The user's command as it is. No range is emitted, because nothing would record it."""
    notes = []
    if request.whole:
        notes.append("the run is timed as one step")
    return Wrapped(argv=request.argv, hook="none", emitter=None, finalise_s=5.0, notes=notes)
