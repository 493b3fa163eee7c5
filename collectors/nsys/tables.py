"""The tables of the nsys reader: a staging table for each kind of record of an export (``STAGES``), and those
that its parts make of them for each other (``DERIVED``).

nsys creates tables and columns lazily and each schema (2021 without META_DATA, 2.9 ... 3.25) has others, so a
column that is not there is NULL and a table that is not there is empty. Nothing is ever selected with ``*``.
"""

from __future__ import annotations

from dataclasses import dataclass

from profrun.collectors.nsys.names import EVENT_BACKTRACE


@dataclass(frozen=True)
class Stage:
    """One staging table.

    Attributes:
        name: its name in the writer's engine.
        sources: the tables of an export it is filled from; those that exist are all read.
        columns: its column -> the export's column; the first alternative that exists is taken.
        text: columns that are text; all others are numbers, BIGINT but for those of ``INTEGERS``.
        where: a filter on the export's own columns: (column, condition); used where the column exists.
    """

    name: str
    sources: tuple[str, ...]
    columns: dict[str, str]
    text: frozenset[str] = frozenset()
    where: tuple[str, str] | None = None

    def type(self, name: str) -> str:
        """DuckDB type of a column."""
        return "VARCHAR" if name in self.text else "INTEGER" if name in INTEGERS else "BIGINT"

    @property
    def ddl(self) -> str:
        """CREATE TABLE with the number of the source file first."""
        columns = ", ".join(f"{name} {self.type(name)}" for name in self.columns)
        return f"CREATE TABLE {self.name} (src INTEGER, {columns})"


INTEGERS = frozenset({"block_x", "block_y", "block_z", "regs", "ret"})
"""Columns of 32 bits: in CUPTI, and in the trace."""


_SPAN = {"start": "start", "stop": "end"}
_GPU = {
    **_SPAN,
    "device": "deviceId",
    "context": "contextId",
    "stream": "streamId",
    "corr": "correlationId",
    "gpid": "globalPid",
}
_CUPTI = "CUPTI_ACTIVITY_KIND_"

STAGES: tuple[Stage, ...] = (
    Stage("n_string", ("StringIds",), {"id": "id", "value": "value"}, frozenset({"value"})),
    Stage(
        "n_api",
        (_CUPTI + "RUNTIME",),
        {**_SPAN, "gtid": "globalTid", "corr": "correlationId", "name_id": "nameId", "ret": "returnValue"},
        where=("eventClass", f'coalesce("eventClass", 0) <> {EVENT_BACKTRACE}'),
    ),
    Stage(
        "n_kernel",
        (_CUPTI + "KERNEL",),
        {
            **_GPU,
            "demangled": "demangledName",
            "short": "shortName",
            "mangled": "mangledName",
            **{f"grid_{axis}": f"grid{axis.upper()}" for axis in "xyz"},
            **{f"block_{axis}": f"block{axis.upper()}" for axis in "xyz"},
            "regs": "registersPerThread",
            "smem_static": "staticSharedMemory",
            "smem_dynamic": "dynamicSharedMemory",
            "local": "localMemoryPerThread",
            "graph": "graphId",
            "node": "graphNodeId",
        },
    ),
    Stage(
        "n_memcpy",
        (_CUPTI + "MEMCPY", _CUPTI + "MEMCPY2"),
        {**_GPU, "bytes": "bytes", "kind": "copyKind", "src_kind": "srcKind", "dst_kind": "dstKind"},
    ),
    Stage("n_memset", (_CUPTI + "MEMSET",), {**_GPU, "bytes": "bytes", "mem_kind": "memKind"}),
    Stage("n_sync", (_CUPTI + "SYNCHRONIZATION",), {**_GPU, "type": "syncType"}),
    Stage("n_graph", (_CUPTI + "GRAPH_TRACE",), {**_GPU, "graph": "graphId"}),
    Stage(
        "n_nvtx",
        ("NVTX_EVENTS",),
        {
            **_SPAN,
            "event": "eventType",
            "gtid": "globalTid",
            "text": "text",
            "text_id": "textId",
            "domain": "domainId",
        },
        frozenset({"text"}),
    ),
    Stage("n_lib", ("CUBLAS_EVENTS", "CUDNN_EVENTS"), {**_SPAN, "gtid": "globalTid", "name_id": "nameId"}),
    Stage(
        "n_overhead",
        ("PROFILER_OVERHEAD", _CUPTI + "OVERHEAD"),
        {**_SPAN, "gtid": "globalTid", "name_id": "nameId"},
    ),
    Stage("n_thread", ("ThreadNames",), {"gtid": "globalTid", "name_id": "nameId"}),
    Stage("n_process", ("PROCESSES",), {"gpid": "globalPid", "name": "name"}, frozenset({"name"})),
    Stage(
        "n_gpu",
        ("TARGET_INFO_GPU",),
        {
            "id": "id",
            "name": "name",
            "cu_device": "cuDevice",
            "major": "computeMajor",
            "minor": "computeMinor",
            "sm_count": "smCount",
            "warp": "threadsPerWarp",
            "warps_per_sm": "maxWarpsPerSm",
            "regs_per_sm": "maxRegistersPerSm",
            "smem_per_sm": "maxShmemPerSm",
            "memory": "totalMemory",
            "uuid": "uuid",
            "bus": "busLocation",
        },
        frozenset({"name", "uuid", "bus"}),
    ),
    Stage("n_cuda_device", ("TARGET_INFO_CUDA_DEVICE",), {"gpu": "gpuId", "ordinal": "cudaId", "pid": "pid"}),
    Stage(
        "n_metric",
        ("GPU_METRICS",),
        {"ts": "timestamp", "type_id": "typeId", "metric_id": "metricId", "value": "value"},
    ),
    Stage(
        "n_metric_info",
        ("TARGET_INFO_GPU_METRICS",),
        {"type_id": "typeId", "metric_id": "metricId", "name": "metricName"},
        frozenset({"name"}),
    ),
)

