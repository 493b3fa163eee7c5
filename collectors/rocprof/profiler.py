"""AMD's rocprofv3, or rocprof where that is all there is: the declaration and its options."""

from __future__ import annotations

from dataclasses import dataclass

from ...contract.options import Many, Pattern, Text, ToolOptions, Word, option
from ...contract.profilers import Privilege, Profiler

TRACE = (
    "kernel",
    "hip",
    "hip-runtime",
    "hip-compiler",
    "marker",
    "memory-copy",
    "memory-allocation",
    "scratch-memory",
    "hsa",
    "hsa-core",
    "hsa-amd",
    "hsa-image",
    "hsa-finalizer",
    "rccl",
    "kokkos",
    "rocdecode",
    "rocjpeg",
    "runtime",
    "sys",
)
COUNTERS = (
    ("SQ_WAVES", "SQ_INSTS_VALU", "SQ_BUSY_CYCLES", "GRBM_GUI_ACTIVE"),
    ("TCC_HIT_sum", "TCC_MISS_sum"),
)
"""Passes of a ``counters`` trial when the job names none: counters that MI200 and MI300 both have."""


@dataclass(frozen=True)
class Options(ToolOptions):
    """What rocprofv3 traces or counts."""

    trace: tuple[str, ...] | None = option(
        Many(Word(TRACE, "traces"), 1, unique=True, example="[kernel, hip, marker]"),
        "What rocprofv3 traces.",
        "kernel, hip, marker, memory-copy",
    )
    pmc: tuple[tuple[str, ...], ...] | None = option(
        Many(
            Many(
                Text("a counter", r"[A-Za-z_][A-Za-z0-9_\[\]:=,-]*"),
                1,
                unique=True,
                example="[[SQ_WAVES]]",
            ),
            example="[[SQ_WAVES, SQ_BUSY_CYCLES], [TCC_HIT_sum]]",
        ),
        "Hardware counters in groups; each group is a pass of its own.",
        "none; under `counters` two groups that MI200 and MI300 have",
    )
    kernels: str | None = option(Pattern(), "Only kernels whose name matches.")
    output_format: str | None = option(
        Word(("auto", "rocpd", "csv", "json")),
        "`auto`: rocpd where the version has it, else csv.",
        "auto",
    )


PROFILER = Profiler(
    name="rocprof",
    title="rocprofv3",
    options=Options,
    tools=("rocprofv3", "rocprof"),
    places=("/opt/rocm/bin", "/opt/rocm-*/bin"),
    vendors=("amd",),
    timeline_on=("amd",),
    counters_on=("amd",),
    serial_option="pmc",
    exclusive=True,
    keeps_environment=True,
    # Above perf_event_paranoid 2 the kernel limits counters without saying so.
    privileges=(Privilege("GPU counters", "perf_events", "pmc", "amd"),),
    counters_defaults={"pmc": COUNTERS},
)
