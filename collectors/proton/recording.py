"""Slices and metrics as they are read from Proton's files, and how they become the tables of a trace."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profrun.collectors.proton.demangle import demangle
from profrun.collectors.proton.facts import Device, Facts
from profrun.traces.nest import nesting
from profrun.traces.writer import TraceWriter

Numbers = NDArray[np.int64]

KINDS = ("kernel", "range", "step")
KERNEL, RANGE, STEP = range(3)
"""Codes of the kinds of slices."""

_STEP_NAME = re.compile(r"^profrun\.step#\d+$")
_UNITS = {"bytes": "byte", "cycles": "cycle", "normalized_cycles": "cycle"}
"""Units of the metrics that Proton itself names; the others are pure numbers or have no stated unit."""


@dataclass(frozen=True)
class Lane:
    """A stream of a GPU, or a thread of the host.

    Attributes:
        process: number of the file; each file is one process.
        device: ordinal of the GPU in that process, None for a thread.
        native_id: number of the stream or thread as the file has it, None where it has none.
    """

    process: int
    device: int | None
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
        default_factory=lambda: {
            name: array("q") for name in ("kind", "name", "ts", "dur", "lane", "launch", "calls")
        }
    )

    def __len__(self) -> int:
        return len(self._columns["ts"])

    def lane(self, lane: Lane) -> int:
        """The number of a lane, which is taken up when it is new."""
        return self.lanes.setdefault(lane, len(self.lanes))

    def add(
        self, kind: int, name: str, ts: int, dur: int, lane: int, *, launch: int = -1, calls: int = 1
    ) -> int:
        """Take up a slice.

        Args:
            kind: ``KERNEL`` or ``RANGE``.
            name: as the file has it.
            ts: start, ns.
            dur: duration, ns; of all calls together where it stands for several.
            lane: number of its lane.
            launch: number of the range on a thread that launched it, -1 for none.
            calls: kernels that it stands for; they become slices of equal length, end to end.

        Returns:
            The number of the slice.
        """
        row = (kind, self._names.setdefault(name, len(self._names)), ts, dur, lane, launch, calls)
        for column, value in zip(self._columns.values(), row, strict=True):
            column.append(value)
        return len(self) - 1

    def write(self, writer: TraceWriter) -> None:
        """Fill the tables of the trace."""
        self._write_lanes(writer)
        at = {name: np.array(column, dtype=np.int64) for name, column in self._columns.items()}
        first = np.concatenate(([0], np.cumsum(at["calls"])))
        self._write_metrics(writer, first)
        column = _each_call(at, first)
        names = self._clear_names()
        step = np.array([bool(_STEP_NAME.match(name)) for name in names], dtype=bool)
        on_thread = np.array([lane.device is None for lane in self.lanes], dtype=bool)
        hosted = on_thread[column["lane"]] if len(self.lanes) else np.zeros(0, dtype=bool)
        column["kind"] = np.where(hosted & step[column["name"]], STEP, column["kind"])
        column["parent"], column["depth"] = _nested(column, hosted)
        con = writer.con
        con.register("p_slice", column)
        con.register("p_name", {"name": np.arange(len(names)), "text": np.array(names, dtype=object)})
        kinds = ", ".join(f"'{kind}'" for kind in KINDS)
        con.execute(
            f"INSERT INTO slices BY NAME SELECT slice, [{kinds}][kind + 1] AS kind, text AS name, "
            "ts AS ts_ns, dur AS dur_ns, lane AS track, nullif(parent, -1) AS parent, "
            "nullif(depth, -1) AS depth, nullif(launch, -1) AS launch FROM p_slice JOIN p_name USING (name)"
        )
        con.execute(f"INSERT INTO kernels BY NAME SELECT slice FROM p_slice WHERE kind = {KERNEL}")
        con.unregister("p_slice")
        con.unregister("p_name")

    def _write_lanes(self, writer: TraceWriter) -> None:
        number = {key: place for place, key in enumerate(self.devices)}
        writer.insert(
            "processes",
            ("process", "pid", "rank", "host"),
            [(place, one.pid or 0, one.rank, one.host) for place, one in enumerate(self.facts)],
        )
        writer.insert(
            "devices",
            ("device", "process", "ordinal", *_FACTS),
            [
                (number[key], *key, *(getattr(device, name) for name in _FACTS))
                for key, device in self.devices.items()
            ],
        )
        rows = []
        for lane, place in self.lanes.items():
            kind, device = "thread", None
            if lane.device is not None:
                kind, device = "stream", number[(lane.process, lane.device)]
            name = None if lane.native_id is None else f"{kind} {lane.native_id}"
            rows.append((place, kind, lane.process, device, lane.native_id, name))
        writer.insert("tracks", ("track", "kind", "process", "device", "native_id", "name"), rows)

    def _write_metrics(self, writer: TraceWriter, first: Numbers) -> None:
        """A metric of a slice that stands for several calls is shared out over them."""
        rows = []
        for place, name, value in self.metrics:
            low, high = int(first[place]), int(first[place + 1])
            unit = _UNITS.get(name, "1")
            rows += [(slice_, name, value / (high - low), unit) for slice_ in range(low, high)]
        writer.insert("metrics", ("slice", "name", "value", "unit"), rows)

    def _clear_names(self) -> list[str]:
        clear = []
        for name in self._names:
            found = demangle(name)
            if found is None:
                self.unreadable.append(name)
            clear.append(found or name)
        return clear


def _each_call(at: dict[str, Numbers], first: Numbers) -> dict[str, Numbers]:
    """One row per call. The nanoseconds that do not divide evenly go to the first calls.

    Args:
        at: the columns of the slices.
        first: the first row that each slice becomes, and behind them the number of all rows.
    """
    calls = at["calls"]
    owner = np.repeat(np.arange(len(calls)), calls)
    call = np.arange(len(owner)) - first[owner]
    each, left = np.divmod(at["dur"], np.maximum(calls, 1))
    each, left = each[owner], left[owner]
    launch = at["launch"][owner]
    return {
        "slice": np.arange(len(owner)),
        "kind": at["kind"][owner],
        "name": at["name"][owner],
        "ts": at["ts"][owner] + call * each + np.minimum(call, left),
        "dur": each + (call < left),
        "lane": at["lane"][owner],
        "launch": np.where(launch >= 0, first[launch], -1),
    }


def _nested(column: dict[str, Numbers], hosted: NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    """(parent, depth) of each slice: those on threads nest, all others have -1."""
    parent, depth = np.full(len(hosted), -1), np.full(len(hosted), -1)
    ids = np.flatnonzero(hosted)
    order = ids[np.lexsort((ids, -column["dur"][ids], column["ts"][ids], column["lane"][ids]))]
    found = nesting(column["lane"][order], column["ts"][order], column["dur"][order])
    parent[order] = np.where(found.parent >= 0, order[found.parent], -1)
    depth[order] = found.depth
    return parent, depth
