"""The trace format as code: the one source for DDL, checks and docs/trace-format.md.

Rules that hold for every table:

* Times are int64 nanoseconds on one axis per trace; ``meta.epoch_ns`` is the unix time of 0, or null.
* Missing is NULL, never 0, -1 or ''.
* Grids are in blocks, whatever the tool counted.
* Ids (``slice``, ``track``, ``process``, ``device``) are dense integers from 0, unique in the trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

FORMAT_VERSION = "1.3"
"""major.minor. A reader refuses an unknown major; a minor only adds columns or tables."""


@dataclass(frozen=True)
class Column:
    """One column: DuckDB type, whether NULL is forbidden, meaning with unit, allowed values if closed."""

    name: str
    type: str
    doc: str
    required: bool = False
    values: tuple[str, ...] = ()
    refers: str | None = None  # "table.column" whose ids this column holds


@dataclass(frozen=True)
class Table:
    """One table: what a row is, its columns, and the columns that are its key."""

    name: str
    row: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names in file order."""
        return tuple(column.name for column in self.columns)

    def ddl(self, name: str | None = None) -> str:
        """``CREATE TABLE`` without constraints (``Trace.check()`` holds them)."""
        columns = ", ".join(f'"{column.name}" {column.type}' for column in self.columns)
        return f'CREATE TABLE "{name or self.name}" ({columns})'


TRACK_KINDS = ("thread", "stream", "queue", "copy", "counter", "range")
GPU_TRACKS = ("stream", "queue", "copy")
"""Kinds of the tracks on which work of a GPU lies."""
SLICE_KINDS = ("op", "range", "step", "api", "kernel", "memcpy", "memset", "sync", "python", "overhead")
GPU_KINDS = ("kernel", "memcpy", "memset")
"""Slice kinds that occupy a GPU; GPU copies of annotations are ``range`` slices on a stream track."""
DIRECTIONS = ("HtoD", "DtoH", "DtoD", "HtoH", "PtoP", "memset", "unknown")
MEMORY_KINDS = ("pageable", "pinned", "host", "device", "array", "managed", "unknown")
VENDORS = ("nvidia", "amd", "none")
STEP_CLOCKS = ("cuda_event", "hip_event", "wall")
WINDOW_PARTS = ("wait", "warmup", "active", "outside")


def _req(name: str, type_: str, doc: str, values: tuple[str, ...] = (), refers: str | None = None) -> Column:
    return Column(name, type_, doc, True, values, refers)


def _opt(name: str, type_: str, doc: str, values: tuple[str, ...] = (), refers: str | None = None) -> Column:
    return Column(name, type_, doc, False, values, refers)


_SLICE = _req("slice", "BIGINT", "the slice this row describes", refers="slices.slice")

