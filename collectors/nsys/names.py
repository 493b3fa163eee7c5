"""Numbers and names that nsys writes, as the trace says them. Enums are those of ENUM_* tables (2022.4+),
hard-coded because older exports have none and their values never changed in 45 real files.
"""

from __future__ import annotations

UVM_COPY_KINDS = (11, 12, 13)
"""copyKind of unified-memory migrations, which no API call asks for."""

COPY_DIRECTIONS: dict[int, str] = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoD",  # host to array
    4: "DtoH",  # array to host
    5: "DtoD",
    6: "DtoD",
    7: "DtoD",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
    11: "HtoD",
    12: "DtoH",
    13: "DtoD",
}

MEMORY_KINDS: dict[int, str] = {
    0: "pageable",
    1: "pinned",
    2: "device",
    3: "array",
    4: "managed",
    5: "device",
    6: "managed",
}

SYNC_TYPES: dict[int, str] = {
    1: "Event Sync",
    2: "Stream Wait Event",
    3: "Stream Sync",
    4: "Context Sync",
}

EVENT_BACKTRACE = 67
"""eventClass of the second row that --cudabacktrace adds for the same call: never an API call of its own."""

NVTX_MARK, NVTX_PUSH_POP, NVTX_START_END, NVTX_DOMAIN = 34, 59, 60, 75

NO_STREAM = 4294967295

NO_ERROR = (0, 600)
"""Return values of calls that are no error; 600 is cudaErrorNotReady, a query's normal answer."""

API_VERSION_PATTERN = r"^(cuda[A-Za-z]\w*?)(_v\d{4,5})?(_ptsz|_ptds)?$"
"""cudaLaunchKernel_v7000 and cudaLaunchKernel_ptsz become cudaLaunchKernel; a driver call keeps its _v2."""

COLLECTIVE_PATTERN = r"^nccl(?:DevKernel|Kernel)_([A-Za-z0-9]+)"

COLLECTIVES: dict[str, str] = {
    "AllReduce": "allreduce",
    "AllGather": "allgather",
    "AllGatherV": "allgather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "SendRecv": "send_recv",
    "AlltoAll": "alltoall",
    "AllToAll": "alltoall",
    "Gather": "gather",
    "Scatter": "scatter",
}

DTYPE_PATTERN = (
    r"_(bf16|f16|f32|f64|f8e4m3|f8e5m2|i8|u8|i32|u32|i64|u64|half|float|double|int8|int32|int64)(?:_|\(|$)"
)


def case(column: str, values: dict[int, str], otherwise: str) -> str:
    """A SQL CASE over an integer column."""
    when = " ".join(f"WHEN {number} THEN '{text}'" for number, text in values.items())
    return f"CASE {column} {when} ELSE {otherwise} END"


def case_text(column: str, values: dict[str, str], otherwise: str) -> str:
    """A SQL CASE over a text column."""
    when = " ".join(f"WHEN '{key}' THEN '{text}'" for key, text in values.items())
    return f"CASE {column} {when} ELSE {otherwise} END"
