"""One profiled kernel launch, whatever it was read from, and how launches become a trace."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from profrun.collectors.beside import Beside
from profrun.traces.writer import TraceWriter

DURATION = ("gpu__time_duration.sum", "Duration")
_KERNEL_METRICS = {
    "registers": ("launch__registers_per_thread", "Registers Per Thread"),
    "smem_static": ("launch__shared_mem_per_block_static", "Static Shared Memory Per Block"),
    "smem_dynamic": ("launch__shared_mem_per_block_dynamic", "Dynamic Shared Memory Per Block"),
}
_DEVICE_METRICS = {
    "sm_count": "device__attribute_multiprocessor_count",
    "warp_size": "device__attribute_warp_size",
    "max_threads_per_sm": "device__attribute_max_threads_per_multiprocessor",
    "regs_per_sm": "device__attribute_max_registers_per_multiprocessor",
    "smem_per_sm": "device__attribute_max_shared_memory_per_multiprocessor",
    "memory_bytes": "device__attribute_total_memory",
}
_DEVICE = (
    *("device", "process", "vendor", "ordinal", "name", "arch"),
    *_DEVICE_METRICS,
    *("uuid", "host_ordinal"),
)
_TRIPLE = re.compile(r"^\s*\(?\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)?\s*$")


@dataclass
class Launch:
    """A launch as ncu reports it.

    Attributes:
        rank: of the process, by the order of the files when nothing says it (``rank_guessed``).
        name: demangled kernel name.
        grid, block: blocks, threads; None when the file does not say.
        metrics: name -> (value, unit), already in the trace's units.
        texts: metrics that are words: device name, cache configuration.
        beside: what profrun left beside the file.
    """

    name: str
    rank: int = 0
    rank_guessed: bool = False
    pid: int | None = None
    process: str | None = None
    host: str | None = None
    context: int | None = None
    stream: int | None = None
    device: int = 0
    capability: str | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    metrics: dict[str, tuple[float, str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    beside: Beside = field(default_factory=Beside)

    def value(self, *names: str) -> float | None:
        """The first of these metrics that is there."""
        for name in names:
            if name in self.metrics:
                return self.metrics[name][0]
        return None

    @property
    def duration_ns(self) -> int | None:
        """gpu__time_duration in ns: of one serialised, replayed run of the kernel."""
        value = self.value(*DURATION)
        return None if value is None else round(value)


def triple(text: str) -> tuple[int, int, int] | None:
    """'(16, 16, 1)' as numbers."""
    found = _TRIPLE.match(text)
    return sound((int(found.group(1)), int(found.group(2)), int(found.group(3)))) if found else None


def sound(shape: tuple[int, int, int]) -> tuple[int, int, int] | None:
    """A grid or block as it is, None when a size is below 1: no launch has that."""
    return shape if min(shape) >= 1 else None


def write(launches: Iterable[Launch], writer: TraceWriter) -> None:
    """Fill the trace: one kernel slice per launch, end to end in launch order, with its metrics.

    ncu has no timeline. Its kernels are put one after the other on the track of their stream, so that order
    and duration are kept; ``meta.replayed`` says that neither is a timeline's.
    """
    launches = list(launches)
    processes = _processes(launches, writer)
    devices = _devices(launches, processes, writer)
    tracks = _tracks(launches, processes, devices, writer)
    slices, kernels = [], []
    clock = 0
    for number, item in enumerate(launches):
        duration = max(item.duration_ns or 0, 0)
        slices.append((number, "kernel", item.name, clock, duration, tracks[_track_key(item)]))
        clock += duration
        small = [_whole(item.value(*names)) for names in _KERNEL_METRICS.values()]
        kernels.append((number, *(item.grid or (None,) * 3), *(item.block or (None,) * 3), *small))
    writer.insert("slices", ("slice", "kind", "name", "ts_ns", "dur_ns", "track"), slices)
    axes = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"]
    writer.insert("kernels", ("slice", *axes, *_KERNEL_METRICS), kernels)
    _metrics(launches, writer)
    _issues(launches, writer)


def _metrics(launches: list[Launch], writer: TraceWriter) -> None:
    """All metrics at once, as arrays: hundreds per launch."""
    rows = [(n, name, *pair) for n, item in enumerate(launches) for name, pair in item.metrics.items()]
    if not rows:
        return
    numbers, names, values, units = zip(*rows, strict=True)
    arrays = {
        "slice": np.array(numbers, dtype=np.int64),
        "name": np.array(names, dtype=object),
        "value": np.array(values, dtype=np.float64),
        "unit": np.array(units, dtype=object),
    }
    writer.con.register("ncu_metrics", arrays)
    writer.con.execute("INSERT INTO metrics BY NAME SELECT * FROM ncu_metrics")
    writer.con.unregister("ncu_metrics")


def _processes(launches: list[Launch], writer: TraceWriter) -> dict[tuple[int, int | None], int]:
    found: dict[tuple[int, int | None], int] = {}
    rows = []
    for item in launches:
        key = (item.rank, item.pid)
        if key not in found:
            found[key] = len(found)
            rows.append((found[key], item.pid or 0, item.rank, item.rank_guessed, item.host, item.process))
    writer.insert("processes", ("process", "pid", "rank", "rank_guessed", "host", "name"), rows)
    unknown = sum(1 for _, pid in found if pid is None)
    writer.issue("pid-unknown", unknown, "the report does not say which process this was: its pid is 0 here")
    return found


def _devices(
    launches: list[Launch], processes: dict[tuple[int, int | None], int], writer: TraceWriter
) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    rows = []
    for item in launches:
        key = (processes[(item.rank, item.pid)], item.device)
        if key in found:
            continue
        found[key] = len(found)
        name = item.texts.get("device__attribute_display_name") or "unknown"
        major = item.value("device__attribute_compute_capability_major")
        minor = item.value("device__attribute_compute_capability_minor")
        arch = f"sm_{int(major)}{int(minor)}" if major is not None and minor is not None else None
        if arch is None and item.capability:
            arch = "sm_" + item.capability.replace(".", "")
        facts = [_whole(item.value(metric)) for metric in _DEVICE_METRICS.values()]
        row = (found[key], key[0], "nvidia", item.device, name, arch, *facts, None, None)
        rows.append(dict(zip(_DEVICE, row, strict=True)))
        item.beside.describe(rows[-1:], {item.pid})  # ncu has no uuid, and no number on the host
    writer.insert("devices", _DEVICE, [tuple(row[column] for column in _DEVICE) for row in rows])
    return found


def _track_key(item: Launch) -> tuple[int, int | None, int, int | None, int | None]:
    return (item.rank, item.pid, item.device, item.context, item.stream)


def _tracks(
    launches: list[Launch],
    processes: dict[tuple[int, int | None], int],
    devices: dict[tuple[int, int], int],
    writer: TraceWriter,
) -> dict[tuple[int, int | None, int, int | None, int | None], int]:
    found: dict[tuple[int, int | None, int, int | None, int | None], int] = {}
    rows = []
    for item in launches:
        key = _track_key(item)
        if key in found:
            continue
        found[key] = len(found)
        process = processes[(item.rank, item.pid)]
        name = None if item.stream is None else f"stream {item.stream}"
        rows.append((found[key], "stream", process, devices[(process, item.device)], item.stream, name))
    writer.insert("tracks", ("track", "kind", "process", "device", "native_id", "name"), rows)
    return found


def _issues(launches: list[Launch], writer: TraceWriter) -> None:
    writer.issue(
        "no-timeline",
        len(launches),
        "ncu replays kernels one by one and records no start times: they lie end to end in launch order",
    )
    without = [item for item in launches if item.duration_ns is None]
    writer.issue(
        "no-duration",
        len(without),
        "kernels without gpu__time_duration (another section set was collected): they have 0 ns",
        without[0].name if without else None,
    )
    words = sum(len(item.texts) for item in launches)
    writer.issue("metric-not-number", words, "metrics that are words or empty have no row in metrics")


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