_TABLES = (
    Table(
        "processes",
        "process",
        (
            _req("process", "INTEGER", "id"),
            _req("pid", "BIGINT", "process id as the tool saw it (containers: inside their namespace)"),
            _req("rank", "INTEGER", "rank in the job, 0 for a single process"),
            _opt("host", "VARCHAR", "host name"),
            _opt("name", "VARCHAR", "program or process name"),
            _opt(
                "rank_guessed",
                "BOOLEAN",
                "true when nothing states the rank and it is a guess; NULL in traces of format 1.0",
            ),
        ),
        ("process",),
    ),
    Table(
        "devices",
        "GPU seen by a process",
        (
            _req("device", "INTEGER", "id"),
            _req("process", "INTEGER", "process that saw it", refers="processes.process"),
            _req("vendor", "VARCHAR", "who made it", VENDORS),
            _req("ordinal", "INTEGER", "ordinal in that process (CUDA / HIP device index)"),
            _req("name", "VARCHAR", "product name, 'unknown' when no tool stated it"),
            _opt("arch", "VARCHAR", "sm_90, gfx942, ..."),
            _opt("sm_count", "INTEGER", "streaming multiprocessors (NVIDIA) or compute units (AMD)"),
            _opt("warp_size", "INTEGER", "threads per warp / wavefront"),
            _opt("max_threads_per_sm", "INTEGER", "resident threads per SM / CU"),
            _opt("regs_per_sm", "INTEGER", "32-bit registers per SM / CU"),
            _opt("smem_per_sm", "BIGINT", "bytes of shared memory / LDS per SM / CU"),
            _opt("memory_bytes", "BIGINT", "bytes of device memory"),
            _opt("uuid", "VARCHAR", "vendor's uuid"),
            _opt(
                "host_ordinal",
                "INTEGER",
                "number on its host, as nvidia-smi or rocm-smi counts; NULL when not known (new in 1.1)",
            ),
        ),
        ("device",),
    ),
    Table(
        "tracks",
        "track: a host thread, a GPU stream, a counter, ...",
        (
            _req("track", "INTEGER", "id"),
            _req("kind", "VARCHAR", "what the track is", TRACK_KINDS),
            _req("process", "INTEGER", "process it belongs to", refers="processes.process"),
            _opt(
                "device",
                "INTEGER",
                "GPU, for stream, queue and copy tracks, and for counters of a GPU",
                refers="devices.device",
            ),
            _opt("native_id", "BIGINT", "thread id, stream id, queue id as the tool wrote it"),
            _opt("name", "VARCHAR", "name of the track"),
        ),
        ("track",),
    ),
    Table(
        "slices",
        "interval or instant",
        (
            _req("slice", "BIGINT", "id"),
            _req("kind", "VARCHAR", "what it is", SLICE_KINDS),
            _req("name", "VARCHAR", "name as the tool wrote it, demangled where it can be"),
            _req("ts_ns", "BIGINT", "start, ns"),
            _req("dur_ns", "BIGINT", "duration, ns; 0 for an instant"),
            _req("track", "INTEGER", "track it lies on", refers="tracks.track"),
            _opt("parent", "BIGINT", "innermost enclosing slice on the same track", refers="slices.slice"),
            _opt("depth", "INTEGER", "nesting depth on its track, 0 outermost; NULL on GPU tracks"),
            _opt("correlation", "BIGINT", "the tool's correlation id, unique in a process at most"),
            _opt("launch", "BIGINT", "host api slice that enqueued this GPU slice", refers="slices.slice"),
        ),
        ("slice",),
    ),
    Table(
        "kernels",
        "kernel slice",
        (
            _SLICE,
            *(_opt(f"grid_{axis}", "BIGINT", f"blocks in {axis}") for axis in "xyz"),
            *(_opt(f"block_{axis}", "INTEGER", f"threads per block in {axis}") for axis in "xyz"),
            _opt("registers", "INTEGER", "registers per thread (NVIDIA) / VGPRs per work-item (AMD)"),
            _opt("smem_static", "BIGINT", "bytes of static shared memory / LDS per block"),
            _opt("smem_dynamic", "BIGINT", "bytes of dynamic shared memory per block"),
            _opt("smem", "BIGINT", "bytes of shared memory / LDS per block, static and dynamic together"),
            _opt("est_occupancy", "DOUBLE", "the tool's own estimate of achieved occupancy, 0 to 1"),
            _opt("graph", "BIGINT", "id of the CUDA / HIP graph that launched it"),
            _opt("graph_node", "BIGINT", "node in that graph"),
            _opt("scratch", "BIGINT", "bytes of local / scratch memory per thread"),
        ),
        ("slice",),
    ),
    Table(
        "copies",
        "memcpy or memset slice",
        (
            _SLICE,
            _req("direction", "VARCHAR", "from where to where", DIRECTIONS),
            _opt("bytes", "BIGINT", "bytes moved or set"),
            _opt("src_kind", "VARCHAR", "kind of source memory", MEMORY_KINDS),
            _opt("dst_kind", "VARCHAR", "kind of destination memory", MEMORY_KINDS),
            _opt(
                "managed", "BOOLEAN", "true for a unified-memory migration that the program did not request"
            ),
        ),
        ("slice",),
    ),
    Table(
        "ops",
        "framework operator slice",
        (
            _SLICE,
            _opt("shapes", "VARCHAR", "input shapes as JSON, as recorded"),
            _opt("dtypes", "VARCHAR", "input dtypes as JSON, as recorded"),
            _opt("flops", "BIGINT", "floating point operations, as the framework counted them"),
            _opt("sequence", "BIGINT", "autograd sequence number"),
            _opt("backward_of", "BIGINT", "forward op slice this is the backward of", refers="slices.slice"),
            _opt("external_id", "BIGINT", "id that the framework gives the op (new in 1.1)"),
        ),
        ("slice",),
    ),
    Table(
        "collectives",
        "collective slice",
        (
            _SLICE,
            _req("op", "VARCHAR", "allreduce, allgather, ... ; 'unknown' if the tool gave none"),
            _opt("dtype", "VARCHAR", "element type"),
            _opt("in_elements", "BIGINT", "elements in"),
            _opt("out_elements", "BIGINT", "elements out"),
            _opt("group", "VARCHAR", "process group name"),
            _opt("group_size", "INTEGER", "ranks in the group"),
            _opt("bytes", "BIGINT", "payload bytes by the larger of in and out"),
        ),
        ("slice",),
    ),
    Table(
        "counters",
        "sample: of the profiler, or, on tracks named samples, of profrun's sampler, which reads during the "
        "whole run",
        (
            _req("track", "INTEGER", "counter track", refers="tracks.track"),
            _req("ts_ns", "BIGINT", "time, ns"),
            _req("name", "VARCHAR", "what is counted"),
            _req("value", "DOUBLE", "value in unit"),
            _req("unit", "VARCHAR", "unit, '1' for a pure number"),
        ),
    ),
    Table(
        "step_times",
        "step of the program, recorded or not, as it was timed without the profiler's records (new in 1.2)",
        (
            _req("process", "INTEGER", "process that made it", refers="processes.process"),
            _req("step", "BIGINT", "its number, from 0"),
            _req("ts_ns", "BIGINT", "its begin on the host, ns"),
            _opt("dur_ns", "BIGINT", "its duration by ``clock``, ns; NULL when it could not be measured"),
            _opt("host_ns", "BIGINT", "its duration on the host, ns"),
            _req("clock", "VARCHAR", "what it was timed with: two GPU events, or the host", STEP_CLOCKS),
            _req("part", "VARCHAR", "where the schedule puts it; active steps are recorded", WINDOW_PARTS),
        ),
    ),
    Table(
        "generated",
        "line of the program in the Python stack of an operation of a kernel that code generated by "
        "torch.compile calls (new in 1.3)",
        (
            _req("file", "VARCHAR", "file of the generated code"),
            _req("line", "INTEGER", "line in it that calls the kernel, from 1"),
            _req("kernel", "VARCHAR", "name and handle that the compiler gives the kernel"),
            _req("operation", "INTEGER", "number of the operation among those of the kernel, from 0"),
            _req("frame", "INTEGER", "place in the stack, 0 outermost"),
            _opt("source_file", "VARCHAR", "file of the program; NULL where the compiler tells no stack"),
            _opt("source_line", "INTEGER", "line in it, from 1"),
            _opt("source_function", "VARCHAR", "function that the line lies in"),
            _opt("is_own", "BOOLEAN", "the mapping counts the file as the program's own; NULL: not known"),
            _opt("op", "VARCHAR", "the operation; NULL where the compiler tells none"),
            _opt("module", "VARCHAR", "qualified name of its nn.Module below the one that was compiled"),
            _req("is_view", "BOOLEAN", "the operation only looks at its input in another way"),
            _req("is_gradient_sum", "BOOLEAN", "the operation adds up the gradients of one tensor"),
        ),
    ),
    Table(
        "source_lines",
        "line of a file of the program, as it was when the program was mapped; blank ones are left out "
        "(new in 1.3)",
        (
            _req("file", "VARCHAR", "the file, as Python has it"),
            _req("line", "INTEGER", "its number, from 1"),
            _req("digest", "VARCHAR", "digest of its text without spaces at its ends"),
        ),
    ),
    Table(
        "stacks",
        "frame of a Python stack (new in 1.3)",
        (
            _req("stack", "INTEGER", "number of the stack"),
            _req("frame", "INTEGER", "place in the stack, 0 outermost"),
            _req("file", "VARCHAR", "file of the code, as Python has it; <string> and the like for none"),
            _opt("line", "INTEGER", "line that ran, from 1; NULL where Python has none for the code"),
            _req("function", "VARCHAR", "function that the line lies in"),
        ),
    ),
    Table(
        "call_stacks",
        "call of the GPU's API with the Python stack that was recorded when it was made (new in 1.3)",
        (_SLICE, _req("stack", "INTEGER", "its stack, a number of stacks")),
        ("slice",),
    ),
    Table(
        "metrics",
        "hardware metric of a kernel",
        (
            _SLICE,
            _req("name", "VARCHAR", "metric name as the tool wrote it"),
            _req("value", "DOUBLE", "value in unit"),
            _req("unit", "VARCHAR", "unit, normalised: ns, byte, byte/s, cycle, %, 1, ..."),
        ),
    ),
    Table(
        "issues",
        "thing the reader noticed",
        (
            _req("code", "VARCHAR", "stable short name"),
            _req("count", "BIGINT", "how many"),
            _req("message", "VARCHAR", "one sentence"),
            _opt("example", "VARCHAR", "one case"),
        ),
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in _TABLES}
"""The tables by name, in file order."""


class ProcessRow(TypedDict):
    """A row of ``processes`` as a dict; the columns are those of ``TABLES``."""

    process: int
    pid: int
    rank: int
    host: str | None
    name: str | None
    rank_guessed: bool | None


class DeviceRow(TypedDict):
    """A row of ``devices`` as a dict; the columns are those of ``TABLES``."""

    device: int
    process: int
    vendor: str
    ordinal: int
    name: str
    arch: str | None
    sm_count: int | None
    warp_size: int | None
    max_threads_per_sm: int | None
    regs_per_sm: int | None
    smem_per_sm: int | None
    memory_bytes: int | None
    uuid: str | None
    host_ordinal: int | None
