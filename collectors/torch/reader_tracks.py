"""Kinds, processes, GPUs and tracks of kineto events, decided on their distinct owners.

An owner is all that an event says of whose it is: category, process, thread, device and stream.

Facts about the files that decide here (seen in recordings of 2021 to 2026):

* the ``pid`` of a GPU event is a device index, not a process; small container pids collide with it, so the
  category decides, never the number;
* CPUs of AMD hosts come first in roctracer's numbering: device 2 is the first GPU of a two-socket host, while
  deviceProperties count from 0; the rocprofiler-sdk backend counts from 0 again;
* ids are integers or strings ("stream 7", "0x0"), thread ids may be negative (truncated pthread ids).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from profrun.collectors.values import whole

HOST_KINDS = {
    "cpu_op": "op",
    "operator": "op",
    "user_annotation": "range",
    "cuda_runtime": "api",
    "cuda_driver": "api",
    "runtime": "api",
    "driver": "api",
    "xpu_runtime": "api",
    "xpu_driver": "api",
    "mtia_runtime": "api",
    "privateuse1_runtime": "api",
    "privateuse1_driver": "api",
    "python_function": "python",
    "overhead": "overhead",
}
GPU_KINDS = {
    "kernel": "kernel",
    "concurrent_kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "gpu_user_annotation": "range",
    "cuda_sync": "sync",
    "cuda_profiler_range": "range",
}
LEFT_OUT = {"trace"}
"""The profiler's own span over the whole recording: not work."""

Properties = dict[str, Any]
"""One entry of deviceProperties, or a row of the devices table made of it."""
Keys = Mapping[str, Any]
"""The keys of a file beside its events."""
Labels = Mapping[tuple[str, int | None, int | None], str]
"""("process_name", pid, None) or ("thread_name", pid, tid) -> what the file calls it."""

_NO_STREAM = 2**32 - 1
_ARCHES = {(9, 4): "gfx942", (9, 5): "gfx950"}
_AMD_NAMES = (("MI100", "gfx908"), ("MI210", "gfx90a"), ("MI250", "gfx90a"), ("MI300", "gfx942"))


@dataclass(frozen=True)
class Group:
    """Events of one owner."""

    owner: int
    src: int
    cat: str | None
    pid: str | None
    tid: str | None
    dev: int | None
    stream: str | None
    count: int
    rank: int | None = None


def number(text: str | None) -> int | None:
    """The integer in a label: ``7``, ``stream 7``, ``-1107294656``, ``0x1f``; None without one."""
    if text is None:
        return None
    found = re.search(r"0x[0-9a-fA-F]+|-?\d+", text)
    if found is None:
        return None
    value = int(found.group(), 0) if "x" in found.group() else int(found.group())
    return value if -(2**63) <= value < 2**63 else None


@dataclass(frozen=True)
class PartRank:
    """The rank of one part.

    Attributes:
        rank: the rank.
        guessed: nothing states it, or another part states the same one.
    """

    rank: int
    guessed: bool


def kind_of(cat: str | None) -> tuple[str | None, bool]:
    """(slice kind or None, lies on a GPU) of a category; unknown ones are ranges of a thread."""
    low = (cat or "").lower()
    if low in LEFT_OUT:
        return None, False
    if low in GPU_KINDS:
        return GPU_KINDS[low], True
    return HOST_KINDS.get(low, "range"), False


def host_events(groups: Sequence[Group]) -> Counter[int]:
    """Process id -> number of host events."""
    busy: Counter[int] = Counter()
    for group in groups:
        kind, on_gpu = kind_of(group.cat)
        pid = number(group.pid)
        if kind and not on_gpu and pid is not None and pid >= 0:
            busy[pid] += group.count
    return busy


def vendor_of(keys: Keys, apis: Sequence[str], gpu_events: int) -> str:
    """nvidia, amd, or none for a recording without any GPU record."""
    names = " ".join(str(item.get("name", "")) for item in properties(keys)).lower()
    warps = {whole(item.get("warpSize")) for item in properties(keys)}
    if (
        any(key.startswith(("roctracer", "rocprofiler", "hip_")) for key in keys)
        or "amd" in names
        or 64 in warps
    ):
        return "amd"
    if any(name.startswith("hip") for name in apis):
        return "amd"
    if gpu_events or any(name.startswith(("cuda", "cuLaunch")) for name in apis):
        return "nvidia"
    return "none"


def properties(keys: Keys) -> list[Properties]:
    """deviceProperties (early files: computeProperties), dicts only."""
    listed = keys.get("deviceProperties") or keys.get("computeProperties") or []
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def distributed(keys: Keys) -> Keys:
    """``distributedInfo``: rank, world_size, backend and process groups; empty where the file has none."""
    info = keys.get("distributedInfo")
    return info if isinstance(info, dict) else {}


