"""The collectors' blocks of a job, key by key as each collector's ``wrap`` takes them (a test says so)."""

from __future__ import annotations

from profrun.jobs.kinds import Flag, Kind, OneOf, Regex, Text, Whole, Word, is_word, seconds
from profrun.jobs.tables import UNSET, Field, ListOf, Table

TORCH_ACTIVITIES = ("cpu", "cuda", "xpu")
NSYS_TRACE = (
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
ROCPROF_TRACE = (
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
_PROCESSES = ("none", "process-tree", "system-wide")
VERSION = Text("a version like 2024.2.3", r"[0-9]{1,6}(\.[0-9]{1,9}){0,4}", raw=True)


def _key(kind: Kind, doc: str, default: str = "") -> Field:
    """A key that the block does not hold unless it is given: the collector knows its own default."""
    return Field(kind, UNSET, doc, default)


def _tool(name: str) -> dict[str, Field]:
    """What every block of an external profiler has."""
    return {
        "args": _key(
            ListOf(Text("an argument"), example="[--flag=value]"),
            f"Further arguments for {name}, as they are.",
        ),
        "path": _key(Text("a path"), f"The executable inside the job, when {name} is not on the PATH there."),
        "version": _key(
            VERSION,
            "Its version, for a dry run away from the job; inside the job it is asked.",
            "asked in the job",
        ),
    }


TORCH = Table(
    {
        "activities": _key(
            OneOf(
                (
                    Word(("auto",), "write a list, or one of"),
                    ListOf(Word(TORCH_ACTIVITIES, "activities"), 1, unique=True, example="[cpu, cuda]"),
                ),
                (is_word, lambda node: True),
            ),
            "What torch.profiler records; `auto`: all that the build supports.",
            "auto",
        ),
        "record_shapes": _key(Flag(), "Record the shapes of operator inputs.", "true"),
        "profile_memory": _key(Flag(), "Record allocations.", "true"),
        "with_stack": _key(Flag(), "Record Python stacks (slow).", "false"),
        "with_flops": _key(Flag(), "Estimate the operations of matmuls and convolutions.", "true"),
        "with_modules": _key(Flag(), "Record the module hierarchy (TorchScript only).", "false"),
    },
    "keys of 'torch'",
)

NSYS = Table(
    {
        "trace": _key(
            ListOf(Word(NSYS_TRACE, "APIs"), 1, unique=True, example="[cuda, nvtx]"),
            "APIs to trace.",
            "cuda, nvtx, cublas, cudnn on NVIDIA; nvtx elsewhere",
        ),
        "capture": _key(
            Word(("auto", "window", "all")),
            "`window`: only active steps; `all`: the whole run; `auto`: the window where there is CUDA.",
            "auto",
        ),
        "cuda_graph_trace": _key(
            Word(("node", "graph")), "CUDA graphs kernel by kernel, or one bar a launch (cheaper).", "node"
        ),
        "sample": _key(Word(_PROCESSES), "CPU samples.", "none"),
        "cpuctxsw": _key(Word(_PROCESSES), "Thread scheduling.", "none"),
        "trace_fork": _key(Flag(), "Trace children between fork and exec (DataLoader workers).", "true"),
        "gpu_metrics": _key(
            Text("a device selector: all, 0 or 0,1", r"[A-Za-z0-9_,-]+", raw=True),
            "Sample GPU metrics of these devices; needs permission for counters.",
            "off",
        ),
        "gpu_metrics_frequency": _key(Whole(10, 200_000), "Samples a second.", "10000"),
        "cuda_memory_usage": _key(Flag(), "Track allocations.", "false"),
        "delay": _key(
            seconds(0), "Wait this long before recording; only where the whole run is captured.", "0"
        ),
        "duration": _key(seconds(1), "Record this long; the application goes on to its end.", "to the end"),
        "tmpdir": _key(Text("a path"), "TMPDIR of the application.", "/tmp"),
        **_tool("nsys profile"),
    },
    "keys of 'nsys'",
)

_NAMES = ListOf(Text("a name"), 1, unique=True, example="[name]")

NCU = Table(
    {
        "set": _key(
            Text("a section set", r"[A-Za-z0-9_-]+"), "Section set; `ncu --list-sets` shows them.", "basic"
        ),
        "sections": _key(_NAMES, "Sections, instead of a set."),
        "metrics": _key(_NAMES, "Metrics, beside the set (alone when there is neither set nor section)."),
        "kernels": _key(Regex(), "Only kernels whose name, without arguments, matches."),
        "ranges": _key(_NAMES, "Only kernels launched inside these NVTX push/pop ranges."),
        "launch_skip": _key(Whole(0), "Launches to skip after the filters.", "0"),
        "launch_count": _key(Whole(1), "Launches to profile.", "all of the window; 100 without one"),
        "clock_control": _key(Word(("none", "base")), "Lock clocks to base while replaying.", "none"),
        "cache_control": _key(Word(("all", "none")), "Flush caches before each replay.", "all"),
        "replay_mode": _key(
            Word(("kernel", "application", "range", "app-range")),
            "What is repeated to collect all metrics.",
            "kernel",
        ),
        "graph_profiling": _key(Word(("node", "graph")), "CUDA graphs kernel by kernel, or whole.", "node"),
        **_tool("ncu"),
    },
    "keys of 'ncu'",
)

ROCPROF = Table(
    {
        "trace": _key(
            ListOf(Word(ROCPROF_TRACE, "traces"), 1, unique=True, example="[kernel, hip, marker]"),
            "What rocprofv3 traces.",
            "kernel, hip, marker, memory-copy",
        ),
        "pmc": _key(
            ListOf(
                ListOf(
                    Text("a counter", r"[A-Za-z_][A-Za-z0-9_\[\]:=,-]*"),
                    1,
                    unique=True,
                    example="[[SQ_WAVES]]",
                ),
                example="[[SQ_WAVES, SQ_BUSY_CYCLES], [TCC_HIT_sum]]",
            ),
            "Hardware counters in groups; each group is a pass of its own.",
            "none; under `counters` two groups that MI200 and MI300 have",
        ),
        "kernels": _key(Regex(), "Only kernels whose name matches."),
        "output_format": _key(
            Word(("auto", "rocpd", "csv", "json")),
            "`auto`: rocpd where the version has it, else csv.",
            "auto",
        ),
        **_tool("rocprofv3"),
    },
    "keys of 'rocprof'",
)

NONE = Table({}, "keys: 'none' runs without a profiler")

TIMELINE = Table(
    {
        "nsys": _key(NSYS, "Laid over the job's `nsys` block for `timeline` trials on NVIDIA."),
        "rocprof": _key(ROCPROF, "Laid over the job's `rocprof` block for `timeline` trials on AMD."),
    },
    "keys of 'timeline'",
)

COUNTERS = Table(
    {
        "ncu": _key(NCU, "Laid over the job's `ncu` block for `counters` trials on NVIDIA."),
        "rocprof": _key(ROCPROF, "Laid over the job's `rocprof` block for `counters` trials on AMD."),
    },
    "keys of 'counters'",
)

BLOCKS: dict[str, Table] = {
    "none": NONE,
    "torch": TORCH,
    "nsys": NSYS,
    "ncu": NCU,
    "rocprof": ROCPROF,
    "timeline": TIMELINE,
    "counters": COUNTERS,
}
