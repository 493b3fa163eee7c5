"""Python stacks of CUDA calls: marks with the payload of nsys 2025.3.1, and one real recording."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path
from typing import Any

from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.line_table import place_table
from profrun.runner.mapped import mapped
from profrun.traces.trace import Trace
from tests.collectors.nsys.exports import KERNEL, RUNTIME, gpid, gtid, issues, make_export, trace_of
from tests.conftest import ROOT

STRINGS = ("gemm", "cudaLaunchKernel_v7000", "cudaLaunchKernel", "&lt;module&gt;", "step", "/me/train.py")
MODULE, STEP, FILE = 3, 4, 5
STACK, FRAME = 4294967301, 4294967299
"""Ids of the two schemas, in domain 1."""
SCHEMAS: list[dict[str, Any]] = [
    {"domainId": 1, "schemaId": STACK, "name": "Python Backtrace on CUDA", "payloadSize": None},
    {"domainId": 1, "schemaId": FRAME, "name": None, "payloadSize": 24},
]


def entries(line: int = 15, count: int = 12) -> list[dict[str, Any]]:
    """The fields of a stack and of a frame. ``line``: type of a line; ``count``: place of their number."""
    fields = [
        (STACK, "Thread state ID", 18, None),
        (STACK, "Thread state", STACK - 1, 8),
        (STACK, "Frames count", 16, count),
        (STACK, "Frames", FRAME, 16),
        (FRAME, "Function", 80, None),
        (FRAME, "File", 80, 8),
        (FRAME, "Line", line, 16),
    ]
    return [
        {"domainId": 1, "schemaId": schema, "name": name, "type": kind, "offset": place}
        for schema, name, kind, place in fields
    ]


def payload(*frames: tuple[int, int, int], count: int | None = None) -> bytes:
    """Frames (function, file, line) from the innermost; the four bytes after each line mean nothing."""
    number = len(frames) if count is None else count
    body = struct.pack("<QII", 1, 1, number)
    body += b"".join(struct.pack("<QQiI", *one, 0x7F4F0000) for one in frames)
    return struct.pack("<QQQQ", 1, STACK, len(body), 32) + body


def mark(start: int, blob: bytes | None, tid: int = 7, **more: Any) -> dict[str, Any]:
    return {
        "start": start, "eventType": 34, "globalTid": gtid(7, tid), "domainId": 1, "binaryData": blob,
        "text": None, **more,
    }  # fmt: skip


DOMAIN = {
    "start": -5, "eventType": 75, "globalTid": gtid(7, 7), "domainId": 1, "text": "Python Backtrace on CUDA"
}  # fmt: skip


def call(start: int, corr: int, tid: int = 7) -> list[dict[str, Any]]:
    """A launch: the row that --cudabacktrace adds, and inside it the call."""
    one = {"globalTid": gtid(7, tid), "correlationId": corr, "returnValue": 0}
    return [
        one | {"start": start, "end": start + 30, "eventClass": 67, "nameId": 2},
        one | {"start": start + 5, "end": start + 25, "eventClass": 0, "nameId": 1},
    ]


def kernel(start: int, corr: int) -> dict[str, Any]:
    return {
        "start": start, "end": start + 10, "deviceId": 0, "contextId": 1, "streamId": 7,
        "correlationId": corr, "globalPid": gpid(7), "demangledName": 0,
    }  # fmt: skip


def export(tmp_path: Path, events: list[dict[str, Any]], fields: list[dict[str, Any]] | None = None) -> Trace:
    """Two launches at 100 and 200, and these NVTX events."""
    tables: dict[str, list[dict[str, Any]]] = {
        KERNEL: [kernel(500, 1), kernel(600, 2)],
        RUNTIME: [*call(100, 1), *call(200, 2)],
        "NVTX_EVENTS": events,
        "NVTX_PAYLOAD_SCHEMAS": SCHEMAS,
        "NVTX_PAYLOAD_SCHEMA_ENTRIES": entries() if fields is None else fields,
    }
    return trace_of(tmp_path, make_export(tmp_path / "x", tables, STRINGS))


INNER = payload((STEP, FILE, 9), (MODULE, FILE, 30))
OUTER = payload((MODULE, FILE, 31))
STACKS = (
    "SELECT s.ts_ns, x.file, x.line, x.function FROM call_stacks c JOIN slices s USING (slice) "
    "JOIN stacks x USING (stack) ORDER BY s.ts_ns, x.frame"
)
FOUND = [
    (105, "/me/train.py", 30, "<module>"),
    (105, "/me/train.py", 9, "step"),
    (205, "/me/train.py", 31, "<module>"),
]


def test_a_call_has_the_stack_of_the_mark_at_its_start(tmp_path: Path) -> None:
    trace = export(tmp_path, [DOMAIN, mark(100, INNER), mark(200, OUTER)])
    assert trace.sql(STACKS).rows == FOUND
    assert trace.sql("SELECT count(*) FROM slices WHERE kind = 'range'").scalar() == 0
    assert not [code for code in issues(trace) if "python" in code or code == "left-out"]


def test_a_launch_comes_from_the_line_in_its_stack_without_any_mapping(tmp_path: Path) -> None:
    trace = export(tmp_path, [DOMAIN, mark(100, INNER), mark(200, OUTER)])
    table = place_table(frame(trace), mapped(trace), "line")
    assert [(row.place, row.launches, row.gpu_ns) for row in table.rows] == [
        (("/me/train.py", 31, "<module>"), 1, 10),
        (("/me/train.py", 9, "step"), 1, 10),
    ]
    assert table.resolved == 1


def test_equal_stacks_are_one_and_other_marks_are_ranges(tmp_path: Path) -> None:
    other = struct.pack("<QQQQQ", 1, 77, 8, 32, 5)  # a payload of another schema, as NCCL makes
    trace = export(
        tmp_path,
        [DOMAIN, mark(100, INNER), mark(200, INNER), mark(100, other, text="checkpoint"), mark(300, other)],
    )
    assert trace.sql("SELECT count(*), count(DISTINCT stack) FROM call_stacks").rows == [(2, 1)]
    assert trace.sql("SELECT count(*) FROM stacks").scalar() == 2
    assert trace.sql("SELECT name FROM slices WHERE kind = 'range'").rows == [("checkpoint",)]


def test_what_is_no_stack_of_a_call_in_the_recording_is_counted(tmp_path: Path) -> None:
    """A sample, at which no call begins; frames that are not there; a thread that made no such call."""
    broken = payload((STEP, FILE, 9), count=7)
    events = [DOMAIN, mark(100, INNER), mark(150, OUTER), mark(200, broken), mark(210, INNER[:40])]
    trace = export(tmp_path, [*events, mark(220, None)])
    assert trace.sql(STACKS).rows == FOUND[:2]
    found = issues(trace)
    assert (found["left-out"], found["python-stack-unreadable"], found["python-stacks-not-exported"]) == (
        1,
        2,
        1,
    )
    assert trace.sql("SELECT count(*) FROM slices WHERE kind = 'range'").scalar() == 0


def test_a_stack_of_a_call_that_was_left_out_is_counted(tmp_path: Path) -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        RUNTIME: call(100, 1)[:1] + call(200, 2),
        "NVTX_EVENTS": [DOMAIN, mark(100, INNER), mark(200, OUTER)],
        "NVTX_PAYLOAD_SCHEMAS": SCHEMAS,
        "NVTX_PAYLOAD_SCHEMA_ENTRIES": entries(),
    }
    trace = trace_of(tmp_path, make_export(tmp_path / "x", tables, STRINGS))
    assert trace.sql(STACKS).rows == FOUND[2:]
    assert issues(trace)["python-stack-without-call"] == 1


def test_an_export_without_payloads_says_so(tmp_path: Path) -> None:
    """As nsys 2024.2.3 writes it, and 2025.3.1 without --include-blobs=true."""
    events = [
        {key: value for key, value in one.items() if key != "binaryData"} for one in (mark(100, b""), DOMAIN)
    ]
    trace = export(tmp_path, events)
    assert issues(trace)["python-stacks-not-exported"] == 1
    assert trace.sql("SELECT count(*) FROM call_stacks").scalar() == 0
    assert trace.sql("SELECT count(*) FROM slices WHERE kind = 'range'").scalar() == 0


def test_every_process_lists_its_schemas(tmp_path: Path) -> None:
    """5 and 15 are the same type. A schema that two processes define differently is none that can be read."""
    events = [DOMAIN, mark(100, INNER), mark(200, OUTER)]
    assert export(tmp_path, events, [*entries(), *entries(line=5)]).sql(STACKS).rows == FOUND
    (tmp_path / "other").mkdir()
    trace = export(tmp_path / "other", events, [*entries(), *entries(count=8)])
    assert trace.sql(STACKS).rows == []
    assert issues(trace)["python-stacks-not-exported"] == 2


def test_a_recorded_training_step(tmp_path: Path) -> None:
    """One eager and one compiled step on an H200. The lines are those of both.py and model.py beside it.

    cuBLAS launches by cudaLaunchKernelExC, for which nsys takes no stack. Autograd's thread has no frame of
    Python unless a compiled backward runs in it.
    """
    folder = ROOT / "tests" / "data" / "h200" / "stacks"
    source = tmp_path / "report.sqlite"
    source.write_bytes(lzma.decompress((folder / "rank0" / "report.sqlite.xz").read_bytes()))
    trace = trace_of(tmp_path, source)
    table = place_table(frame(trace), mapped(trace), "line")
    text = {name: (folder / name).read_text().splitlines() for name in ("both.py", "model.py")}
    found = {}
    for row in table.rows:
        assert not isinstance(row.place, str)
        name = Path(row.place.file).name
        found[text[name][row.place.line - 1].strip()] = row.launches
    assert found == {
        "x = x.copy_(host)": 2,
        "loss = net(x).square().mean()": 6,  # a square; a memset and the kernel of a mean
        "loss.backward()": 2,  # the gradient of the loss
        "optimizer.step()": 16,
        "return loss.item()": 2,
        "y = torch.relu(y)": 2,  # of two blocks, in the eager step
        "y = self.down(y)": 8,
        "return x + y": 2,
    }
    assert sum(found.values()) + 60 == len(frame(trace).gpu)
    without = (
        "SELECT name, count(*) FROM slices WHERE slice IN (SELECT launch FROM slices) "
        "AND slice NOT IN (SELECT slice FROM call_stacks) GROUP BY name ORDER BY name"
    )
    assert trace.sql(without).rows == [
        ("cudaLaunchKernel", 13),
        ("cudaLaunchKernelExC", 30),
        ("cudaMemcpyAsync", 2),
    ]
