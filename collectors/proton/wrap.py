"""Proton wraps nothing: the hook inside the program drives it. Pure; shipped into the job."""

from __future__ import annotations

from ...contract.codec import from_json
from ...contract.wrapping import Wrapped, WrapRequest
from .profiler import Options

SUFFIXES = {"trace": ".chrome_trace", "tree": ".hatchet"}
"""What Proton appends to the name of a file, by the kind of data."""


def wrap(request: WrapRequest) -> Wrapped:
    """The user's command as it is; one file per recorded cycle and rank, written between steps."""
    options = from_json(Options, request.options)
    notes = []
    if not request.steps_found:
        notes.append("Proton records from the import of torch to the end: ranges.steps is off")
    elif not request.schedule.warmup:
        notes.append(
            "the first recorded step will be some 30 ms too long, because CUPTI has its first buffer made in "
            "it: the schedule has no warm-up step"
        )
    return Wrapped(
        argv=request.argv,
        hook="in_process",
        emitter=None if options.context == "python" else "in_process",
        finalise_s=60.0,
        expected=("*" + SUFFIXES[options.data or "trace"],),
        notes=notes,
    )
