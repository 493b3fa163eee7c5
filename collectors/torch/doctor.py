"""What the doctor says of reading torch.profiler's files on this machine."""

from __future__ import annotations

from profrun.contract.finding import Finding, Passed


def check_host() -> Finding | Passed:
    """Whether its traces are read by the compiled parser."""
    from profrun.collectors.torch.events import library

    if library() is not None:
        return Passed("torch-traces", "read by the compiled parser")
    return Finding(
        "torch-traces",
        "warning",
        "the compiled parser is not there",
        "traces of torch.profiler are read as exactly, but more slowly",
        "install a C compiler (cc), then install profrun again; unset PROFRUN_COMPILED if it is 0",
    )
