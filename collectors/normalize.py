"""Any profiler's files in, one checked trace out. Which reader: by content, never by file name."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from profrun.collectors import samples as sampled
from profrun.collectors import step_times
from profrun.collectors.reading import Progress, Reader, Source
from profrun.collectors.sniff import make_source
from profrun.collectors.unpacked import Unpacked
from profrun.contract.profilers import BUILT_IN, UnknownProfilerError, names, profiler, tools
from profrun.errors import InputError, UnavailableError, UsageError
from profrun.traces.meta import ClockEntry, ContradictionEntry, SourceFile, TraceMeta, TrialEntry
from profrun.traces.writer import TraceWriter

HASH_LIMIT = 64 << 20
"""Larger source files get sha256 null in meta.json: hashing would cost as much as reading."""

LOOKED_INTO = 50
"""Files of a refused folder that are looked into, for what to say of it."""


class Issue(TypedDict):
    """A row of the issues table."""

    code: str
    count: int
    message: str
    example: str | None


@dataclass(frozen=True)
class NormalizeResult:
    """What was made; ``normalize --json`` prints it.

    Attributes:
        trace: the folder.
        source: ``meta.source``.
        tool_version: the recording tool's version as it states it, or None.
        vendor: nvidia, amd or none.
        counts: slices (all kinds), kernels, memcpys, memsets, api, ops, ranges, steps.
        issues: rows of the issues table.
        clocks, contradictions: ``meta.clocks`` and ``meta.contradictions``.
        seconds: wall time of reading, writing and checking.
    """

    trace: Path
    source: str
    tool_version: str | None
    vendor: str
    counts: dict[str, int]
    issues: list[Issue] = field(default_factory=list)
    clocks: list[ClockEntry] = field(default_factory=list)
    contradictions: list[ContradictionEntry] = field(default_factory=list)
    seconds: float = 0.0

    def as_json(self) -> dict[str, object]:
        """JSON-ready dict, keys as documented."""
        return {
            "trace": str(self.trace),
            "source": self.source,
            "tool_version": self.tool_version,
            "vendor": self.vendor,
            "counts": self.counts,
            "issues": self.issues,
            "clocks": self.clocks,
            "contradictions": self.contradictions,
            "seconds": self.seconds,
        }


def readers() -> Iterator[Reader]:
    """Every reader that is there, in the order in which they are tried.

    Those of other packages come last, and are loaded only when no built-in one accepts a file.

    Raises:
        UnavailableError: a profiler of another package cannot be loaded.
    """
    for name in BUILT_IN:
        yield from readers_of(name)
    for name in names():
        if name not in BUILT_IN:
            yield from readers_of(name)


def readers_of(name: str) -> Sequence[Reader]:
    """The readers of one profiler; none where it has no files of its own.

    Raises:
        UnavailableError: it is not installed (any more), or cannot be loaded.
    """
    try:
        found: Sequence[Reader] = getattr(profiler(name).part("reader"), "READERS", ())
    except (ImportError, UnknownProfilerError) as error:
        raise UnavailableError(
            f"the profiler {name} cannot be loaded", why=str(error), fix="install or repair its package"
        ) from error
    return found


def normalize(
    paths: Sequence[Path],
    out: Path,
    *,
    reader: str | None = None,
    job: TrialEntry | None = None,
    steps: Sequence[Path] = (),
    samples: Sequence[Path] = (),
    progress: Progress | None = None,
    repair: bool = True,
) -> NormalizeResult:
    """Read the files of one recording (ranks, databases, CSV families) into the trace folder ``out``.

    Args:
        paths: files, or folders that a reader knows; all of one kind.
        out: where the trace goes; must not exist or be an empty folder.
        reader: name of the reader to force (``meta.source``), None to detect by content.
        job: what is known of the trial, kept as ``meta.job``.
        steps: ``steps.json`` of the trial's ranks, for ``step_times``. The reader of such files adds those
            that it reads itself.
        samples: what the trial's samplers wrote (``contract.sampling``), for counters.
        progress: called with bytes done and the total (None when unknown).
        repair: put GPU times that cannot be true on the host's clock; ``meta.clocks`` says what was added.

    Raises:
        UsageError: no path, or an unknown reader name.
        InputError: a file is no profile, is damaged beyond reading, or the files are of different kinds.
        UnavailableError: no space left, or a tool that is needed to read the files is not there.
    """
    started = time.perf_counter()
    if not paths:
        raise UsageError("nothing to normalize", fix="name the profiler's files")
    given = [make_source(path) for path in paths]
    out = Path(out)
    with TraceWriter(out) as writer:
        unpacked = Unpacked(writer.scratch / "unpacked")
        sources = [unpacked.plain(source) for source in given]
        with unpacked.named():
            chosen = _choose(sources, reader)
            writer.meta["files"] = [_file_entry(source.path) for source in given]
            writer.meta["job"] = job or None
            chosen.read(sources, writer, progress or _silent)
        hosts = step_times.add_files(writer, steps) if writer.meta["source"] != "steps" else {}
        sampled.add_files(writer, samples, hosts)
        _set_blocking(writer.meta)
        cursor = writer.con.execute("SELECT code, count, message, example FROM issues ORDER BY code, message")
        issues = [
            Issue(code=code, count=count, message=message, example=example)
            for code, count, message, example in cursor.fetchall()
        ]
        writer.finish(check=True, clocks="repair" if repair else "keep")
    return _result(out, writer.meta, issues, time.perf_counter() - started)


def _set_blocking(meta: TraceMeta) -> None:
    """Whether launches were blocking, by the trial's orders where the recording does not say (torch's does
    not). Without a GPU there are no launches, and nothing is stated."""
    ordered = (meta["job"] or {}).get("blocking")
    if meta["launch_blocking"] is None and isinstance(ordered, bool) and meta["vendor"] != "none":
        meta["launch_blocking"] = ordered


def _result(out: Path, meta: TraceMeta, issues: list[Issue], seconds: float) -> NormalizeResult:
    kinds = meta["counts"]["slices"]
    names = {
        "kernels": "kernel",
        "memcpys": "memcpy",
        "memsets": "memset",
        "api": "api",
        "ops": "op",
        "ranges": "range",
        "steps": "step",
    }
    counts = {"slices": sum(kinds.values())} | {key: kinds.get(kind, 0) for key, kind in names.items()}
    return NormalizeResult(
        out,
        meta["source"],
        meta["tool_version"],
        meta["vendor"],
        counts,
        issues,
        meta["clocks"],
        meta["contradictions"],
        round(seconds, 3),
    )


def _choose(sources: Sequence[Source], name: str | None) -> Reader:
    """The one reader that takes all sources."""
    if name is not None:
        known = {reader.name: reader for reader in readers()}
        if name in known:
            return known[name]
        raise UsageError(f"unknown reader {name!r}", fix="use one of " + ", ".join(sorted(known)))
    takers = [next((reader for reader in readers() if _accepts(reader, source)), None) for source in sources]
    for source, taker in zip(sources, takers, strict=True):
        if taker is None:
            raise InputError(
                f"{source.path} is no profile that profrun can read",
                why=describe(source),
                fix="give files of " + ", ".join(one for one in tools() if one != "none"),
            )
    first = takers[0]
    assert first is not None
    for source, taker in zip(sources, takers, strict=True):
        if taker is not first and taker is not None:
            raise InputError(
                f"{sources[0].path} and {source.path} are of different kinds",
                why=f"{first.name} and {taker.name}",
                fix="normalize each kind into a trace of its own",
            )
    return first


def _accepts(reader: Reader, source: Source) -> bool:
    try:
        return reader.accepts(source)
    except OSError:  # a folder that changes while it is looked through
        return False


def describe(source: Source) -> str:
    """What unknown content looks like, in a few words."""
    if source.path.is_dir():
        return _folder(source.path)
    if source.sqlite_tables:
        return "it is a SQLite database with tables " + ", ".join(sorted(source.sqlite_tables)[:4])
    if source.head.startswith(b"SQLite format 3\0"):
        return "it is a SQLite database without tables"
    text = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith((b"{", b"[")):
        if b'"traceEvents"' in text or b'"ph"' in text:
            return "it is a Chrome trace, but of a tool that is not known"
        return "it is JSON, but not a trace"
    if b"\0" in text:
        return "it is a binary file of unknown kind"
    line = text.splitlines()[0][:60].decode("utf-8", "replace") if text.splitlines() else ""
    return f"it is text that begins with {line!r}"


def _folder(path: Path) -> str:
    """A folder that no reader takes whole: has it files that one takes by name?"""
    known = list(readers())
    for item in sorted(path.iterdir())[:LOOKED_INTO]:
        try:
            source = make_source(item)
        except InputError:
            continue
        if item.is_file() and any(_accepts(reader, source) for reader in known):
            return f"it is a folder; name the files in it that are one recording, like {item.name}"
    return "it is a folder without profiler files"


def _file_entry(path: Path) -> SourceFile:
    if path.is_dir():
        size = sum(item.stat().st_size for item in path.rglob("*") if item.is_file())
        return {"name": path.name, "bytes": size, "sha256": None}
    size = path.stat().st_size
    return {"name": path.name, "bytes": size, "sha256": sha256_of(path) if size <= HASH_LIMIT else None}


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    state = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def _silent(_done: int, _total: int | None) -> None:
    """No progress wanted."""
