"""Chrome's trace JSON: complete events, arrows, counters. Times are microseconds from the trace's start."""

from __future__ import annotations

import json
from typing import IO

from profrun.traces.export_sink import Process, Slice
from profrun.traces.meta import TraceMeta


def microseconds(ns: int) -> str:
    """'12.345' from 12345: decimal, never through a float."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


class ChromeSink:
    """Writes one event per line. ``tid`` is the track's number in the file, whatever the thread's id was."""

    def __init__(self, file: IO[bytes], meta: TraceMeta, shift: int) -> None:
        self._file = file
        self._pids: dict[int, int] = {}
        epoch = meta.get("epoch_ns")
        head = {
            "displayTimeUnit": "ns",
            "otherData": {
                "source": meta.get("source"),
                "start_ns": -shift,
                "epoch_ns": epoch,
                "note": "ts = (ns of the trace - start_ns) / 1000",
            },
        }
        self._file.write(json.dumps(head)[:-1].encode() + b', "traceEvents": [\n')
        self._first = True

    def process(self, process: Process) -> None:
        """Metadata event with the process's name."""
        self._event(
            f'"ph":"M","pid":{process.pid},"name":"process_name","args":{{"name":{_text(process.name)}}}'
        )

    def track(self, track: int, process: Process, name: str, order: int) -> None:
        """Metadata events with the track's name and place."""
        self._pids[track] = process.pid
        who = f'"ph":"M","pid":{process.pid},"tid":{track}'
        self._event(f'{who},"name":"thread_name","args":{{"name":{_text(name)}}}')
        self._event(f'{who},"name":"thread_sort_index","args":{{"sort_index":{order}}}')

    def counter_track(self, track: int, process: Process, name: str, unit: str, order: int) -> None:
        """Counters are announced by their first sample."""
        self._pids[track] = process.pid

    def begin(self, track: int, item: Slice) -> None:
        """A complete event, and the ends of arrows that lie on it."""
        who = f'"pid":{self._pids[track]},"tid":{track},"ts":{microseconds(item.ts_ns)}'
        args = f',"args":{json.dumps(item.args)}' if item.args else ""
        self._event(
            f'"ph":"X",{who},"dur":{microseconds(item.dur_ns)},"cat":"{item.kind}","name":{_text(item.name)}{args}'
        )
        for flow in item.flows_out:
            self._event(f'"ph":"s",{who},"cat":"launch","name":"launch","id":{flow}')
        if item.flow_in is not None:
            self._event(f'"ph":"f","bp":"e",{who},"cat":"launch","name":"launch","id":{item.flow_in}')

    def end(self, track: int, ts_ns: int) -> None:
        """Complete events hold their durations."""

    def sample(self, track: int, ts_ns: int, name: str, value: float) -> None:
        """A counter event."""
        self._event(
            f'"ph":"C","pid":{self._pids[track]},"ts":{microseconds(ts_ns)},"name":{_text(name)},'
            f'"args":{{"value":{_number(value)}}}'
        )

    def close(self) -> None:
        """End the list."""
        self._file.write(b"\n]}\n")

    def _event(self, body: str) -> None:
        self._file.write((("{" if self._first else ",\n{") + body + "}").encode("utf-8", "replace"))
        self._first = False


def _text(value: str) -> str:
    return json.dumps(value)


def _number(value: float) -> str:
    """JSON has no NaN or infinity: null."""
    return json.dumps(value) if value == value and abs(value) != float("inf") else "null"