MARKERS = (
    frozenset({"StringIds", _CUPTI + "RUNTIME"}),
    frozenset({"StringIds", _CUPTI + "KERNEL"}),
    frozenset({"StringIds", "NVTX_EVENTS"}),
    frozenset({"StringIds", "TARGET_INFO_SESSION_START_TIME"}),
    frozenset({"StringIds", "ANALYSIS_DETAILS"}),
    frozenset({"StringIds", "META_DATA_EXPORT"}),
    frozenset({"StringIds", "EXPORT_META_DATA"}),
    frozenset({"StringIds", "ThreadNames"}),
)
"""Sets of tables any one of which says: this database is an export of nsys."""

LEFT_OUT = {
    "OSRT_API": "calls of the operating system's runtime",
    "OSRT_FILE_ACCESS_EVENTS": "file accesses",
    "COMPOSITE_EVENTS": "CPU samples",
    "SCHED_EVENTS": "thread scheduling events",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "memory allocations",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": "CPU page faults of unified memory",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": "GPU page faults of unified memory",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "CUDA event records",
    "MPI_P2P_EVENTS": "MPI point-to-point calls",
    "MPI_COLLECTIVES_EVENTS": "MPI collectives",
    "MPI_OTHER_EVENTS": "other MPI calls",
    "OPENACC_DATA_EVENTS": "OpenACC data events",
    "OPENACC_LAUNCH_EVENTS": "OpenACC launches",
    "OPENACC_OTHER_EVENTS": "other OpenACC events",
    "NIC_METRIC": "network samples",
    "NET_NIC_METRIC": "network samples",
    "PERF_EVENT_SOC_OR_CPU_RAW_EVENT": "CPU events",
    "PYTHON_FUNCTIONS_TRACE": "Python calls",
}
"""Tables that have no place in the trace yet: their rows are counted in ``issues``."""

DERIVED = {
    # --- columns of several tables. src: number of the export; gtid: nsys's global thread id; p: the process
    # in it (gtid >> 24); proc: number of (src, p); shift: ns to add for the trace's axis; records: count ---
    # when an export begins on the trace's axis, and its recording ended by its own clock (reader)
    "n_origin": "src, shift, stopped",
    # calls and the profiler's own work by thread and name; what: api, lib or overhead; stop: of the last;
    # negative, open_ended: records that end before they start, or have no end (record_index)
    "n_call_index": "what, src, gtid, name_id, records, negative, open_ended, stop, failed",
    # NVTX records by thread, eventType and domain; stop: end of the last (record_index)
    "n_nvtx_index": "src, gtid, event, domain, records, stop",
    # GPU records by all that names and places them; stage: their staging table; k1 to k3: see GPU_TABLES;
    # what: stream, uvm or sync, the kind of their track; ordinal, track_context, track_stream: as placed
    # (record_index)
    "n_gpu_index": "stage, src, gpid, device, context, stream, k1, k2, k3, uvm, records, negative, "
    "open_ended, stop, bad_grid, p, ordinal, what, track_context, track_stream",
    # the distinct places of GPU records (record_index)
    "n_gpu_work": "src, p, device, context, stream, what",
    # process of an export -> the trace's; number: (src, p) as one number (identity)
    "n_proc": "src, p, process, pid, number",
    # GPU that a process used, by its ordinal there -> the trace's (identity)
    "n_dev": "device, process, ordinal, src, pid",
    # the trace's device -> GPU of the machine; sure: the export or the hook says so, or it is the only one
    # (identity)
    "n_dev_gpu": "device, gpu, sure, src",
    # every track; what: thread, stream, uvm, sync, nvtx or overhead; a, b, c: thread id; or device, context
    # and stream; or domain (tracks)
    "n_track": "track, process, what, a, b, c",
    # thread -> its track (tracks)
    "n_thread_track": "src, gtid, track, proc, shift",
    # place of GPU records -> its track (tracks)
    "n_gpu_track": "src, p, device, context, stream, what, track, proc, shift",
    # marks that hold Python stacks; corr: correlation id of the call, NULL where the export has no payload,
    # else see python_stacks (python_stacks)
    "n_python_mark": "src, gtid, start, stack, corr",
    # NVTX marks and ranges with their names; step: the range is a step (nvtx)
    "n_range": "src, gtid, event, start, unfinished, stop, domain, name, step",
    # names of slices as numbers (host, then build)
    "n_label": "label, name",
    # calls and ranges of threads, sorted; the place of a row is its slice id (host)
    "n_host": "track, ts, dur, rank, label, corr, proc",
    # the same as the writer takes them: with parent and depth (host)
    "n_on_thread": "kind, label, ts, dur, track, corr, parent, depth",
    # all other slices: of the GPU with their launch, the profiler's own work, start/end ranges (build)
    "n_rest": "slice, kind, label, ts, dur, track, corr, launch",
}
"""Table -> its columns, of what more than one module uses."""
