"""events.jsonl: what was appended is read back, whatever a kill or a full disk tore."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.errors import InputError, UnavailableError
from profrun.store import events as events_module
from profrun.store.events import EventLog, read_events
from tests.conftest import examples

_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_record = st.tuples(st.sampled_from(events_module.NAMES), st.none() | st.text(), _json)


def _fill(path: Path, records: list[tuple[str, str | None, Any]]) -> None:
    path.unlink(missing_ok=True)
    log = EventLog(path, clock=lambda: 7)
    for name, trial, value in records:
        log.append(name, trial, value=value)


@given(st.lists(_record, max_size=6))
@examples(30, 1000)
def test_what_is_appended_is_read_back(tmp_path_factory: pytest.TempPathFactory, records: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "round.jsonl"
    _fill(path, records)
    found = read_events(path)
    assert [(e["event"], e["trial"], e["value"]) for e in found.items] == [tuple(r) for r in records]
    assert found.unreadable == 0


@given(st.lists(_record, min_size=1, max_size=5), st.data())
@examples(40, 1000)
def test_a_file_cut_anywhere_keeps_every_whole_line_and_the_next_append(
    tmp_path_factory: pytest.TempPathFactory, records: Any, data: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "torn.jsonl"
    _fill(path, records)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    # A line is whole from its last brace on, even if the newline is gone.
    kept = sum(1 for end in _ends(whole) if end - 1 <= cut)
    EventLog(path).append("resumed")
    found = read_events(path)
    assert [e["event"] for e in found.items] == [*[r[0] for r in records][:kept], "resumed"]
    assert found.unreadable == (0 if cut in (0, *_ends(whole), *(end - 1 for end in _ends(whole))) else 1)


def _ends(content: bytes) -> list[int]:
    return [index + 1 for index, byte in enumerate(content) if byte == 0x0A]


def test_lines_that_are_no_events_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"event":"created","ts":1}\n[1]\n{"ts":2}\n\xff\xfe\n{"event":"done","ts":3}\n')
    found = read_events(path)
    assert [event["event"] for event in found.items] == ["created", "done"]
    assert found.unreadable == 3


def test_an_event_without_a_time_is_none(tmp_path: Path) -> None:
    (tmp_path / "e").write_text('{"ts": "x", "event": "created"}\n{"ts": 5, "event": "done"}\n')
    events = read_events(tmp_path / "e")
    assert ([item["event"] for item in events.items], events.unreadable) == (["done"], 1)


def test_no_file_is_no_events(tmp_path: Path) -> None:
    assert read_events(tmp_path / "none").items == []


def test_a_full_disk_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes, *, durable: bool = True) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(events_module, "write_all", full)
    with pytest.raises(UnavailableError, match=r"the disk is full: .*events.jsonl.*profrun resume") as caught:
        EventLog(tmp_path / "events.jsonl").append("created")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 69


def test_nothing_is_appended_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    path = tmp_path / "events.jsonl"
    path.symlink_to(tmp_path / "victim")
    with pytest.raises(InputError, match=r"events\.jsonl cannot be used: it is a symbolic link"):
        EventLog(path).append("created")
    with pytest.raises(InputError, match="symbolic link"):
        read_events(path)
    assert (tmp_path / "victim").read_text() == "mine"


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="is not there any more: somebody removed or moved") as caught:
        EventLog(tmp_path / "gone" / "events.jsonl").append("created")
    assert "look at the disk" not in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "[" * 200_000,
        '{"ts":1,"event":"done","x":' + "[" * 200_000 + "]" * 200_000 + "}",
        '{"ts":1,"event":"started","attempt":"x"}',
        '{"ts":1,"event":"started","attempt":[1]}',
        '{"ts":1,"event":"finished","state":["lost"]}',
        '{"ts":1,"event":"finished","state":"won"}',
        '{"ts":1,"event":"finished","state":"failed","reason":[]}',
        '{"ts":1,"event":"finished","state":"failed","exit_code":"1"}',
        '{"ts":1,"event":"created","job":{}}',
        '{"ts":1,"event":"created","backend":7}',
        '{"ts":1,"event":"started","handle":[]}',
        '{"ts":1,"event":"started","handle":{"data":7}}',
        '{"ts":1e300,"event":"done"}',
        '{"ts":' + "9" * 30 + ',"event":"done"}',
        '{"ts":1,"event":"done","x":NaN}',
    ],
)
def test_a_line_with_values_of_another_kind_is_no_event(tmp_path: Path, line: str) -> None:
    (tmp_path / "e").write_text(line + '\n{"ts": 5, "event": "done", "state": "finished"}\n')
    events = read_events(tmp_path / "e")
    assert ([item["ts"] for item in events.items], events.unreadable) == ([5], 1)
