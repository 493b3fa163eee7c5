"""The mapping wraps nothing: the hook inside the program records it. Pure; shipped into the job."""

from __future__ import annotations

from ...contract.generated_code import ENDING
from ...contract.wrapping import Wrapped, WrapRequest


def wrap(request: WrapRequest) -> Wrapped:
    """The user's command as it is, with torch.compile asked to keep where its kernels come from.

    ``INDUCTOR_PROVENANCE`` changes no kernel; it is part of the key of Inductor's cache, so a program may
    compile once more.
    """
    return Wrapped(
        argv=request.argv,
        env={"INDUCTOR_PROVENANCE": "1"},
        hook="in_process",
        emitter="in_process",
        finalise_s=120.0,
        expected=("*.pt.trace.json.gz",),
        notes=[f"kernels of torch.compile get their lines from *{ENDING} (torch 2.9 or newer)"],
    )
