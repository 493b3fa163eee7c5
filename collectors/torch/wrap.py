"""torch.profiler wraps nothing: the hook inside the program drives it. Pure; shipped into the job."""

from __future__ import annotations

from ...contract.wrapping import Wrapped, WrapRequest

TOOL: str | None = None

OPTIONS: dict[str, str] = {
    "record_shapes": "true: shapes and dtypes of each op's inputs",
    "profile_memory": "true: allocations and their sizes",
    "with_stack": "true: Python stacks; large and slow",
    "with_flops": "true: torch's own FLOP counts of matrix products and convolutions",
    "with_modules": "true: module hierarchy (TorchScript only, says torch)",
    "activities": "list of cpu, cuda (also for AMD), xpu; default all that the torch build supports",
}


def wrap(request: WrapRequest) -> Wrapped:
    """The user's command as it is; one trace a recorded cycle and rank, written between steps.

    ``finalise_s`` is generous: with stacks or long windows the export takes minutes.
    """
    notes = []
    if not request.steps_found:
        notes.append("torch.profiler records from the import of torch to the end: ranges.steps is off")
    return Wrapped(
        argv=request.argv,
        hook="in_process",
        emitter="in_process",
        finalise_s=120.0,
        expected=("*.pt.trace.json.gz",),
        notes=notes,
    )
