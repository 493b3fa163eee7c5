"""Proton wraps nothing: the hook inside the program drives it. Pure; shipped into the job."""

from __future__ import annotations

from ...contract.codec import from_json
from ...contract.units import bytes_text
from ...contract.wrapping import Wrapped, WrapRequest
from .profiler import Options

SUFFIXES = {"trace": ".chrome_trace", "tree": ".hatchet"}
"""What Proton appends to the name of a file, by the kind of data."""


_FIRST_STEP = (
    "the first recorded step of each cycle is some 30 to 45 ms too long on the host, because launching after "
    "Proton's start takes that long once (measured on an H200); durations of kernels are not affected"
)


def wrap(request: WrapRequest) -> Wrapped:
    """The user's command as it is; one file per recorded cycle and rank, written between steps."""
    options = from_json(Options, request.options)
    if not request.whole:
        notes = [_FIRST_STEP]
    else:
        limits = f"{request.schedule.max_seconds:g} s and {bytes_text(request.schedule.max_size)}"
        notes = [f"Proton records the run as a whole, from the import of torch on: at most {limits}"]
    return Wrapped(
        argv=request.argv,
        hook="in_process",
        emitter=None if options.context == "python" else "in_process",
        finalise_s=60.0,
        expected=("*" + SUFFIXES[options.data or "trace"],),
        notes=notes,
    )
