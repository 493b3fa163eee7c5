"""torch.profiler wraps nothing: the hook inside the program drives it. Pure; shipped into the job."""

from __future__ import annotations

from ...contract.units import bytes_text
from ...contract.wrapping import Wrapped, WrapRequest


def wrap(request: WrapRequest) -> Wrapped:
    """The user's command as it is; one trace per recorded cycle and rank, written between steps.

    ``finalise_s`` is generous: with stacks or long windows the export takes minutes.
    """
    notes = []
    if request.whole:
        most = f"{request.schedule.max_seconds:g} s and {bytes_text(request.schedule.max_size)} of memory"
        notes.append(
            f"torch.profiler records the run as a whole, from the import of torch on: at most {most}"
        )
    return Wrapped(
        argv=request.argv,
        hook="in_process",
        emitter="in_process",
        finalise_s=120.0,
        expected=("*.pt.trace.json.gz",),
        notes=notes,
    )
