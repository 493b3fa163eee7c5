"""Slices and metrics as they are read from Proton's files, and how they become the tables of a trace."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profrun.collectors.proton.demangle import demangle
from profrun.collectors.proton.facts import Device, Facts
from profrun.traces.writer import TraceWriter

Numbers = NDArray[np.int64]

KINDS = ("kernel", "range")
KERNEL, RANGE = range(len(KINDS))
"""Codes of the kinds of slices."""

_UNITS = {"bytes": "byte", "cycles": "cycle", "normalized_cycles": "cycle"}
"""Units of the metrics that Proton itself names; the others are pure numbers or have no stated unit."""


@dataclass(frozen=True)
class Lane:
    """A stream of a GPU.

    Attributes:
        process: number of the file; each file is one process.
        device: ordinal of the GPU in that process.
        native_id: number of the stream, None where the file has none.
    """

    process: int
    device: int
    native_id: int | None = None


_FACTS = tuple(Device.__dataclass_fields__)


@dataclass
class Recording:
    """All that was read of one recording.

    Slices are numbered from 0 in the order in which they were added. Times are int64 ns on the file's axis.

    Attributes:
        facts: who recorded each file.
        devices: (file, ordinal) -> GPU.
        lanes: lane -> its number.
        metrics: (slice, name, value) of slices.
        unreadable: mangled names that stayed as they are.
    """

    facts: list[Facts] = field(default_factory=list)
    devices: dict[tuple[int, int], Device] = field(default_factory=dict)
    lanes: dict[Lane, int] = field(default_factory=dict)
    metrics: list[tuple[int, str, float]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    _names: dict[str, int] = field(default_factory=dict)
    _columns: dict[str, array[int]] = field(
        default_factory=lambda: {name: array("q") for name in ("kind", "name", "ts", "dur", "lane", "calls")}
    )

    def __len__(self) -> int:
        return len(self._columns["ts"])

    def lane(self, lane: Lane) -> int:
        """The number of a lane, which is taken up when it is new."""
        return self.lanes.setdefault(lane, len(self.lanes))

    def add(self, kind: int, name: str, ts: int, dur: int, lane: int, *, calls: int = 1) -> int:
        """Take up a slice.

        Args:
            kind: ``KERNEL`` or ``RANGE``.
            name: as the file has it.
            ts: start, ns.
            dur: duration, ns; of all calls together where it stands for several.
            lane: number of its lane.
            calls: kernels that it stands for; they become slices of equal length, end to end.

        Returns:
            The number of the slice.
        """
        row = (kind, self._names.setdefault(name, len(self._names)), ts, dur, lane, calls)
        for column, value in zip(self._columns.values(), row, strict=True):
            column.append(value)
        return len(self) - 1

    def write(self, writer: TraceWriter) -> None:
        """Fill the tables of the trace."""
        self._write_lanes(writer)
        at = {name: np.array(column, dtype=np.int64) for name, column in self._columns.items()}
        first = np.concatenate(([0], np.cumsum(at["calls"])))
        self._write_metrics(writer, first)
        names = self._clear_names()
        con = writer.con
        con.register("p_slice", _each_call(at))
        con.register("p_name", {"name": np.arange(len(names)), "text": np.array(names, dtype=object)})
        kinds = ", ".join(f"'{kind}'" for kind in KINDS)
        con.execute(
            f"INSERT INTO slices BY NAME SELECT slice, [{kinds}][kind + 1] AS kind, text AS name, "
            "ts AS ts_ns, dur AS dur_ns, lane AS track FROM p_slice JOIN p_name USING (name)"
        )
        con.execute(f"INSERT INTO kernels BY NAME SELECT slice FROM p_slice WHERE kind = {KERNEL}")
        con.unregister("p_slice")
        con.unregister("p_name")

    def _write_lanes(self, writer: TraceWriter) -> None:
        number = {key: place for place, key in enumerate(self.devices)}
        writer.insert(
            "processes",
            ("process", "pid", "rank", "rank_guessed", "host"),
            [
                (place, one.pid or 0, one.rank, one.rank_guessed, one.host)
                for place, one in enumerate(self.facts)
            ],
        )
        writer.insert(
            "devices",
            ("device", "process", "ordinal", *_FACTS),
            [
                (number[key], *key, *(getattr(device, name) for name in _FACTS))
                for key, device in self.devices.items()
            ],
        )
        writer.insert(
            "tracks",
            ("track", "kind", "process", "device", "native_id", "name"),
            [
                (
                    place,
                    "stream",
                    lane.process,
                    number[(lane.process, lane.device)],
                    lane.native_id,
                    None if lane.native_id is None else f"stream {lane.native_id}",
                )
                for lane, place in self.lanes.items()
            ],
        )

    def _write_metrics(self, writer: TraceWriter, first: Numbers) -> None:
        """A metric of a slice that stands for several calls is shared out over them."""
        if not self.metrics:
            return
        slices, names, values = zip(*self.metrics, strict=True)
        place = np.array(slices)
        calls = first[place + 1] - first[place]
        owner, call = _repeated(calls)
        rows = {
            "slice": first[place][owner] + call,
            "name": np.array(names, dtype=object)[owner],
            "value": (np.array(values) / calls)[owner],
            "unit": np.array([_UNITS.get(name, "1") for name in names], dtype=object)[owner],
        }
        writer.con.register("p_metric", rows)
        writer.con.execute("INSERT INTO metrics BY NAME SELECT * FROM p_metric")
        writer.con.unregister("p_metric")

    def _clear_names(self) -> list[str]:
        clear = []
        for name in self._names:
            found = demangle(name)
            if found is None:
                self.unreadable.append(name)
            clear.append(found or name)
        return clear


def _each_call(at: dict[str, Numbers]) -> dict[str, Numbers]:
    """One row per call, of the columns of the slices. The nanoseconds that do not divide evenly go to the
    first calls."""
    owner, call = _repeated(at["calls"])
    each, left = (part[owner] for part in np.divmod(at["dur"], at["calls"]))
    return {
        "slice": np.arange(len(owner)),
        "kind": at["kind"][owner],
        "name": at["name"][owner],
        "ts": at["ts"][owner] + call * each + np.minimum(call, left),
        "dur": each + (call < left),
        "lane": at["lane"][owner],
    }


def _repeated(calls: Numbers) -> tuple[Numbers, Numbers]:
    """(place in ``calls``, number of the call from 0) of each call; ``calls`` are at least 1."""
    owner = np.repeat(np.arange(len(calls)), calls)
    before = np.cumsum(calls) - calls
    return owner, np.arange(len(owner)) - before[owner]
