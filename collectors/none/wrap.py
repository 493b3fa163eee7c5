"""No profiler: the hook only times steps. Pure; shipped into the job."""

from __future__ import annotations

from ...contract.wrapping import Wrapped, WrapRequest


def wrap(request: WrapRequest) -> Wrapped:
    """The user's command as it is. No range is emitted, because nothing would record it."""
    notes = []
    if not request.steps_found:
        notes.append("steps are not timed: ranges.steps is off")
    return Wrapped(argv=request.argv, hook="none", emitter=None, finalise_s=5.0, notes=notes)
