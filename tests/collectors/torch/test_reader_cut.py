"""Cutting into many pieces changes nothing, in every layout, plain or gzip, sound or damaged."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from profrun.collectors.normalize import normalize
from profrun.collectors.torch import reader_cut
from profrun.collectors.torch.reader_files import ahead
from profrun.errors import InputError
from profrun.traces.trace import Trace
from tests.collectors.test_normalize import EVENTS, NATIVE, PRETTY, SINGLE
from tests.conftest import first, shared_data
from tests.support.memory import PEAK_KIB

LAYOUTS = {"pretty": PRETTY, "single": SINGLE, "native": NATIVE, "crlf": NATIVE.replace(b"\n", b"\r\n")}
ONE_EACH = list(zip(LAYOUTS, (False, True, False, True), strict=True))
QUERY = (
    "SELECT s.kind, s.name, ts_ns, dur_ns, depth, s.correlation, h.name FROM slices s "
    "LEFT JOIN (SELECT slice, name FROM slices) h ON s.launch = h.slice ORDER BY ALL"
)


def rows(path: Path, out: Path) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    normalize([path], out)
    with Trace(out) as trace:
        return trace.sql(QUERY).rows, trace.sql("SELECT code, count FROM issues ORDER BY ALL").rows


@pytest.mark.parametrize(
    ("layout", "compressed"),
    first(4, [*ONE_EACH, *(pair for pair in product(LAYOUTS, (False, True)) if pair not in ONE_EACH)]),
)
def test_many_pieces_give_the_same_trace(
    layout: str, compressed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = LAYOUTS[layout]
    path = tmp_path / "a.json"
    path.write_bytes(gzip.compress(content) if compressed else content)
    whole = rows(path, tmp_path / "whole")
    assert len(whole[0]) == len(EVENTS)
    monkeypatch.setattr(reader_cut, "BLOCK", 1000)
    monkeypatch.setattr(reader_cut, "HEAD", 1000)
    file = reader_cut.EventFile(path, compressed)
    file.open()
    assert len(list(file.pieces())) > 1
    file.blocks.close()
    assert rows(path, tmp_path / "pieces") == whole


def test_a_system_without_reading_at_a_place_gives_the_same_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows has no pread."""
    path = tmp_path / "a.json"
    path.write_bytes(NATIVE)
    monkeypatch.setattr(reader_cut, "BLOCK", 1000)
    monkeypatch.setattr(reader_cut, "HEAD", 1000)
    found = []
    for system in ("linux", "win32"):
        monkeypatch.setattr("sys.platform", system)
        if system == "win32":
            monkeypatch.delattr("os.pread")
            monkeypatch.delattr("os.preadv")
        file = reader_cut.EventFile(path, False)
        file.open()
        found.append([file.text(piece) for piece in file.pieces()])
        file.blocks.close()
    assert len(found[0]) > 1
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "trap",
    first(
        3,
        [
            b'"name": "x}, {\\"ph\\": 1"',
            b'"args": {"list": [{"ph": "X"}, {"ph": "X"}], "correlation": 1}',
            b'"args": {"a": [\n  1\n  ],\n  "c": 2}',
            b'"name": "}, {"',
            b'"name": "]"',
            b'"args": {"a": {\n    "b": 1\n  },\n  "c": 2}',
        ],
    ),
)
def test_what_looks_like_an_end_fools_nobody(
    trap: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = SINGLE
    for number in range(3, 17):
        start = content.index(b'"name": "aten::op%d"' % number)
        content = content[:start] + trap + b', "was": ' + content[start + 8 :]
    path = tmp_path / "a.json"
    path.write_bytes(content)
    document = json.loads(content)
    monkeypatch.setattr(reader_cut, "BLOCK", 700)
    monkeypatch.setattr(reader_cut, "HEAD", 700)
    found, issues = rows(path, tmp_path / "trace")
    names = sorted(event.get("name", "unnamed") for event in document["traceEvents"])
    assert sorted(row[1] for row in found) == names
    assert issues == []


def test_events_behind_large_keys_and_keys_behind_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler = {
        f"key{n}": [{"ph": "X", "name": "no event"}, {"ph": "X", "name": "nor this"}] for n in range(50)
    }
    document = json.loads(SINGLE)
    events = document.pop("traceEvents")
    path = tmp_path / "a.json"
    for layout in (None, 1, 4):
        path.write_text(json.dumps(filler | {"traceEvents": events} | filler | document, indent=layout))
        monkeypatch.setattr(reader_cut, "BLOCK", 500)
        monkeypatch.setattr(reader_cut, "HEAD", 500)
        found, issues = rows(path, tmp_path / f"trace{layout}")
        assert (len(found), issues) == (len(EVENTS), [])
        with Trace(tmp_path / f"trace{layout}") as trace:
            assert trace.meta["epoch_ns"] == 10**18


def test_a_real_file_in_small_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shared_data("h200/torch/transformer.json.gz")
    whole = rows(path, tmp_path / "whole")
    monkeypatch.setattr(reader_cut, "BLOCK", 60_000)
    monkeypatch.setattr(reader_cut, "HEAD", 20_000)
    assert rows(path, tmp_path / "pieces") == whole


@pytest.mark.timeout(60)
@pytest.mark.parametrize("taken", [0, 1, 2])
def test_a_reader_that_stops_early_leaves_no_thread_waiting(taken: int, tmp_path: Path) -> None:
    batches = ahead(iter([[tmp_path]] * 3))
    for _ in range(taken):
        assert next(batches) == [tmp_path]
    time.sleep(0.1)  # lets the thread run into the full queue
    batches.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "profrun-cut"]


