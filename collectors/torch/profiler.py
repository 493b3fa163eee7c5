"""torch.profiler, which runs inside the program: the declaration and its options."""

from __future__ import annotations

from dataclasses import dataclass

from ...contract.options import Flag, Many, Word, option
from ...contract.profilers import Profiler

ACTIVITIES = ("cpu", "cuda", "xpu")


@dataclass(frozen=True)
class Options:
    """What torch.profiler records."""

    activities: tuple[str, ...] | None = option(
        Many(Word(ACTIVITIES, "activities"), 1, unique=True, example="[cpu, cuda]", or_word="auto"),
        "What torch.profiler records; `auto`: all that the build supports.",
        "auto",
    )
    record_shapes: bool | None = option(
        Flag(), "Record the shapes of operator inputs; achieved FLOP/s are computed from them.", "false"
    )
    profile_memory: bool | None = option(Flag(), "Record allocations.", "false")
    with_stack: bool | None = option(Flag(), "Record Python stacks (slow).", "false")
    with_flops: bool | None = option(Flag(), "Estimate the operations of matmuls and convolutions.", "false")
    with_modules: bool | None = option(Flag(), "Record the module hierarchy (TorchScript only).", "false")


PROFILER = Profiler(
    name="torch",
    title="torch.profiler",
    options=Options,
    exclusive=True,
    requires="torch",
    log_lines=r"(USDT|STAGE|INFO|VERBOSE):\d{4}-\d\d-\d\d ",  # of libkineto, for every recording
    module_depth=3,  # blocks and their parts; on a GPT-2 of 12 layers 65 ranges per step
)
