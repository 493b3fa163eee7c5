"""The mapping wraps nothing: the hook inside the program records it. Pure; shipped into the job."""

from __future__ import annotations

from ...contract.wrapping import Wrapped, WrapRequest


def wrap(request: WrapRequest) -> Wrapped:
    """The user's command as it is, with torch.compile asked to keep where its kernels come from.

    ``INDUCTOR_PROVENANCE`` changes no kernel, and is no part of the key of Inductor's caches of graphs: what
    other trials have left there tells nothing. So these caches are not used; that of tuning is, so that the
    same kernels are chosen (torch/_inductor/config.py).
    """
    return Wrapped(
        argv=request.argv,
        env={
            "INDUCTOR_PROVENANCE": "1",
            "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
            "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        },
        hook="in_process",
        emitter="in_process",
        finalise_s=120.0,
        expected=("*.pt.trace.json.gz",),
    )
