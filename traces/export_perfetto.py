"""Perfetto's protobuf, written by hand (``protobuf``): a dozen fields need no generated code.

Field numbers are those of protos/perfetto/trace: trace.proto, trace_packet.proto, track_event.proto,
track_descriptor.proto, process_descriptor.proto, counter_descriptor.proto, debug_annotation.proto and
interned_data.proto. A test reads what is written with Perfetto's own trace processor.
"""

from __future__ import annotations

from typing import IO

from profrun.traces.export_sink import Process, Slice
from profrun.traces.protobuf import block, double, fixed64, number, text

_SEQUENCE = 1
_CLEARED = 1  # TracePacket.SequenceFlags: SEQ_INCREMENTAL_STATE_CLEARED
_NEEDS = 2  # SEQ_NEEDS_INCREMENTAL_STATE
_BEGIN, _END, _COUNTER = 1, 2, 4  # TrackEvent.Type
_EXPLICIT = 3  # TrackDescriptor.ChildTracksOrdering
_PROCESS = 1 << 40  # uuids of processes lie above those of tracks


class PerfettoSink:
    """Writes TracePackets of one sequence; names are interned."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._flags = _CLEARED | _NEEDS
        self._names: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self._keys: dict[str, int] = {}
        self._new: list[bytes] = []

    def process(self, process: Process) -> None:
        """TrackDescriptor with ProcessDescriptor: pid = 1, process_name = 6."""
        body = number(1, process.pid) + text(6, process.name)
        self._packet(block(60, number(1, _PROCESS + process.number) + block(3, body) + number(11, _EXPLICIT)))

    def track(self, track: int, process: Process, name: str, order: int) -> None:
        """TrackDescriptor: uuid = 1, name = 2, parent_uuid = 5, sibling_order_rank = 12."""
        self._packet(block(60, self._descriptor(track, process, name, order)))

    def counter_track(self, track: int, process: Process, name: str, unit: str, order: int) -> None:
        """TrackDescriptor with CounterDescriptor (8): unit_name = 6."""
        self._packet(block(60, self._descriptor(track, process, name, order) + block(8, text(6, unit))))

    def begin(self, track: int, item: Slice) -> None:
        """TrackEvent SLICE_BEGIN: categories, name and argument names interned, flow_ids = 47."""
        event = [
            number(9, _BEGIN),
            number(11, track + 1),
            number(3, self._intern(self._categories, 1, item.kind)),
        ]
        event.append(number(10, self._intern(self._names, 2, item.name)))
        for key, value in item.args.items():
            event.append(block(4, number(1, self._intern(self._keys, 3, key)) + _annotation(value)))
        # one id at both ends: the trace processor draws from the earlier to the later
        event += [fixed64(47, flow) for flow in item.flows_out]
        if item.flow_in is not None:
            event.append(fixed64(47, item.flow_in))
        self._event(item.ts_ns, b"".join(event))

    def end(self, track: int, ts_ns: int) -> None:
        """TrackEvent SLICE_END."""
        self._event(ts_ns, number(9, _END) + number(11, track + 1))

    def sample(self, track: int, ts_ns: int, name: str, value: float) -> None:
        """TrackEvent COUNTER: double_counter_value = 44."""
        self._event(ts_ns, number(9, _COUNTER) + number(11, track + 1) + double(44, value))

    def close(self) -> None:
        """Nothing is held back."""

    def _descriptor(self, track: int, process: Process, name: str, order: int) -> bytes:
        parent = number(5, _PROCESS + process.number)
        return number(1, track + 1) + text(2, name) + parent + number(12, order)

    def _intern(self, table: dict[str, int], field: int, value: str) -> int:
        """Number of a text; InternedData: event_categories = 1, event_names = 2, debug_annotation_names =
        3."""
        found = table.get(value)
        if found is None:
            found = table[value] = len(table) + 1
            self._new.append(block(field, number(1, found) + text(2, value)))
        return found

    def _event(self, ts_ns: int, body: bytes) -> None:
        self._packet(number(8, ts_ns) + block(11, body))

    def _packet(self, body: bytes) -> None:
        """TracePacket: timestamp = 8, sequence = 10, track_event = 11, interned_data = 12, flags = 13."""
        head = number(10, _SEQUENCE) + number(13, self._flags)
        self._flags = _NEEDS
        if self._new:
            head += block(12, b"".join(self._new))
            self._new = []
        self._file.write(block(1, head + body))


def _annotation(value: str | float) -> bytes:
    """DebugAnnotation: int_value = 4, double_value = 5, string_value = 6."""
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return number(4, value)
    if isinstance(value, float):
        return double(5, value)
    return text(6, str(value))