def test_what_cutting_raises_reaches_the_reader() -> None:
    def broken() -> Iterator[list[Path]]:
        yield []
        raise OSError(28, "No space left on device")

    batches = ahead(broken())
    assert next(batches) == []
    with pytest.raises(OSError, match="No space left"):
        next(batches)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_that_was_read_keeps_its_keys_and_not_its_text(compressed: bool, tmp_path: Path) -> None:
    """Those of hundreds of ranks are all held until the trace is made."""
    event = {"ph": "X", "cat": "cpu_op", "name": "x" * 400_000, "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    text = json.dumps({"schemaVersion": 1, "traceEvents": [event, event]}, indent=1).encode()
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(text) if compressed else text)
    tracemalloc.start()
    try:
        files = []
        for _ in range(20):
            files.append(reader_cut.EventFile(path, compressed))
            files[-1].open()
            assert sum(len(files[-1].text(piece)) for piece in files[-1].pieces())
            files[-1].blocks.close()
            assert files[-1].keys == {"schemaVersion": 1}
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 20 * 100_000


def bomb(path: Path, *parts: bytes | int) -> Path:
    """A gzip file; a number stands for as many MiB of the last byte of the part before."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        fill = b" "
        for part in parts:
            if isinstance(part, bytes):
                file.write(part)
                fill = part[-1:]
            else:
                for _ in range(part):
                    file.write(fill * (1 << 20))
    return path


HEAD = b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}, '  # fmt: skip  # noqa: E501


def test_an_event_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_cut, "BLOCK", 1 << 18)
    monkeypatch.setattr(reader_cut, "CARRY_LIMIT", 1 << 20)
    path = bomb(tmp_path / "a.json.gz", HEAD, b'{"ph": "X", "cat": "cpu_op", "name": "x', 4, b'"}]}')
    with pytest.raises(InputError, match="an event of more than 1 MiB"):
        normalize([path], tmp_path / "t")


def test_white_space_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_cut, "BLOCK", 1 << 18)
    monkeypatch.setattr(reader_cut, "CARRY_LIMIT", 1 << 20)
    monkeypatch.setattr(reader_cut, "BLANK_LIMIT", 3 << 20)
    path = bomb(tmp_path / "a.json.gz", HEAD + b" ", 6, b"]}")
    with pytest.raises(InputError, match="white space between events of more than 3 MiB"):
        normalize([path], tmp_path / "t")


@pytest.mark.thorough
def test_a_packed_name_of_a_gigabyte_takes_bounded_memory(tmp_path: Path) -> None:
    path = bomb(tmp_path / "a.json.gz", HEAD, b'{"ph": "X", "cat": "cpu_op", "name": "x', 1000, b'"}]}')
    code = "import sys; from profrun.cli import run; "
    code += "rc = run(['normalize', sys.argv[1], '-o', sys.argv[2]]); "
    code += f"print(rc, {PEAK_KIB} >> 10)"
    done = subprocess.run(
        [sys.executable, "-c", code, path, tmp_path / "t"], capture_output=True, text=True, check=True
    )
    code_, peak = map(int, done.stdout.split())
    assert code_ == 65
    assert peak < 600