class Tracks:
    """Collects the rows of processes, devices and tracks, and the map from owners to tracks.

    Attributes:
        processes: (process, pid, rank, whether that is a guess, host, name).
        devices: rows of the devices table as dicts.
        tracks: (track, kind, process, device, native_id, name); host tracks come first.
        mapping: (owner, part, pid, tid, kind, track, on a host thread) for every owner that has a track. What
            is called ``src`` in this class is the number of a part (``reader_parts``).
        host_tracks: how many tracks are threads.
        unknown: categories that are not known -> events.
        guessed: sentences about device numbers that could not be mapped for sure.
    """

    def __init__(self, homes: Sequence[int] = ()) -> None:
        """``homes``: for each part the first session of its process (``reader_sessions.homes``)."""
        self._home = dict(enumerate(homes))
        self.processes: list[tuple[int, int, int, bool, str | None, str | None]] = []
        self.devices: list[Properties] = []
        self.tracks: list[tuple[int, str, int, int | None, int | None, str | None]] = []
        self.mapping: list[tuple[int, int, str | None, str | None, str, int, bool]] = []
        self.host_tracks = 0
        self.unknown: Counter[str] = Counter()
        self.guessed: list[str] = []
        self.without_pid: list[int] = []
        self._process: dict[tuple[int, int], int] = {}
        self._main: dict[int, int] = {}
        self._device: dict[tuple[int, int], int] = {}
        self._ordinals: dict[int, dict[int, int]] = {}
        self._counter: dict[tuple[int, int | None], int] = {}
        self._thread: dict[tuple[int, int | None], int] = {}
        self._stream: dict[tuple[int, int | None], int] = {}

    def add_processes(
        self,
        src: int,
        groups: Sequence[Group],
        rank: PartRank,
        labels: Mapping[tuple[str, int | None, int | None], str],
        host: str | None = None,
    ) -> None:
        """Processes of one part; the busiest is the one that GPU events belong to."""
        busy = host_events(groups)
        if not busy:
            self.without_pid.append(src)
            busy[0] = 1
        home = self._home.get(src, src)
        for pid, _ in busy.most_common():
            if (home, pid) in self._process:  # a later session of the same process
                continue
            process = len(self.processes)
            name = labels.get(("process_name", pid, None))
            self.processes.append((process, pid, rank.rank, rank.guessed, host, name))
            self._process[home, pid] = process
            self._main.setdefault(home, process)

    def add_devices(
        self,
        src: int,
        groups: Sequence[Group],
        together: Sequence[Group],
        keys: Keys,
        vendor: str,
        allocator: set[int],
    ) -> None:
        """GPUs that one part announces or uses, with ordinals from 0; ``together``: of the whole file."""
        listed = {item["id"]: item for item in properties(keys) if whole(item.get("id")) is not None}
        self._ordinals[src] = self._map_ordinals(_used(together), listed, keys, vendor, allocator)
        own = {self._ordinals[src][device] for device in _used(groups)}
        home = self._home.get(src, src)
        for ordinal in sorted(set(listed) | own):
            if (home, ordinal) not in self._device:
                self._new_device(home, ordinal, vendor, listed.get(ordinal, {}))

    def _new_device(self, home: int, ordinal: int, vendor: str, item: Keys) -> None:
        self._device[home, ordinal] = len(self.devices)
        row = {"device": len(self.devices), "process": self._main[home], "vendor": vendor, "ordinal": ordinal}
        self.devices.append(row | _properties_row(item, vendor))

    def _map_ordinals(
        self,
        used: Sequence[int],
        listed: Mapping[int, Properties],
        keys: Keys,
        vendor: str,
        allocator: set[int],
    ) -> dict[int, int]:
        """Device number in the events -> ordinal."""
        same = {device: device for device in used}
        if vendor != "amd" or "rocprofiler-sdk_version" in keys or 0 in used or not used:
            return same  # node 0 is a CPU: a 0 proves that ordinals are counted
        if len(used) == len(listed):
            return dict(zip(used, sorted(listed), strict=True))
        if len(used) == len(allocator):
            return dict(zip(used, sorted(allocator), strict=True))
        lowest = min(listed, default=0)
        guess = {device: lowest + place for place, device in enumerate(used)}
        said = (
            f"GPU node ids {', '.join(map(str, used))} were taken as ordinals "
            f"{', '.join(str(guess[device]) for device in used)}"
        )
        if said not in self.guessed:
            self.guessed.append(said)
        return guess

    def devices_of(self, src: int) -> list[Properties]:
        """Rows of the GPUs of one part."""
        return [row for row in self.devices if row["process"] == self.main_process(src)]

    def main_process(self, src: int) -> int:
        """The process that the GPU events of one part belong to."""
        return self._main[self._home.get(src, src)]

    def add_host_tracks(self, src: int, groups: Sequence[Group], labels: Labels) -> None:
        """Threads of one file; call for all files before ``add_gpu_tracks``."""
        home, seen = self._home.get(src, src), self._thread
        for group in groups:
            kind, on_gpu = kind_of(group.cat)
            if kind is None or on_gpu:
                continue
            if (group.cat or "").lower() not in HOST_KINDS:
                self.unknown[str(group.cat)] += group.count
            pid, tid = number(group.pid), number(group.tid)
            process = self._process.get((home, -1 if pid is None else pid), self._main[home])
            if kind == "overhead":
                tid = None
            if (process, tid) not in seen:
                seen[process, tid] = len(self.tracks)
                name = labels.get(("thread_name", pid, tid)) if kind != "overhead" else "profiler overhead"
                self.tracks.append((len(self.tracks), "thread", process, None, tid, name))
            self._map(group, kind, seen[process, tid], host=True)
        self.host_tracks = len(self.tracks)

    def add_gpu_tracks(self, src: int, groups: Sequence[Group]) -> None:
        """Streams of one part. What states no device lies on that of other GPU events with its pid."""
        seen = self._stream
        by_pid = {group.pid: group.dev for group in groups if kind_of(group.cat)[1] and group.dev is not None}
        for group in groups:
            kind, on_gpu = kind_of(group.cat)
            if kind is None or not on_gpu:
                continue
            named = group.dev if group.dev is not None else by_pid.get(group.pid)
            number_of_device = _device(replace(group, dev=named))
            if number_of_device is None:
                self.guessed.append(f"device {group.dev or group.pid} was taken as the first one")
            device, stream = self._device_row(src, number_of_device), _stream(group)
            if (device, stream) not in seen:
                seen[device, stream] = len(self.tracks)
                name = f"stream {stream}" if stream is not None else "no stream"
                self.tracks.append((len(self.tracks), "stream", self.main_process(src), device, stream, name))
            self._map(group, kind, seen[device, stream], host=False)

    def counter_track(self, src: int, ordinal: int | None) -> int:
        """Track of the allocator's samples of one file on a GPU, or on the host (None)."""
        home = self._home.get(src, src)
        if (home, ordinal) not in self._counter:
            self._counter[home, ordinal] = len(self.tracks)
            device = None if ordinal is None else self._device_row(src, ordinal, mapped=True)
            name = "memory of the host" if ordinal is None else f"memory of GPU {ordinal}"
            self.tracks.append((len(self.tracks), "counter", self._main[home], device, None, name))
        return self._counter[home, ordinal]

    def _device_row(self, src: int, device: int | None, *, mapped: bool = False) -> int:
        found = device if device is not None else min(self._ordinals[src], default=0)
        ordinal = found if mapped else self._ordinals[src].get(found, found)
        home = self._home.get(src, src)
        if (home, ordinal) not in self._device:
            own = (row["vendor"] for row in self.devices_of(src))
            self._new_device(home, ordinal, next(own, "nvidia"), {})
        return self._device[home, ordinal]

    def _map(self, group: Group, kind: str, track: int, *, host: bool) -> None:
        self.mapping.append((group.owner, group.src, group.pid, group.tid, kind, track, host))


