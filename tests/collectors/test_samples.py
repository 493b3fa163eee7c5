"""Files of samples -> counters: which track, which time, and what is damaged."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.collectors import samples
from profrun.contract.sampling import SampledSource
from profrun.traces.trace import Trace
from profrun.traces.writer import TraceWriter
from tests.conftest import examples

EPOCH = 1_700_000_000_000_000_000
ANCHOR = {"realtime_ns": EPOCH, "monotonic_ns": 300, "boottime_ns": 400}
GPU: dict[str, Any] = {"kind": "gpu", "quantities": ["sm_clock", "reasons"], "vendor": "nvidia"}
HOST = {"kind": "host", "quantities": ["cpu_busy"]}
Rows = list[tuple[Any, ...]]


def samples_file(path: Path, sources: list[dict[str, Any]], lines: list[str], host: str = "h") -> Path:
    head = {"host": host, "pid": 1, "anchor": ANCHOR, "rate": 10.0, "sources": sources, "format": 1}
    path.write_text("\n".join([json.dumps(head), *lines]))
    return path


def line(ts: int, source: int, *values: float | None) -> str:
    return json.dumps([EPOCH + ts, source, *values])


def added(
    out: Path,
    files: list[Path],
    devices: Rows,
    *,
    processes: Rows = [(0, 10, 0, "h")],  # noqa: B006 (nobody changes it)
    used: tuple[int, ...] = (),
    epoch: int | None = EPOCH,
) -> tuple[Rows, Rows, Rows]:
    """Rows of counters with the device of their track, devices with tracks, and issues.

    Args:
        devices: (process, uuid, host_ordinal) of each. used: those with a stream.
    """
    clock = "session" if epoch is None else "epoch"
    with TraceWriter(out) as writer:
        writer.meta.update({"source": "synthetic", "collector": "torch", "vendor": "nvidia"})
        writer.meta.update({"clock": clock, "epoch_ns": epoch})
        writer.insert("processes", ("process", "pid", "rank", "host"), processes)
        rows = [(at, one[0], "nvidia", at, "H200", *one[1:]) for at, one in enumerate(devices)]
        names = ("device", "process", "vendor", "ordinal", "name", "uuid", "host_ordinal")
        writer.insert("devices", names, rows)
        streams = [(at, "stream", devices[device][0], device) for at, device in enumerate(used)]
        writer.insert("tracks", ("track", "kind", "process", "device"), streams)
        samples.add_files(writer, files)
        writer.finish(check=True)
    with Trace(out) as trace:
        values = (
            "SELECT device, c.name, ts_ns, value, unit FROM counters c JOIN tracks USING (track) ORDER BY ALL"
        )
        tracks = "SELECT device, process FROM tracks WHERE name = 'samples' ORDER BY ALL NULLS LAST"
        issues = "SELECT code, count FROM issues ORDER BY code"
        return trace.sql(values).rows, trace.sql(tracks).rows, trace.sql(issues).rows


def test_a_gpu_and_its_host(tmp_path: Path) -> None:
    """A null is no sample; the last line was cut; times before the recording are there, too."""
    file = samples_file(
        tmp_path / "samples.h.jsonl",
        [GPU | {"uuid": "abc-1"}, HOST],
        [line(-50, 0, 1980, 0), line(-50, 1, 1.5), line(50, 0, 1400.5, 1), line(60, 1, None), "[17000"],
    )
    values, tracks, issues = added(tmp_path / "t", [file], [(0, "GPU-ABC-1", None)])
    assert values == [
        (0, "SM clock", -50, 1980.0, "MHz"),
        (0, "SM clock", 50, 1400.5, "MHz"),
        (0, "slowed by", -50, 0.0, "mask"),
        (0, "slowed by", 50, 1.0, "mask"),
        (None, "CPU cores busy", -50, 1.5, "cores"),
    ]
    assert (tracks, issues) == ([(0, 0), (None, 0)], [])


A, B = GPU | {"uuid": "a", "index": 0}, GPU | {"uuid": "b", "index": 1}


@pytest.mark.parametrize(
    ("devices", "used", "sources", "owners", "said"),
    [
        ([(0, "b", None), (0, "a", None)], (), [A, B], {0: "b", 1: "a"}, []),
        ([(0, None, 1)], (), [A, B], {0: "b"}, []),  # by its number on the host
        ([(0, None, None)], (), [A], {0: "a"}, []),  # the only one of both
        ([(0, "a", None), (0, "b", None)], (1,), [A, B], {1: "b"}, []),  # the program used this one only
        ([(0, "a", None), (1, "a", None)], (), [A], {0: "a"}, []),  # two processes: its energy once
        ([(0, "a", None), (1, "a", None)], (1,), [A], {1: "a"}, []),  # the process that worked on it
        ([(0, "x", 0)], (), [A, B], {}, [("samples_without_device", 2)]),
        ([], (), [A], {}, []),  # a program without a GPU
    ],
)
def test_which_gpu_is_which(
    devices: Rows,
    used: tuple[int, ...],
    sources: list[Any],
    owners: dict[int, str],
    said: Rows,
    tmp_path: Path,
) -> None:
    lines = [line(0, at, ord(source["uuid"]), 0) for at, source in enumerate(sources)]
    file = samples_file(tmp_path / "samples.h.jsonl", sources, lines)
    processes: Rows = [(0, 10, 0, "h"), (1, 11, 1, "h")]
    values, tracks, issues = added(tmp_path / "t", [file], devices, processes=processes, used=used)
    assert {row[0]: chr(int(row[3])) for row in values if row[1] == "SM clock"} == owners
    assert [device for device, _ in tracks] == list(owners)
    assert issues == said


def test_every_host_has_its_own_file(tmp_path: Path) -> None:
    """A GPU's number is one of its host. The only file is everybody's: containers name their hosts anew."""
    sources, lines = [GPU | {"index": 0}, HOST], [line(0, 0, 1, 0), line(0, 1, 2)]
    files = [
        samples_file(tmp_path / f"samples.{host}.jsonl", sources, lines, host)
        for host in ("h", "g", "elsewhere")
    ]
    processes: Rows = [(0, 10, 0, "g"), (1, 11, 1, "h")]
    devices: Rows = [(0, None, 0), (1, None, 0)]
    _, tracks, issues = added(tmp_path / "t", files, devices, processes=processes)
    assert tracks == [(0, 0), (1, 1), (None, 0), (None, 1)]
    assert issues == [("samples_without_host", 1)]
    _, tracks, issues = added(tmp_path / "u", files[2:], devices[:1], processes=processes[:1])
    assert (tracks, issues) == ([(0, 0), (None, 0)], [])


def test_what_cannot_be_read_or_placed_is_said(tmp_path: Path) -> None:
    lines = [line(0, 0, 1, 0), "garbage", line(0, 7, 1, 0), line(0, 0, 1), '[1, 0, "x", 0]', line(9, 0, 2, 0)]
    file = samples_file(tmp_path / "samples.h.jsonl", [GPU], lines)
    empty, other = tmp_path / "samples.a.jsonl", tmp_path / "samples.b.jsonl"
    empty.write_text("")
    other.write_text(file.read_text().replace('"format": 1', '"format": 2'))
    values, _, issues = added(tmp_path / "t", [file, empty, other], [(0, None, None)])
    assert [row[2] for row in values if row[1] == "SM clock"] == [0, 9]
    assert issues == [("sample_damaged", 4), ("samples_unreadable", 2)]
    values, tracks, issues = added(tmp_path / "u", [file], [(0, None, None)], epoch=None)
    assert (values, tracks, issues) == ([], [], [("samples_without_axis", 1)])


VALUE = st.one_of(st.none(), st.floats(-1e300, 1e300), st.integers(-(2**70), 2**70))
SAMPLE = st.tuples(st.integers(0, 2**61), st.just(0), VALUE, VALUE)
BROKEN = [
    b"[true, 0, 1, 1]",
    b"[" * 3000,
    b"[1, 0, 1" + b"0" * 400 + b", 1]",
    b"[1.5, 0, 1, 1]",
    b"[1, 1, 1, 1]",
]
GARBAGE = st.one_of(
    st.binary(max_size=30).map(lambda data: b"x" + data.replace(b"\n", b"")), st.sampled_from(BROKEN)
)


@examples(200, 5000)
@given(lines=st.lists(st.one_of(SAMPLE, GARBAGE), max_size=8), cut=st.integers(2, 12))
def test_whole_samples_survive_what_stands_between_them(lines: list[Any], cut: int) -> None:
    """Every whole line comes back as it was written; damage is counted; a cut last line is no damage."""
    data = b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines)
    whole = data[: max(len(data) - cut, 0)]
    ended = whole.count(b"\n")
    last = whole.rpartition(b"\n")[2]
    only_newline_lost = ended < len(lines) and not isinstance(lines[ended], bytes)
    kept = lines[: ended + (only_newline_lost and last == json.dumps(lines[ended]).encode())]
    damage = samples.Damage()
    source = SampledSource("gpu", ("sm_clock", "power"))
    found = list(samples.read_lines(io.BytesIO(whole), [source], damage))
    expected = [
        (one[0], 0, [math.nan if value is None else float(value) for value in one[2:]])
        for one in kept
        if not isinstance(one, bytes)
    ]
    assert repr(found) == repr(expected)
    assert damage.lines == len(kept) - len(expected)
