"""meta.json of a trace: its keys as a type, and the same keys with their documentation.

``TraceMeta`` is what ``Trace.meta`` and ``TraceWriter.meta`` hold. ``META_KEYS`` says the meaning of each key
in docs/trace-format.md, and which of them are always there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict


class SourceFile(TypedDict):
    """One file that the trace was made from; ``sha256`` is None for a file that was not hashed."""

    name: str
    bytes: int
    sha256: str | None


class Counts(TypedDict, total=False):
    """Rows by table, and slices by kind."""

    rows: dict[str, int]
    slices: dict[str, int]


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
    job: dict[str, Any] | None
    counts: Counts
    extra: dict[str, Any]


@dataclass(frozen=True)
class MetaKey:
    """One key of meta.json: JSON type, meaning, and whether it is always there and never null."""

    name: str
    type: str
    doc: str
    required: bool = False


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
    MetaKey("job", "object or null", "run, trial, variant, repeat, work: what profrun knows of the trial"),
    MetaKey("counts", "object", "rows per table and slices per kind"),
    MetaKey("extra", "object", "what else the tool stated: driver, runtime versions, world size, ..."),
)
"""All keys of meta.json, in the order of the file."""
