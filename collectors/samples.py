"""``samples.<host>.jsonl`` of the sampler -> counter tracks of a trace: clocks, power, memory, CPU load.

The file is described in ``contract.sampling``. Each GPU of the trace gets one track named ``samples``, and
each host one track without a device. All samples of the trial go in, also those before the first recorded
slice and after the last one.

A GPU may have several rows in ``devices``, one for each process that saw it. Its track is on one of them, so
that sums over tracks count no energy twice: a row with streams or queues before one without, then the first.
Where some row has streams or queues, GPUs that have none get no track: the program did not use them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from profrun.collectors.axis import LIMIT, on_axis
from profrun.collectors.values import whole
from profrun.contract.codec import from_json
from profrun.contract.safe_files import open_file
from profrun.contract.sampling import FORMAT, MEANINGS, TRACK, SampledSource, SamplesHeader
from profrun.contract.visible_devices import plain_uuid
from profrun.traces.schema import GPU_TRACKS
from profrun.traces.writer import TraceWriter

_LINES = 20_000
"""Lines that are in memory at one time."""

Line = tuple[int, int, list[float]]
"""Unix time in ns, index of the source, values; NaN where a value could not be read."""


@dataclass
class Damage:
    """What could not be read: files without a header, and lines within a file."""

    files: list[str] = field(default_factory=list)
    lines: int = 0
    example: str | None = None


@dataclass(frozen=True)
class _Device:
    """A row of ``devices``; ``used`` says whether a stream or queue lies on it."""

    device: int
    process: int
    uuid: str
    host_ordinal: int | None
    used: bool


def add_files(writer: TraceWriter, files: Sequence[Path], hosts: Mapping[int, str] | None = None) -> None:
    """Add the samples of these files to a trace that a reader has made.

    Args:
        hosts: process -> name of its host, for processes whose host the reader does not know.

    What is damaged or has no place in the trace is a row of ``issues``.
    """
    if writer.meta["replayed"] or not files:
        return  # a replayed recording has no time axis that a sample could have a place on
    damage, placing = Damage(), _Placing(writer, len(files), hosts or {})
    for file in files:
        try:
            with os.fdopen(open_file(file, os.O_RDONLY, follow=True), "rb") as stream:
                header = read_header(stream)
                shift = on_axis(writer.meta, header.anchor)
                tracks = placing.tracks(header, shift)
                if shift is not None:
                    lines = read_lines(stream, header.sources, damage)
                    while chunk := list(islice(lines, _LINES)):
                        _insert(writer, header.sources, tracks, chunk, shift)
                else:
                    placing.without_axis += 1
        except (OSError, ValueError, RecursionError) as error:
            damage.files.append(f"{file.name}: {error}")
    placing.tell()
    issue = writer.issue
    first = damage.files[0] if damage.files else None
    issue("samples_unreadable", len(damage.files), "files of samples that cannot be read are left out", first)
    issue("sample_damaged", damage.lines, "lines that are no samples are left out", damage.example)


def read_header(stream: BinaryIO) -> SamplesHeader:
    """The first line of a file of samples.

    Raises:
        ValueError: it is no header of this format.
    """
    line = stream.readline()
    value = json.loads(line)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ValueError(f"it is not of format {FORMAT}")
    return from_json(SamplesHeader, value)


def read_lines(stream: BinaryIO, sources: Sequence[SampledSource], damage: Damage) -> Iterator[Line]:
    """The samples after the header; lines that are none are counted in ``damage``.

    The last line is no damage where it has no line end: the sampler was killed while it wrote.
    """
    sizes = [len(source.quantities) for source in sources]
    for line in stream:
        sample = _sample(line, sizes)
        if sample is not None:
            yield sample
        elif line.strip() and line.endswith(b"\n"):
            damage.lines += 1
            damage.example = damage.example or line[:80].decode("utf-8", "replace").strip()


def _sample(line: bytes, sizes: Sequence[int]) -> Line | None:
    """One line; None when it is no sample of one of the sources."""
    try:
        value = json.loads(line)
        if not isinstance(value, list):
            return None
        time, source, *values = value
        if whole(time, LIMIT) is None or whole(source, len(sizes)) is None or len(values) != sizes[source]:
            return None
        numbers = [math.nan if one is None else float(one) for one in values if type(one) in _NUMBERS]
    except (ValueError, OverflowError, RecursionError):
        return None
    return (time, source, numbers) if len(numbers) == len(values) else None


_NUMBERS = (int, float, type(None))


def _insert(
    writer: TraceWriter,
    sources: Sequence[SampledSource],
    tracks: Sequence[int | None],
    lines: Sequence[Line],
    shift: int,
) -> None:
    """Insert the values of these lines, all of one quantity of one source at once."""
    for number, (source, track) in enumerate(zip(sources, tracks, strict=True)):
        mine = [line for line in lines if line[1] == number]
        if track is None or not mine:
            continue
        times = np.array([line[0] for line in mine], dtype=np.int64) + shift
        values = np.array([line[2] for line in mine], dtype=np.float64)
        for column, quantity in enumerate(source.quantities):
            meaning = MEANINGS[quantity]
            there = np.flatnonzero(np.isfinite(values[:, column]))
            if not len(there):
                continue
            new = {"ts": times[there], "value": np.ascontiguousarray(values[there, column])}
            writer.con.register("new_samples", new)
            writer.con.execute(
                "INSERT INTO counters (track, ts_ns, name, value, unit) "
                f"SELECT {track}, ts, '{meaning.name}', value, '{meaning.unit}' FROM new_samples"
            )
            writer.con.unregister("new_samples")


class _Placing:
    """Gives the sources of files their tracks.

    Args:
        writer: of the trace.
        files: how many files there are. If there is one, it belongs to all processes, even if the name of
            their host is not known.
        hosts: see ``add_files``.
    """

    def __init__(self, writer: TraceWriter, files: int, hosts: Mapping[int, str]) -> None:
        self.writer = writer
        self.only = files == 1
        con = writer.con
        rows = con.execute("SELECT process, host FROM processes ORDER BY rank, process").fetchall()
        self.processes = [(process, host or hosts.get(process)) for process, host in rows]
        self.devices = [
            _Device(device, process, plain_uuid(uuid), ordinal, used)
            for device, process, uuid, ordinal, used in con.execute(
                "SELECT device, process, uuid, host_ordinal, device IN (SELECT device FROM tracks WHERE "
                f"kind IN {GPU_TRACKS}) FROM devices ORDER BY device"
            ).fetchall()
        ]
        if any(device.used for device in self.devices):
            self.devices = [device for device in self.devices if device.used]
        (first,) = con.execute("SELECT count(*) FROM tracks").fetchone() or (0,)
        self.next_track = int(first)
        self.taken: set[int] = set()
        self.seen_gpus = 0
        self.hosts: set[str] = set()
        self.without_host = 0
        self.without_axis = 0

    def tracks(self, header: SamplesHeader, shift: int | None) -> list[int | None]:
        """The track of each source of a file; None for a GPU that the trace does not have."""
        mine = [process for process, host in self.processes if host == header.host]
        if not mine and self.only:
            mine = [process for process, _ in self.processes]
        if not mine or header.host in self.hosts or shift is None:
            self.without_host += not mine
            return [None] * len(header.sources)
        self.hosts.add(header.host)
        devices = [device for device in self.devices if device.process in mine]
        gpus = sum(source.kind == "gpu" for source in header.sources)
        found: list[int | None] = []
        for source in header.sources:
            if source.kind == "host":
                found.append(self._track(mine[0], None))
                continue
            self.seen_gpus += 1
            device = _device_of(source, devices, gpus)
            if device is None or device.device in self.taken:
                found.append(None)
                continue
            self.taken.add(device.device)
            found.append(self._track(device.process, device.device))
        return found

    def _track(self, process: int, device: int | None) -> int:
        number, self.next_track = self.next_track, self.next_track + 1
        columns = ("track", "kind", "process", "device", "name")
        self.writer.insert("tracks", columns, [(number, "counter", process, device, TRACK)])
        return number

    def tell(self) -> None:
        """Record what has no place in the trace."""
        issue = self.writer.issue
        missing = self.seen_gpus if self.devices and not self.taken else 0
        issue("samples_without_device", missing, "none of the sampled GPUs is one of the trace's GPUs")
        issue("samples_without_host", self.without_host, "samples of hosts on which no process of it ran")
        issue(
            "samples_without_axis",
            self.without_axis,
            "the trace's times are not tied to the host's clock: the samples of the trial are not in it",
        )


def _device_of(source: SampledSource, devices: Sequence[_Device], gpus: int) -> _Device | None:
    """The device that a source is: by uuid, else by its number on the host, else the only one of both."""
    uuid = plain_uuid(source.uuid)
    same = [device for device in devices if uuid and device.uuid == uuid]
    if not same and source.index is not None:
        same = [one for one in devices if one.host_ordinal == source.index and not (uuid and one.uuid)]
    if not same and gpus == 1 and len(devices) == 1:
        same = list(devices)
    return min(same, key=lambda device: device.device, default=None)
