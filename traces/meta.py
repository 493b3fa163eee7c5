"""meta.json of a trace: its keys as a type, and the same keys with their documentation.

``TraceMeta`` is what ``Trace.meta`` and ``TraceWriter.meta`` hold. ``META_KEYS`` says the meaning of each key
in docs/trace-format.md, and which of them are always there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict


class SourceFile(TypedDict):
    """One file that the trace was made from; ``sha256`` is None for a file that was not hashed."""

    name: str
    bytes: int
    sha256: str | None


class Counts(TypedDict, total=False):
    """Rows by table, and slices by kind."""

    rows: dict[str, int]
    slices: dict[str, int]


class ClockEntry(TypedDict):
    """The clock of one GPU in one profiler session: fields of ``causality.model.Clock``."""

    process: int
    device: int
    session: int
    begins_ns: int | None
    first_ns: int
    last_ns: int
    launches: int
    waits: int
    verdict: Literal["consistent", "offset", "drift", "contradiction", "unknown"]
    constant_low_ns: int | None
    constant_high_ns: int | None
    low_ns: int | None
    high_ns: int | None
    last_low_ns: int | None
    last_high_ns: int | None
    drift_low_ppm: float | None
    drift_high_ppm: float | None
    outliers: int
    tolerance_ns: int
    moved_ns: int
    last_moved_ns: int


class SessionEntry(TypedDict):
    """A profiler session of a process that already had one: which process, and where it begins, ns."""

    process: int
    begin_ns: int


class ContradictionEntry(TypedDict):
    """Records that cannot all be true: fields of ``causality.model.Contradiction``."""

    code: str
    count: int
    total: int
    process: int | None
    device: int | None
    track: int | None
    first_ns: int | None
    last_ns: int | None
    amount: float | None
    example: int | None


class TrialEntry(TypedDict, total=False):
    """What profrun knew of the trial of a trace. ``work`` is what its ``steps.json`` declares."""

    run: str | None
    trial: str | None
    variant: str | None
    collector: str | None
    blocking: bool | None
    repeat: int | None
    attempt: int | None
    state: str | None
    nodes: list[str] | None
    cut: bool | None
    work: dict[str, Any] | None


class TraceMeta(TypedDict, total=False):
    """meta.json; ``META_KEYS`` says what each key means. A reader sets its keys one after the other."""

    format_version: str
    source: str
    vendor: str
    collector: str
    tool_version: str | None
    epoch_ns: int | None
    clock: str
    files: list[SourceFile]
    replayed: bool
    launch_blocking: bool | None
    job: TrialEntry | None
    counts: Counts
    clocks: list[ClockEntry]
    contradictions: list[ContradictionEntry]
    sessions: list[SessionEntry]
    extra: dict[str, Any]


@dataclass(frozen=True)
class MetaKey:
    """One key of meta.json: JSON type, meaning, and whether it is always there and never null.

    A key that came ``later`` than version 1.0 is missing in older traces.
    """

    name: str
    type: str
    doc: str
    required: bool = False
    later: bool = False


META_KEYS = (
    MetaKey("format_version", "string", "version of this format, major.minor", True),
    MetaKey("source", "string", "name of the reader, by the format of the files: kineto, rocpd, ...", True),
    MetaKey("vendor", "string", "nvidia, amd or none (no GPU record in it)", True),
    MetaKey("collector", "string", "name of the profiler that recorded, or none", True),
    MetaKey("tool_version", "string or null", "version the recording tool stated"),
    MetaKey("epoch_ns", "integer or null", "unix time in ns of ts_ns = 0"),
    MetaKey("clock", "string", "epoch, boottime, monotonic or session: what the axis is anchored to", True),
    MetaKey("files", "array", "the source files: {name, bytes, sha256 or null}", True),
    MetaKey(
        "replayed",
        "boolean",
        "no timeline: kernels were serialised or replayed for counters, or their durations are means",
        True,
    ),
    MetaKey("launch_blocking", "boolean or null", "was launch blocking set; null when not known"),
    MetaKey(
        "job",
        "object or null",
        "run, trial, variant, repeat, work, cut: what profrun knows of the trial; cut: a limit ended the "
        "recording of its run",
    ),
    MetaKey("counts", "object", "rows per table and slices per kind"),
    MetaKey(
        "clocks",
        "array",
        "the clock of each GPU in each profiler session: bounds of its offset from the host's clock, and "
        "what was added to its times; see [clocks.md](clocks.md)",
        later=True,
    ),
    MetaKey(
        "contradictions",
        "array",
        "records that cannot all be true, by code; see [clocks.md](clocks.md)",
        later=True,
    ),
    MetaKey(
        "sessions",
        "array",
        "where a process's second and later files begin: each file is a profiler session of its own",
        later=True,
    ),
    MetaKey("extra", "object", "what else the tool stated: driver, runtime versions, world size, ..."),
)
"""All keys of meta.json, in the order of the file."""
