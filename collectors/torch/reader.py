"""torch.profiler's kineto JSON, every generation from 2021 on, NVIDIA, AMD and CPU only -> the trace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from profrun.collectors.beside import Beside, beside
from profrun.collectors.reading import TIME_LIMIT_NS, Progress, Source
from profrun.collectors.torch import (
    reader_generated,
    reader_issues,
    reader_metrics,
    reader_sources,
    reader_stage,
    reader_tables,
)
from profrun.collectors.torch.events import library
from profrun.collectors.torch.reader_cut import EventFile
from profrun.collectors.torch.reader_handover import TABLES as HANDED_OVER
from profrun.collectors.torch.reader_parts import Divided, divide
from profrun.collectors.torch.reader_ranks import Extent, Placed, pids, placed
from profrun.collectors.torch.reader_tracks import (
    GPU_KINDS,
    HOST_KINDS,
    Group,
    Keys,
    Tracks,
    distributed,
    number,
    vendor_of,
)
from profrun.traces.meta import SessionEntry
from profrun.traces.writer import TraceWriter

_CATS = "|".join(sorted(HOST_KINDS | GPU_KINDS))
_CATEGORY = re.compile(
    rf'"cat"\s*:\s*"(?:{_CATS}|ac2g|async_cpu_to_gpu|fwdbwd|cpu_instant_event)"'.encode(), re.I
)
_OTHER_TOOL = re.compile(rb'\{\s*"displayTimeUnit"\s*:\s*"us"')
"""Kineto states ms or nothing, and not at the beginning."""
_KEYS = (
    b'"schemaVersion"',
    b'"deviceProperties"',
    b'"computeProperties"',
    b'"distributedInfo"',
    b'"torch_profiler',
)
_BESIDE = 2_000_000
"""More slices are written when the rest is done, to keep the memory within bounds."""
_ANCHORED_FROM_NS = 10**17
"""Larger times can only be unix times (1973 and later)."""


Names = dict[tuple[str, int | None, int | None], str]
"""(process_name or thread_name, pid, tid) -> the name."""


class KinetoReader:
    """Reads one or several ranks' kineto files into one trace."""

    name = "kineto"

    def accepts(self, source: Source) -> bool:
        """JSON with kineto's categories, or with the keys that only kineto writes."""
        text = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")
        if not text.startswith((b"{", b"[")) or _OTHER_TOOL.match(text):
            return False
        if _CATEGORY.search(text):
            return True
        return text.startswith(b"{") and any(key in text for key in _KEYS)

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the writer from all files; see ``Reader``."""
        con = writer.con
        con.execute("SET preserve_insertion_order = false")
        sizes = [source.path.stat().st_size for source in sources]
        files = _stage(writer, sources, sizes, progress)
        recording = _Recording(writer, [file.keys for file in files], [beside(item.path) for item in sources])
        recording.place()
        staged = con.execute("SELECT count(*) FROM k_core").fetchone()
        writer.room_for(staged[0] if staged else 0)
        reader_issues.events(writer)
        crossing = reader_tables.slices(con, recording.tracks.host_tracks)
        held = con.execute("SELECT count(*) FROM k_slice").fetchone()
        writer.deliver("slices", reader_tables.rows(con), begin=bool(held and held[0] <= _BESIDE))
        reader_tables.kernels(con)
        reader_tables.copies(con)
        reader_tables.ops(con, recording.divided.key("e.src", "e.rank"))
        reader_tables.collectives(con)
        reader_tables.counters(writer, recording.divided.key("e.src", "e.rank"))
        reader_metrics.metrics(writer, sources)
        reader_generated.generated(writer, sources)
        reader_sources.source_lines(writer, sources)
        reader_issues.record(writer, files, recording.tracks, crossing)
        progress(sum(sizes), sum(sizes))


def _stage(
    writer: TraceWriter, sources: Sequence[Source], sizes: Sequence[int], progress: Progress
) -> list[EventFile]:
    """Bring all events into ``writer.con``: by the compiled parser if it takes every file, else by DuckDB.

    Args:
        sizes: of the files, in bytes.
    """
    before = list(accumulate(sizes, initial=0))

    def reporter(src: int) -> Progress:
        return lambda done, _total: progress(before[src] + done, before[-1])

    con = writer.con
    if library() is not None:
        from profrun.collectors.torch import reader_compiled
        from profrun.collectors.torch.reader_workers import Numbers

        numbers = Numbers()
        reader_compiled.create(con)
        heaps, files = reader_compiled.Heaps(con), []
        for src, source in enumerate(sources):
            file = reader_compiled.stage(heaps, numbers, src, source.path, source.gzip, reporter(src))
            if file is None:
                break
            files.append(file)
        if len(files) == len(sources):
            heaps.flush()
            reader_compiled.gather(con, numbers)
            return files
        reader_compiled.drop(con)
    staged = [
        reader_stage.stage(con, src, source.path, source.gzip, writer.scratch, reporter(src))
        for src, source in enumerate(sources)
    ]
    reader_stage.gather(con, [part for file in staged for part in file.parts])
    return [file.file for file in staged]


@dataclass
class _Recording:
    """The owners of events in all files and what they decide: vendors, ranks, clocks, tracks.

    Attributes:
        keys: the keys of each file.
        beside: what the hook left beside each file.
        divided: the files as parts; a part is what ``src`` of ``Tracks`` counts.
    """

    writer: TraceWriter
    keys: list[dict[str, Any]]
    beside: list[Beside]
    tracks: Tracks = field(default_factory=Tracks)
    divided: Divided = field(default_factory=lambda: divide([], 0))

    def place(self) -> None:
        """Fill processes, devices, tracks, ``k_track``, ``k_vendor``, ``k_counter`` and the meta."""
        writer, con = self.writer, self.writer.con
        groups = [
            Group(*row)
            for row in con.execute(
                "SELECT owner, src, cat, pid, tid, dev, stream, events, rank FROM k_owner "
                "ORDER BY src, first, cat, pid, tid, dev, stream, rank"
            ).fetchall()
        ]
        samples = con.execute("SELECT DISTINCT src, rank FROM k_memory").fetchall()
        self.divided = divide(groups, len(self.keys), samples)
        self.vendors = self._vendors(groups)
        shifts, extents = self._clocks()
        whose = placed(writer, self.divided, self.keys, self.beside, extents)
        self.tracks = Tracks(whose.homes)
        self._tracks(whose)
        self._sessions(whose.homes, extents)
        con.execute(
            "CREATE TABLE k_track (owner BIGINT, src INTEGER, part INTEGER, rank BIGINT, pid VARCHAR, "
            "tid VARCHAR, kind VARCHAR, track INTEGER, host BOOLEAN, shift BIGINT)"
        )
        rows = []
        for owner, place, *rest in self.tracks.mapping:
            part = self.divided.parts[place]
            rows.append((owner, part.src, place, part.rank, *rest, shifts[part.src]))
        writer.insert("k_track", HANDED_OVER["k_track"].split(", "), rows)
        con.execute("CREATE TABLE k_vendor (src INTEGER, vendor VARCHAR)")
        writer.insert("k_vendor", ("src", "vendor"), enumerate(self.vendors))
        self._counters(shifts)
        self._write()
        self._meta()

    def _vendors(self, groups: Sequence[Group]) -> list[str]:
        apis: dict[int, list[str]] = {}
        for src, name in self.writer.con.execute(
            "SELECT src, text FROM (SELECT DISTINCT src, name FROM k_core JOIN k_owner USING (owner) "
            "WHERE cat IN ('cuda_runtime', 'cuda_driver', 'Runtime')) c JOIN k_text t ON c.name = t.number"
        ).fetchall():
            apis.setdefault(src, []).append(str(name))
        gpu: Counter[int] = Counter()
        for group in groups:
            gpu[group.src] += group.count if (group.cat or "").lower() in GPU_KINDS else 0
        return [vendor_of(keys, apis.get(src, []), gpu[src]) for src, keys in enumerate(self.keys)]

    def _clocks(self) -> tuple[list[int], list[Extent | None]]:
        """Shift of each file onto one axis, and where its events lie on it, ns; sets epoch and clock."""
        anchors: list[int | None] = []
        counts = {
            src: found
            for src, *found in self.writer.con.execute(
                f"SELECT src, count(*), count(*) FILTER (ts >= {_ANCHORED_FROM_NS}), min(ts), max(ts) "
                "FROM k_core JOIN k_owner USING (owner) "
                f"WHERE abs(ts) < {TIME_LIMIT_NS} GROUP BY src"
            ).fetchall()
        }
        for src, keys in enumerate(self.keys):
            count, unix = counts.get(src, (0, 0))[:2]
            base = keys.get("baseTimeNanoseconds")
            if 2 * unix > count:
                anchors.append(0)
            else:
                sound = isinstance(base, int) and 0 < base < TIME_LIMIT_NS
                anchors.append(base if sound else None)
        known = [anchor for anchor in anchors if anchor is not None]
        meta = self.writer.meta
        if len(known) < len(anchors):
            meta["epoch_ns"], meta["clock"] = None, "session"
            if len(anchors) > 1:
                self.writer.issue(
                    "clocks_not_aligned",
                    len(anchors) - len(known),
                    "files without baseTimeNanoseconds: the ranks' times cannot be put on one axis",
                )
            return [0] * len(anchors), [None] * len(anchors)
        meta["epoch_ns"], meta["clock"] = min(known), "epoch"
        shifts = [anchor - min(known) for anchor in known]
        extents: list[Extent | None] = [
            (counts[src][2] + shift, counts[src][3] + shift) if src in counts else None
            for src, shift in enumerate(shifts)
        ]
        return shifts, extents

    def _tracks(self, whose: Placed) -> None:
        tracks, divided = self.tracks, self.divided
        order = sorted(range(len(whose.homes)), key=lambda place: whose.homes[place] != place)
        own = {place: divided.by_part[place] for place in order}  # first sessions come first
        files: dict[int, list[Group]] = {}
        for group in divided.groups:
            files.setdefault(divided.parts[group.src].src, []).append(group)
        named, allocators = self._names(), self._allocators()
        for place, mine in own.items():
            host = self.beside[divided.parts[place].src].host
            tracks.add_processes(place, mine, whose.ranks[place], named[place], host)
        for place, mine in own.items():
            part = divided.parts[place]
            src, sampled = part.src, allocators.get((part.src, part.rank), set())
            tracks.add_devices(place, mine, files.get(src, []), self.keys[src], self.vendors[src], sampled)
            self.beside[src].describe(tracks.devices_of(place), pids(divided, place))
        for place, mine in own.items():
            tracks.add_host_tracks(place, mine, named[place])
        for place, mine in own.items():
            tracks.add_gpu_tracks(place, mine)

    def _names(self) -> dict[int, Names]:
        """Part -> names of its processes and threads.

        Of several names for one thread it is the one that is not just the name of the process.
        """
        rows = self.writer.con.execute(
            f"SELECT src, CASE WHEN rank IS NOT NULL THEN {self.divided.key('src', 'rank')} END, name, pid, "
            "tid, label FROM k_other WHERE ph = 'M' AND name IN ('process_name', 'thread_name') "
            "AND label <> '' ORDER BY name, label"
        ).fetchall()
        places: dict[int, list[int]] = {}
        for place, part in enumerate(self.divided.parts):
            places.setdefault(part.src, []).append(place)
        named: dict[int, Names] = {place: {} for place in range(len(self.divided.parts))}
        for src, rank, kind, pid, tid, label in rows:
            process, thread = number(pid), number(tid) if kind == "thread_name" else None
            for place in places[src]:
                if rank is not None and rank != self.divided.parts[place].rank:
                    continue
                names = named[place]
                before = names.get((kind, process, thread))
                common = names.get(("process_name", process, None), "python")
                if before is None or (f"({common})" in before and f"({common})" not in label):
                    names[kind, process, thread] = label
        return named

    def _allocators(self) -> dict[tuple[int, int], set[int]]:
        """(File, rank of the part) -> GPUs that the allocator's samples name."""
        found: dict[tuple[int, int], set[int]] = {}
        for src, rank, device in self.writer.con.execute(
            f"SELECT DISTINCT src, {self.divided.key('src', 'rank')}, dev_id FROM k_memory "
            "WHERE dev_type = 1 AND dev_id >= 0"
        ).fetchall():
            found.setdefault((src, rank), set()).add(int(device))
        return found

    def _sessions(self, homes: Sequence[int], extents: Sequence[Extent | None]) -> None:
        """State where the later sessions of a process begin."""
        for place, home in enumerate(homes):
            extent = extents[self.divided.parts[place].src]
            if place != home and extent is not None:
                entry = SessionEntry(process=self.tracks.main_process(home), begin_ns=extent[0])
                self.writer.meta["sessions"].append(entry)

    def _counters(self, shifts: Sequence[int]) -> None:
        con = self.writer.con
        con.execute(
            "CREATE TABLE k_counter "
            "(src INTEGER, rank BIGINT, dev_type BIGINT, dev_id BIGINT, track INTEGER, shift BIGINT)"
        )
        rows = con.execute(
            f"SELECT DISTINCT src, {self.divided.key('src', 'rank')} AS rank, dev_type, dev_id FROM k_memory "
            "ORDER BY ALL"
        ).fetchall()
        places = {(part.src, part.rank): place for place, part in enumerate(self.divided.parts)}
        found = []
        for src, rank, kind, device in rows:
            ordinal = None if kind in (0, None) or device is None else device
            track = self.tracks.counter_track(places[src, rank], ordinal)
            found.append((src, rank, kind, device, track, shifts[src]))
        self.writer.insert("k_counter", HANDED_OVER["k_counter"].split(", "), found)

    def _write(self) -> None:
        writer, tracks = self.writer, self.tracks
        columns = ("process", "pid", "rank", "rank_guessed", "host", "name")
        writer.insert("processes", columns, tracks.processes)
        for device in tracks.devices:
            writer.insert("devices", tuple(device), [tuple(device.values())])
        writer.insert("tracks", ("track", "kind", "process", "device", "native_id", "name"), tracks.tracks)

    def _meta(self) -> None:
        keys = self.keys[0] if self.keys else {}
        vendors = {vendor for vendor in self.vendors if vendor != "none"}
        versions = {
            key: value
            for key, value in keys.items()
            if key.endswith("_version")
            or key in ("schemaVersion", "trace_id", "traceName", "displayTimeUnit")
        }
        asked = [
            key
            for key in ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
            if keys.get(key)
        ]
        world = distributed(keys).get("world_size")
        backend = distributed(keys).get("backend")
        self.writer.meta.update(
            {
                "source": "kineto",
                "collector": "torch",
                "vendor": sorted(vendors)[0] if vendors else "none",
                "tool_version": _tool_version(keys),
                "extra": {
                    "versions": versions,
                    "asked": asked,
                    "world_size": world if isinstance(world, int) else None,
                    "backend": backend if isinstance(backend, str) else None,
                },
            }
        )


def _tool_version(keys: Keys) -> str | None:
    """The GPU recorder's version: kineto states its own nowhere."""
    for key in ("cupti_version", "rocprofiler-sdk_version", "roctracer_version"):
        if key in keys:
            return f"{key.removesuffix('_version')} {keys[key]}"
    return None


READERS = (KinetoReader(),)
