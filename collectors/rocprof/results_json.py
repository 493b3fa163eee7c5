"""``*_results.json`` of rocprofv3: streamed, one list element per process.

Numbers of kinds and operations change between releases, so names come from the file's own ``strings``.
A file that was cut off keeps its whole records and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from profrun.collectors.beside import rank_of
from profrun.collectors.json_stream import JsonStream, Malformed, Truncated, open_bytes
from profrun.collectors.reading import Progress, Source
from profrun.collectors.rocprof.build import build
from profrun.collectors.rocprof.folder import expand, knows
from profrun.collectors.rocprof.names import direction
from profrun.collectors.rocprof.rocpd import program, properties
from profrun.collectors.rocprof.rocpd_facts import MARKER_CALL
from profrun.collectors.rocprof.staging import Staging
from profrun.collectors.unpack import DAMAGED
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

Row = dict[str, Any]
"""One JSON object of the file: keys as the tool writes them."""

_ROOT = b'"rocprofiler-sdk-tool"'
_BATCH = 50_000
_INT64 = range(-(2**63), 2**63)
_API = ("hip_api", "hsa_api", "marker_api", "rccl_api", "rocdecode_api", "rocjpeg_api", "ompt")


class ResultsJsonReader:
    """Reads results.json."""

    name = "rocprofv3-json"

    def accepts(self, source: Source) -> bool:
        """Is the first key rocprofiler-sdk's?"""
        if source.path.is_dir():
            return knows(self, source)
        return _ROOT in source.head[:4096] and source.head.lstrip()[:1] == b"{"

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the writer from the files of all processes."""
        sources = expand(self, sources)
        staging = Staging(writer)
        for number, source in enumerate(sources):
            with open_bytes(source) as file:
                stream = JsonStream(file)
                try:
                    _file(staging, stream, rank_of(source.path))
                except Truncated:
                    writer.issue(
                        "truncated", 1, "the file ends early; its whole records were kept", source.path.name
                    )
                except (*DAMAGED, Malformed, AttributeError, KeyError, TypeError) as error:
                    raise InputError(
                        f"{source.path.name} is not the JSON that rocprofv3 writes",
                        why=str(error),
                        fix="copy it again after the profiler has ended",
                    ) from error
            progress(number + 1, len(sources))
        found = staging.con.execute("SELECT count(*) FROM amd_process").fetchone()
        if found == (0,):
            raise InputError(
                f"{sources[0].path.name} holds no process",
                why="it was cut off at its start",
                fix="record the run again",
            )
        build(staging, self.name)


def _file(staging: Staging, stream: JsonStream, rank: int | None) -> None:
    for key in stream.items():
        if key != "rocprofiler-sdk-tool":
            stream.skip()
            continue
        for _ in stream.elements():
            _Process(staging).read(stream, rank)


class _Process:
    """One process's records, staged in batches; names are resolved in SQL at the end."""

    def __init__(self, staging: Staging) -> None:
        self.staging = staging
        self.proc = -1
        self.kinds: dict[int, tuple[str, list[str]]] = {}
        self.texts: dict[int, str] = {}
        self.agents: list[Row] = []
        self.symbols: dict[int, Row] = {}
        self.counters: dict[int, str] = {}
        self.clamped = 0
        self.counted = False

    def read(self, stream: JsonStream, rank: int | None) -> None:
        """Walk one process; whatever was read is staged even when the text ends early."""
        self.proc = self.staging.process(0, rank=rank)
        try:
            for key in stream.items():
                reader = getattr(self, f"_read_{key}", None)
                if reader is None:
                    stream.skip()
                else:
                    reader(stream)
        finally:
            self._one_row_a_dispatch()
            self.staging.writer.issue("id_too_large", self.clamped, "ids above 63 bits were left out")

    def _one_row_a_dispatch(self) -> None:
        """With counters and a kernel trace both on, a dispatch has two records: the trace's is kept."""
        if self.counted:
            self.staging.con.execute(
                "DELETE FROM amd_gpu WHERE proc = ? AND what = 'kernel' AND stream IS NULL AND dispatch IN "
                "(SELECT dispatch FROM amd_gpu WHERE proc = ? AND stream IS NOT NULL)",
                [self.proc, self.proc],
            )

    def _read_metadata(self, stream: JsonStream) -> None:
        data = stream.value()
        if not isinstance(data, dict):
            return
        command = data.get("command")
        first = command[0] if isinstance(command, list) and command else command
        self.staging.con.execute(
            "UPDATE amd_process SET pid = ?, name = ? WHERE proc = ?",
            [_int(data.get("pid")) or 0, program(first), self.proc],
        )

    def _read_agents(self, stream: JsonStream) -> None:
        for _ in stream.elements():
            agent = stream.value()
            if not isinstance(agent, dict) or self.id(agent.get("id")) is None:
                continue
            gpu = agent.get("type") == 2
            self.staging.agent(
                self.proc,
                int(self.id(agent.get("id")) or 0),
                gpu,
                _int(agent.get("logical_node_type_id")),
                name=agent.get("product_name") or None,
                arch=agent.get("name") or None,
                **properties(agent),
            )

    def _read_strings(self, stream: JsonStream) -> None:
        for key in stream.items():
            if key == "buffer_records":
                for number in stream.elements():
                    entry = stream.value()
                    operations = [str(name) for name in entry.get("operations", [])]
                    self.kinds[number] = (str(entry.get("kind")), operations)
            elif key == "marker_api":
                for _ in stream.elements():
                    entry = stream.value()
                    self.texts[int(entry["key"])] = str(entry["value"])
            else:
                stream.skip()

    def _read_counters(self, stream: JsonStream) -> None:
        for _ in stream.elements():
            entry = stream.value()
            handle = self.id(entry.get("id"))
            if handle is not None:
                self.counters[handle] = str(entry.get("name"))

    def _read_kernel_symbols(self, stream: JsonStream) -> None:
        for _ in stream.elements():
            entry = stream.value()
            if isinstance(entry, dict) and _int(entry.get("kernel_id")) is not None:
                self.symbols[int(entry["kernel_id"])] = entry

    def _read_callback_records(self, stream: JsonStream) -> None:
        for key in stream.items():
            if key == "counter_collection":
                self._records(stream, self._counter_rows)
            else:
                self._other(stream, key)

    def _read_buffer_records(self, stream: JsonStream) -> None:
        for key in stream.items():
            if key == "kernel_dispatch":
                self._records(stream, self._kernel_rows)
            elif key.lower() in _API:
                self._records(stream, partial(self._api_rows, section=key))
            elif key == "memory_copy":
                self._records(stream, self._copy_rows)
            elif key == "memory_allocation":
                self._records(stream, self._allocation_rows)
            elif key == "scratch_memory":
                self._records(stream, self._scratch_rows)
            else:
                self._other(stream, key)

    def _other(self, stream: JsonStream, key: str) -> None:
        count = 0
        if stream.peek() != "[":
            stream.skip()
            return
        for number in stream.elements():
            stream.value()
            count = number + 1
        self.staging.writer.issue("records_not_read", count, f"records of {key} are not part of a trace")

    def _records(self, stream: JsonStream, stage: Callable[[list[Row]], None]) -> None:
        """Stage a list's records in batches; what was whole before a cut is staged too."""
        rows: list[Row] = []
        try:
            for _ in stream.elements():
                record = stream.value()
                if isinstance(record, dict):
                    rows.append(record)
                if len(rows) >= _BATCH:
                    stage(rows)
                    rows = []
        finally:
            stage(rows)

    def id(self, value: object) -> int | None:
        """A handle as int64, None and counted when it does not fit."""
        if isinstance(value, dict):
            value = value.get("handle", value.get("internal"))
        if isinstance(value, str):
            value = int(value, 0) if value[:2] == "0x" or value.isdigit() else None
        if not isinstance(value, int):
            return None
        if value not in _INT64:
            self.clamped += value != 2**64 - 1  # all ones is the tool's own "none"
            return None
        return value

    def common(self, rows: list[Row]) -> dict[str, list[Any]]:
        """Times and correlation of records."""
        return {
            "start": [self.id(row.get("start_timestamp")) for row in rows],
            "stop": [self.id(row.get("end_timestamp")) for row in rows],
            "corr": [self.id(row.get("correlation_id")) for row in rows],
        }

    def operation(self, row: Row) -> str | None:
        """Name of a record's operation, by the file's own tables."""
        _, operations = self.kinds.get(row.get("kind", -1), ("", []))
        number = row.get("operation", -1)
        return operations[number] if isinstance(number, int) and 0 <= number < len(operations) else None

    def _kernel_rows(self, rows: list[Row]) -> None:
        info = [row.get("dispatch_info") or {} for row in rows]
        symbols = [self.symbols.get(item.get("kernel_id", -1), {}) for item in info]
        self.staging.add(
            "amd_gpu",
            {
                **self.common(rows),
                **self.dispatch(info, symbols),
                "stream": [self.id(row.get("stream_id")) for row in rows],
            },
            self.proc,
        )

    def dispatch(self, info: list[Row], symbols: list[Row]) -> dict[str, list[Any]]:
        """Columns of amd_gpu that a dispatch and its symbol give."""
        sizes = {
            f"{short}{axis}": [self.id((item.get(f"{what}_size") or {}).get(axis)) for item in info]
            for what, short in (("grid", "g"), ("workgroup", "w"))
            for axis in "xyz"
        }
        return {
            "what": ["kernel"] * len(info),
            "agent": [self.id(item.get("agent_id")) for item in info],
            "queue": [self.id(item.get("queue_id")) for item in info],
            "dispatch": [self.id(item.get("dispatch_id")) for item in info],
            "name": [_symbol_name(symbol) for symbol in symbols],
            "unit": ["items"] * len(info),
            **sizes,
            "vgpr": [self.id(symbol.get("arch_vgpr_count")) for symbol in symbols],
            "accum": [self.id(symbol.get("accum_vgpr_count")) for symbol in symbols],
            "lds_static": [self.id(symbol.get("group_segment_size")) for symbol in symbols],
            "lds_total": [self.id(item.get("group_segment_size")) for item in info],
            "scratch": [self.id(item.get("private_segment_size")) for item in info],
        }

    def _api_rows(self, rows: list[Row], section: str) -> None:
        common = self.common(rows)
        marker = section == "marker_api"
        texts = [self.texts.get(key) if marker and key is not None else None for key in common["corr"]]
        names = [text or self.operation(row) for text, row in zip(texts, rows, strict=True)]
        ranges = [bool(text) and not re.match(MARKER_CALL, text or "") for text in texts]
        prio = 0 if section == "hip_api" else 1 if section == "hsa_api" else 2
        self.staging.add(
            "amd_host",
            {
                **common,
                "tid": [self.id(row.get("thread_id")) for row in rows],
                "kind": ["range" if is_range else "api" for is_range in ranges],
                "name": names,
                "prio": [prio] * len(rows),
            },
            self.proc,
        )

    def _copy_rows(self, rows: list[Row]) -> None:
        names = [self.operation(row) for row in rows]
        ways = [direction(name) for name in names]
        self.staging.add(
            "amd_gpu",
            {
                **self.common(rows),
                "what": ["memset" if way == "memset" else "memcpy" for way in ways],
                "name": names,
                "direction": ways,
                "bytes": [self.id(row.get("bytes")) for row in rows],
                "src": [self.id(row.get("src_agent_id")) for row in rows],
                "dst": [self.id(row.get("dst_agent_id")) for row in rows],
                "stream": [self.id(row.get("stream_id")) for row in rows],
            },
            self.proc,
        )

    def _allocation_rows(self, rows: list[Row]) -> None:
        names = [self.operation(row) or "" for row in rows]
        self.staging.add(
            "amd_alloc",
            {
                "op": ["free" if "FREE" in name.upper() else "alloc" for name in names],
                "agent": [self.id(row.get("agent_id")) for row in rows],
                "address": [self.id(row.get("address")) for row in rows],
                "bytes": [self.id(row.get("allocation_size")) for row in rows],
                "stop": [self.id(row.get("end_timestamp")) for row in rows],
            },
            self.proc,
        )

    def _scratch_rows(self, rows: list[Row]) -> None:
        common = self.common(rows)
        names = [(self.operation(row) or "scratch memory").lower().replace("_", " ") for row in rows]
        self.staging.add(
            "amd_overhead", {"name": names, "start": common["start"], "stop": common["stop"]}, self.proc
        )

    def _counter_rows(self, rows: list[Row]) -> None:
        """Counter records: metrics, and the kernels where no dispatch record has them."""
        if not rows:
            return
        data = [row.get("dispatch_data") or {} for row in rows]
        info = [item.get("dispatch_info") or {} for item in data]
        symbols = [self.symbols.get(item.get("kernel_id", -1), {}) for item in info]
        self.counted = True
        times = self.common(data)
        if all(start is None for start in times["start"]):  # before ROCm 6.4 counter records had no times
            times["start"] = times["stop"] = [self.id(item.get("dispatch_id")) for item in info]
            self.staging.writer.issue(
                "no_timeline", len(rows), "kernels without times stand in dispatch order, without durations"
            )
        self.staging.add("amd_gpu", {**times, **self.dispatch(info, symbols)}, self.proc)
        metrics: dict[tuple[int, str], float] = {}
        for row, item in zip(rows, info, strict=True):
            dispatch = self.id(item.get("dispatch_id"))
            for record in row.get("records") or []:
                handle = self.id(record.get("counter_id"))
                name = self.counters.get(handle if handle is not None else -1)
                if dispatch is None or name is None:
                    continue
                key = (dispatch, name)
                metrics[key] = metrics.get(key, 0.0) + float(record.get("value", 0.0))
        keys = list(metrics)
        self.staging.add(
            "amd_metric",
            {
                "dispatch": [key[0] for key in keys],
                "name": [key[1] for key in keys],
                "value": list(metrics.values()),
                "unit": ["1"] * len(keys),
            },
            self.proc,
        )
        self.staging.writer.meta["replayed"] = True


def _symbol_name(symbol: Row) -> str | None:
    """What the tool would show; 0 and '0' stand for nothing in its dummy symbol."""
    for key in ("formatted_kernel_name", "demangled_kernel_name", "kernel_name"):
        name = symbol.get(key)
        if isinstance(name, str) and name not in ("", "0"):
            return name
    return None


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and value in _INT64 else None
