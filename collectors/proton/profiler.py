"""Proton, Triton's own profiler, which runs inside the program: the declaration and its options."""

from __future__ import annotations

from dataclasses import dataclass

from ...contract.options import Word, option
from ...contract.profilers import Profiler


@dataclass(frozen=True)
class Options:
    """What ``triton.profiler`` records."""

    data: str | None = option(
        Word(("trace", "tree")),
        "`trace`: each kernel with its time and stream; `tree`: sums over the calls of each kernel in each "
        "call path, which stay small however long the program runs.",
        "trace",
    )
    context: str | None = option(
        Word(("shadow", "python")),
        "What groups kernels. `shadow`: the scopes that the program and profrun open; `python`: Python's "
        "call stack.",
        "shadow",
    )
    hook: str | None = option(
        Word(("triton", "none")),
        "`triton`: Triton kernels have the name, operations and bytes of their `launch_metadata`; `none`: "
        "their own name only.",
        "triton",
    )


PROFILER = Profiler(
    name="proton",
    title="Proton",
    options=Options,
    vendors=("nvidia", "amd"),
    exclusive=True,
    requires="triton",
)