def _device(group: Group) -> int | None:
    device = group.dev if group.dev is not None else number(group.pid)
    return whole(device)


def _used(groups: Sequence[Group]) -> list[int]:
    """Device numbers of work, sorted."""
    work = ("kernel", "memcpy", "memset")
    numbers = {_device(group) for group in groups if kind_of(group.cat)[0] in work}
    return sorted(number for number in numbers if number is not None)


def _stream(group: Group) -> int | None:
    stream = number(group.stream)
    stream = number(group.tid) if stream is None else stream
    return None if stream is None or stream < 0 or stream == _NO_STREAM else stream


def _properties_row(item: Keys, vendor: str) -> Properties:
    """Columns of the devices table from one entry of deviceProperties."""

    def known(*names: str, below: int = 2**31) -> int | None:
        return next((value for name in names if (value := whole(item.get(name), below))), None)

    name = str(item.get("name") or "unknown")
    return {
        "name": name,
        "arch": _arch(name, item.get("computeMajor"), item.get("computeMinor"), vendor),
        "sm_count": known("numSms", "multiProcessorCount"),
        "warp_size": known("warpSize"),
        "max_threads_per_sm": known("maxThreadsPerMultiprocessor", "maxThreadsPerMultiProcessor"),
        "regs_per_sm": known("regsPerMultiprocessor"),
        "smem_per_sm": known("sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiProcessor", below=2**63),
        "memory_bytes": known("totalGlobalMem", below=2**63),
    }


def _arch(name: str, major: object, minor: object, vendor: str) -> str | None:
    if not isinstance(major, int) or not isinstance(minor, int):
        return None
    if vendor == "nvidia":
        return f"sm_{major}{minor}"
    named = next((arch for part, arch in _AMD_NAMES if part in name), None)
    return named or _ARCHES.get((major, minor))
