"""torch.profiler's JSON files (kineto): read exactly, changed by record, written exactly.

Numbers are kept as decimals: a time with 19 digits comes back with the same 19 digits.
"""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from copy import deepcopy
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from planted_damage.model import MARK, GpuRecord, HostRecord, Recording

GPU_KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "memcpy": "copy",
    "gpu_memset": "fill",
    "memset": "fill",
    "gpu_user_annotation": MARK,
}
API = {"cuda_runtime", "cuda_driver", "runtime"}
STEP = re.compile(r"ProfilerStep\s*#\d+")
Event = dict[str, Any]

_DECODER = msgspec.json.Decoder(float_hook=Decimal)
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def _to_ns(value: Any) -> int:
    return round(Decimal(value) * 1000)


def _from_ns(time: int) -> int | Decimal:
    whole, rest = divmod(time, 1000)
    return whole if rest == 0 else Decimal(time) / 1000


class Kineto(Recording):
    """One JSON file per process, or one file in which ``args.rank`` tells several processes apart."""

    family = "kineto"

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self.names = [path.name for path in paths]
        self.documents: list[dict[str, Any]] = []
        self._flows: list[dict[tuple[Any, Any, Any], list[Event]]] = []
        self._old: dict[tuple[object, ...], tuple[int, int, Hashable]] = {}
        for path in paths:
            raw = path.read_bytes()
            text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
            self._add(_DECODER.decode(text))

    def _add(self, document: dict[str, Any]) -> None:
        number = len(self.documents)
        self.documents.append(document)
        lanes: set[tuple[Any, Any]] = set()
        fine = 0
        merged = _is_merged(document["traceEvents"])
        for index, event in enumerate(document["traceEvents"]):
            if event.get("ph") != "X" or "ts" not in event:
                continue
            start, length = _to_ns(event["ts"]), _to_ns(event.get("dur", 0))
            fine += bool(start % 1000 or length % 1000)
            process = (number, event["args"].get("rank") if merged else None)
            self._record(process, index, event, (start, start + length), lanes)
        self.tick_ns = 1 if fine or (number and self.tick_ns == 1) else 1000
        flows: dict[tuple[Any, Any, Any], list[Event]] = defaultdict(list)
        for event in document["traceEvents"]:
            if event.get("ph") in ("f", "t") and _track(event) in lanes:
                flows[(*_track(event), event.get("id"))].append(event)
        self._flows.append(flows)

    def _record(
        self,
        process: tuple[int, Any],
        index: int,
        event: Event,
        times: tuple[int, int],
        lanes: set[tuple[Any, Any]],
    ) -> None:
        args = event.get("args") or {}
        category = str(event.get("cat", "")).lower()
        name, ref, track = (
            str(event.get("name", "")),
            (process[0], index),
            (event.get("pid"), event.get("tid")),
        )
        kind = GPU_KINDS.get(category)
        if kind is not None:
            lanes.add(track)
            found = args.get("correlation")
            self.gpu.append(GpuRecord(kind, name, *times, process, track, found, ref))
            self._old[ref] = (*times, found)
            return
        kind = "api" if category in API else "step" if STEP.fullmatch(name) else "host"
        found = args.get("correlation") if kind == "api" else None
        self.host.append(HostRecord(kind, name, *times, process, track, found, ref))
        self._old[ref] = (*times, None)

    def shift_process(self, process: Hashable, delta: int) -> None:
        """Everything with a time of one file (or, in a merged file, of one rank)."""
        super().shift_process(process, delta)
        assert isinstance(process, tuple)
        number, rank = process
        document = self.documents[number]
        spans = {row.ref[1] for row in self.rows if row.ref[0] == number}
        for index, event in enumerate(document["traceEvents"]):
            if index in spans or "ts" not in event or event.get("ph") == "M":
                continue
            if event.get("ph") in ("f", "t") and self._is_gpu_flow(number, event):
                continue  # goes with its GPU record
            if rank is None or (event.get("args") or {}).get("rank", rank) == rank:
                event["ts"] = _from_ns(_to_ns(event["ts"]) + delta)

    def _is_gpu_flow(self, number: int, event: Event) -> bool:
        return (*_track(event), event.get("id")) in self._flows[number]

    def swap_labels(self, one: Hashable, other: Hashable) -> bool:
        """Exchange ``distributedInfo.rank`` of two files."""
        assert isinstance(one, tuple)
        assert isinstance(other, tuple)
        infos = [self.documents[number].get("distributedInfo") or {} for number in (one[0], other[0])]
        if one[0] == other[0] or any("rank" not in info for info in infos):
            return False
        infos[0]["rank"], infos[1]["rank"] = infos[1]["rank"], infos[0]["rank"]
        return True

    def events_say_rank(self) -> bool:
        """Old and new versions write ``Rank`` on record_param_comms."""
        return any("Rank" in (e.get("args") or {}) for d in self.documents for e in d["traceEvents"])

    def second_session(self, gap: int, displaced: int) -> bool:
        """A second file of the same process, as ``schedule(repeat=2)`` writes one; ids go on."""
        if len(self.documents) != 1:
            return False
        first, last = self.span()
        delta = last - first + gap
        document = deepcopy(self.documents[0])
        events = document["traceEvents"]
        top = max((_id_of(event) for event in events), default=0) + 1
        for event in events:
            args = event.get("args")
            if isinstance(args, dict) and args.get("correlation"):
                args["correlation"] += top
            if event.get("ph") in ("s", "f", "t") and isinstance(event.get("id"), int):
                event["id"] += top
        stem, _, rest = self.names[0].partition(".")
        self.names.append(f"{stem}-session1.{rest}")
        before = len(self.gpu)
        self._add(document)
        self.shift_process((1, None), delta)
        for record in self.gpu[before:]:
            record.start += displaced
            record.end += displaced
        return True

    def save(self, folder: Path) -> list[Path]:
        """Write each file; a GPU record stands in the file of its process."""
        kept: list[list[Event]] = []
        timed = {row.ref: row for row in self.rows}
        moved: dict[int, list[Event]] = defaultdict(list)
        for number, document in enumerate(self.documents):
            out: list[Event] = []
            for index, event in enumerate(document["traceEvents"]):
                row = timed.get((number, index))
                if row is None:
                    out.append(event)
                elif isinstance(row, HostRecord):
                    out.append(self._changed(event, row))
                else:
                    new = self._changed(event, row)
                    assert isinstance(row.process, tuple)
                    home = out if row.process[0] == number else moved[row.process[0]]
                    home.extend([new] * row.copies)
            kept.append(out)
        paths = []
        for number, (document, events) in enumerate(zip(self.documents, kept, strict=True)):
            path = folder / self.names[number]
            text = _ENCODER.encode(document | {"traceEvents": [*events, *moved[number]]})
            path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)
            paths.append(path)
        return paths

    def _changed(self, event: Event, row: GpuRecord | HostRecord) -> Event:
        start, end, correlation = self._old[row.ref]
        new = event
        if (row.start, row.end) != (start, end):
            new = new | {"ts": _from_ns(row.start), "dur": _from_ns(row.end - row.start)}
        if isinstance(row, GpuRecord):
            if row.correlation != correlation:
                new = new | {"args": new["args"] | {"correlation": row.correlation}}
            assert isinstance(row.process, tuple)
            rank = row.process[1]
            if rank is not None and new["args"]["rank"] != rank:
                new = new | {"args": new["args"] | {"rank": rank}}
            for flow in self._flows[_number(row)].get((*_track(event), correlation), ()):
                if flow["ts"] == event["ts"]:  # the arrow from the launch goes where its GPU record goes
                    flow["ts"] = new["ts"]
                    flow["id"] = row.correlation
        return new


def _track(event: Event) -> tuple[Any, Any]:
    return event.get("pid"), event.get("tid")


def _number(row: GpuRecord | HostRecord) -> int:
    number = row.ref[0]
    assert isinstance(number, int)
    return number


def _is_merged(events: list[Event]) -> bool:
    """Whether each GPU record says its rank: a merge of several ranks."""
    gpu = [event for event in events if str(event.get("cat", "")).lower() in GPU_KINDS]
    return bool(gpu) and all("rank" in (event.get("args") or {}) for event in gpu)


def _id_of(event: Event) -> int:
    args = event.get("args")
    found = args.get("correlation", 0) if isinstance(args, dict) else 0
    flow = event.get("id", 0) if event.get("ph") in ("s", "f", "t") else 0
    return max(value for value in (found, flow, 0) if isinstance(value, int))
