"""Nsight Systems: the declaration and its options."""

from __future__ import annotations

from dataclasses import dataclass

from ...contract.options import Duration, Flag, Many, Text, ToolOptions, Whole, Word, option
from ...contract.profilers import Privilege, Profiler

TRACE = (
    "cuda",
    "nvtx",
    "cublas",
    "cublas-verbose",
    "cudnn",
    "cusolver",
    "cusolver-verbose",
    "cusparse",
    "cusparse-verbose",
    "mpi",
    "oshmem",
    "ucx",
    "osrt",
    "opengl",
    "openacc",
    "openmp",
    "nvvideo",
    "vulkan",
    "python-gil",
    "none",
)
PYTORCH = ("autograd-nvtx", "autograd-shapes-nvtx", "functions-trace")
PROCESSES = ("none", "process-tree", "system-wide")


@dataclass(frozen=True)
class Options(ToolOptions):
    """What ``nsys profile`` records."""

    trace: tuple[str, ...] | None = option(
        Many(Word(TRACE, "APIs"), 1, unique=True, example="[cuda, nvtx]"),
        "APIs to trace.",
        "cuda, nvtx, cublas, cudnn on NVIDIA; nvtx elsewhere",
    )
    capture: str | None = option(
        Word(("auto", "window", "all")),
        "`window`: only active steps; `all`: the whole run; `auto`: the window where there is CUDA.",
        "auto",
    )
    cuda_graph_trace: str | None = option(
        Word(("node", "graph")),
        "`node`: each kernel of a CUDA graph; `graph`: one bar per launch of a graph (cheaper).",
        "node",
    )
    sample: str | None = option(Word(PROCESSES), "CPU samples.", "none")
    cpuctxsw: str | None = option(Word(PROCESSES), "Thread scheduling.", "none")
    python_backtrace: str | None = option(
        Word(("cuda", "none")),
        "Record the Python stack of each CUDA call: `profrun summary --by line` then tells the lines. Needs "
        "permission for CPU samples, and nsys 2025.3; costs minutes and gigabytes.",
        "none",
    )
    python_sampling: bool | None = option(
        Flag(), "Sample Python stacks; they are in nsys' report, not in the trace.", "false"
    )
    pytorch: tuple[str, ...] | None = option(
        Many(Word(PYTORCH), 1, unique=True, example="[autograd-nvtx]"),
        "Ranges that nsys itself puts round PyTorch's operations and functions; needs nsys 2025.3.",
        "none",
    )
    trace_fork: bool | None = option(
        Flag(), "Trace children between fork and exec (DataLoader workers).", "true"
    )
    gpu_metrics: str | None = option(
        Text("a device selector: all, 0 or 0,1", r"[A-Za-z0-9_,-]+", unquoted=True),
        "Sample GPU metrics of these devices; needs permission for counters.",
        "off",
    )
    gpu_metrics_frequency: int | None = option(Whole(10, 200_000), "Samples per second.", "10000")
    cuda_memory_usage: bool | None = option(Flag(), "Track allocations.", "false")
    delay: float | None = option(
        Duration(0), "Wait this long before recording; only where the whole run is captured.", "0"
    )
    duration: float | None = option(
        Duration(1),
        "Record this long; the application goes on to its end. Replaces `schedule.max_seconds`.",
        "to the end",
    )
    tmpdir: str | None = option(Text("a path"), "TMPDIR of the application.", "/tmp")


PROFILER = Profiler(
    name="nsys",
    title="Nsight Systems",
    options=Options,
    tools=("nsys",),
    places=(
        "/opt/nvidia/nsight-systems/*/bin",
        "/opt/nvidia/nsight-systems-cli/*/bin",
        "/opt/nvidia/nsight-systems*/bin",
        "/usr/local/cuda/bin",
    ),
    vendors=("nvidia", "none"),
    timeline_on=("nvidia", "none"),
    exclusive=True,
    keeps_environment=True,
    log_lines=r"Processing \d+ events: \[",  # of its importer
    privileges=(
        Privilege("CPU samples", "perf_events", "sample", always=True),
        Privilege("thread scheduling", "perf_events", "cpuctxsw", always=True),
        Privilege("Python stacks", "perf_events", "python_backtrace", always=True),
        Privilege("GPU metrics", "nvidia_counters", "gpu_metrics", "nvidia"),
    ),
)
