"""Nsight Compute: the declaration and its options."""

from __future__ import annotations

from dataclasses import dataclass

from ...contract.options import Many, Pattern, Text, ToolOptions, Whole, Word, option
from ...contract.profilers import Privilege, Profiler

_NAMES = Many(Text("a name"), 1, unique=True, example="[name]")


@dataclass(frozen=True)
class Options(ToolOptions):
    """What ``ncu`` measures, of which kernels, and how it repeats them."""

    set: str | None = option(
        Text("a section set", r"[A-Za-z0-9_-]+"), "Section set; `ncu --list-sets` shows them.", "basic"
    )
    sections: tuple[str, ...] | None = option(_NAMES, "Sections, instead of a set.")
    metrics: tuple[str, ...] | None = option(
        _NAMES, "Metrics, beside the set (alone when there is neither set nor section)."
    )
    kernels: str | None = option(Pattern(), "Only kernels whose name, without arguments, matches.")
    ranges: tuple[str, ...] | None = option(
        _NAMES, "Only kernels launched inside these NVTX push/pop ranges."
    )
    launch_skip: int | None = option(Whole(0), "Launches to skip after the filters.", "0")
    launch_count: int | None = option(Whole(1), "Launches to profile.", "all of the window; 100 without one")
    clock_control: str | None = option(Word(("none", "base")), "Lock clocks to base while replaying.", "none")
    cache_control: str | None = option(Word(("all", "none")), "Flush caches before each replay.", "all")
    replay_mode: str | None = option(
        Word(("kernel", "application", "range", "app-range")),
        "What is repeated to collect all metrics.",
        "kernel",
    )
    graph_profiling: str | None = option(
        Word(("node", "graph")), "CUDA graphs kernel by kernel, or whole.", "node"
    )


PROFILER = Profiler(
    name="ncu",
    title="Nsight Compute",
    options=Options,
    tools=("ncu",),
    places=("/opt/nvidia/nsight-compute/*", "/usr/local/cuda/bin"),
    vendors=("nvidia",),
    counters_on=("nvidia",),
    serial=True,
    exclusive=True,
    alternatives=(("set", "sections"),),
    privileges=(Privilege("GPU counters", "nvidia_counters", vendor="nvidia"),),
)
