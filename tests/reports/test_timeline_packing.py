"""A packed timeline is what was packed: read by Python, and by the script of the page in node."""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.trace.timeline_counters import TimelineCounter
from profrun.analysis.trace.timeline_slices import Timeline, timeline_slices
from profrun.reports.timeline_packing import packed
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step
from tests.conftest import ROOT, examples

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "\"'&<!--",
    "\x00\x1b[31m\u2028",
    "\ud800 alone",
    "\U0001f600",
    "",
]


def made(rows: list[Row]) -> Timeline:
    found = timeline_slices(memory_trace(rows))
    assert found is not None
    return found


def columns_of(text: str) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """The header and the columns, by the words of the module's docstring alone."""
    raw = zlib.decompress(base64.b64decode(text))
    size = int.from_bytes(raw[:4], "little")
    header = json.loads(raw[4 : 4 + size])
    at, columns = 4 + size, dict[str, Any]()
    for name, width, count in header["columns"]:
        planes = np.frombuffer(raw[at : at + width * count], np.uint8).reshape(width, count)
        shifts = np.arange(0, 8 * width, 8, dtype=np.uint64)[:, None]
        columns[name] = (planes.astype(np.uint64) << shifts).sum(axis=0)
        at += width * count
    assert at == len(raw)
    return header, columns


def undone(values: np.ndarray[Any, Any]) -> list[int]:
    """Differences with the sign in the lowest bit, added up."""
    found, total = [], 0
    for value in values.tolist():
        total += -(value + 1) // 2 if value % 2 else value // 2
        found.append(total)
    return found


def same(timeline: Timeline) -> None:
    header, columns = columns_of(packed(timeline))
    rows = [0, *np.cumsum(columns["rows"]).tolist()]
    starts = [
        start
        for low, high in itertools.pairwise(rows)
        for start in np.cumsum(columns["start"][int(low) : int(high)]).tolist()
    ]
    assert rows == timeline.rows.tolist()
    assert starts == timeline.start.tolist()
    assert columns["dur"].tolist() == timeline.dur.tolist()
    assert columns["name"].tolist() == timeline.name.tolist()
    assert columns["category"].tolist() == timeline.category.tolist()
    assert undone(columns["launch"]) == timeline.launch.tolist()
    assert undone(columns["slice"]) == timeline.slice.tolist()
    assert [value - 1 for value in columns["detail"].tolist()] == timeline.detail.tolist()
    assert header["names"] == timeline.names
    assert header["details"] == timeline.details
    assert [tuple(track) for track in header["tracks"]] == timeline.tracks
    for number, one in enumerate(timeline.counters):
        assert np.cumsum(columns[f"times{number}"]).tolist() == one.times.tolist()
        assert columns[f"values{number}"].view(np.float64).tolist() == one.values.tolist()


SLICE = st.tuples(
    st.sampled_from(["op", "api", "range", "kernel", "python"]),
    st.sampled_from(["a", "b", *HOSTILE[:3]]),
    st.integers(0, 2**55),
    st.integers(0, 2**40),
    st.sampled_from(["main", "other", "stream 7"]),
)


@given(st.lists(SLICE, min_size=1, max_size=30))
@examples(20, 500)
def test_what_is_packed_comes_back(rows: list[Row]) -> None:
    timeline = made(
        [("op" if row[0] == "kernel" and row[4] != "stream 7" else row[0], *row[1:]) for row in rows]
    )
    if timeline.span_ns < 2**53:
        same(timeline)


def test_names_of_every_kind_and_counters_come_back() -> None:
    timeline = made([("op", f"n{number}", 10 * number, 5, "main") for number in range(len(HOSTILE))])
    counter = TimelineCounter(HOSTILE[0], "byte", 0, np.array([0, 2**52]), np.array([0.1, -3e300]))
    same(replace(timeline, names=HOSTILE, counters=[counter]))


def test_the_text_needs_no_escaping() -> None:
    timeline = replace(made([("op", "n", 0, 5, "main")]), names=[HOSTILE[0]])
    assert set(packed(timeline)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")


def in_node(timeline: Timeline, expression: str, folder: Path) -> Any:
    """The value of an expression of the script's ``data``, by the node of playwright."""
    driver = pytest.importorskip("playwright._impl._driver")
    node, *_ = driver.compute_driver_executable()
    script = (ROOT / "reports" / "static" / "timeline_data.js").read_text()
    program = folder / "data.js"
    program.write_text(
        f"{script}\nTimelineData.unpack({json.dumps(packed(timeline))})"
        f".then(data => console.log(JSON.stringify({expression})));\n"
    )
    done = subprocess.run([node, str(program)], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def test_the_script_reads_a_real_recording(h200: Path, tmp_path: Path) -> None:
    with Trace(h200) as trace:
        timeline = timeline_slices(trace)
        assert timeline is not None
        whole = "{start: [...data.start], end: [...data.end], name: [...data.name], launch: [...data.launch]"
        whole += (
            ", slice: [...data.slice], rows: [...data.rows], detail: [...data.detail], names: data.names}"
        )
        found = in_node(timeline, whole, tmp_path)
        assert found["start"] == timeline.start.tolist()
        assert found["end"] == (timeline.start + timeline.dur).tolist()
        assert found["detail"] == (timeline.detail + 1).tolist()
        for key in ("name", "launch", "slice", "rows", "names"):
            expected = getattr(timeline, key)
            assert found[key] == (expected if isinstance(expected, list) else expected.tolist()), key


def test_hostile_names_are_the_same_in_the_script(tmp_path: Path) -> None:
    timeline = replace(made([("op", "n", 0, 2**52, "main")]), names=HOSTILE)
    codes = in_node(
        timeline,
        "data.names.map(name => Array.from({length: name.length}, (_, at) => name.charCodeAt(at)))",
        tmp_path,
    )
    units = [
        [int(code) for code in np.frombuffer(name.encode("utf-16-le", "surrogatepass"), "<u2")]
        for name in HOSTILE
    ]
    assert codes == units


def test_sums_of_a_stretch_are_those_of_sql(h200: Path, tmp_path: Path) -> None:
    """Of every slice the part inside; slices without length count where they start."""
    with Trace(h200) as trace:
        timeline = timeline_slices(trace)
        assert timeline is not None
        low, high = timeline.span_ns // 5, timeline.span_ns // 2
        tracks = list(range(len(timeline.tracks)))
        found = in_node(
            timeline,
            f"data.sums({low}, {high}, {tracks}).map(row => [data.names[row.name], row.count, row.total])",
            tmp_path,
        )
        query = """SELECT name, count(*), sum(least(ts_ns + dur_ns, $high) - greatest(ts_ns, $low))::BIGINT
            FROM slices WHERE ts_ns < $high AND (ts_ns + dur_ns > $low OR dur_ns = 0 AND ts_ns >= $low)
            GROUP BY name"""
        query = query.replace("$high", str(timeline.start_ns + high)).replace(
            "$low", str(timeline.start_ns + low)
        )
        expected = trace.sql(query).rows
    totals: dict[str, tuple[int, int]] = {}
    for name, count, total in found:  # a name of two categories has two rows
        before = totals.get(name, (0, 0))
        totals[name] = (before[0] + count, before[1] + total)
    assert totals == {name: (count, total) for name, count, total in expected}
    assert len(found) > 10
    assert [row[2] for row in found] == sorted((row[2] for row in found), reverse=True)


ROWS: list[Row] = [
    step(1, 0, 1000),
    ("op", "aten::mm", 100, 300, "main"),
    ("api", "launch", 120, 10, "main"),
    ("api", "launch", 200, 10, "main"),
    ("kernel", "gemm", 500, 100, "stream 7", {"launch": 3}),
    ("kernel", "copy", 400, 50, "stream 7", {"launch": 2}),
    ("op", "mark", 450, 0, "main"),
]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("data.launchedBy(of(1)).map(id)", [5, 4]),  # of an op: of the calls in it, by start
        ("data.launchedBy(of(3)).map(id)", [4]),
        ("data.launchedBy(of(4)).map(id)", []),
        ("id(data.launch[of(4)])", 3),
        ("data.around(of(3)).map(id)", [1, 0]),  # the innermost first
        ("data.search('LAUNCH').count", 2),
        ("[-1, of(2), of(3)].map(at => hit(at, false))", [[2, 1], [3, 2], [2, 1]]),
        ("[-1, of(2), of(3)].map(at => hit(at, true))", [[3, 2], [3, 2], [2, 1]]),
        ("id(data.at(data.rowOf(of(4)), 550, 1))", 4),
        ("data.at(data.rowOf(of(4)), 480, 1)", -1),
        ("id(data.at(data.rowOf(of(6)), 451, 2))", 6),  # no length: found close by
        ("data.withId(99)", -1),
        (
            "[data.beside(of(2), true), data.beside(of(3), true), data.beside(of(3), false)].map(id)",
            [3, 3, 2],
        ),
        ("id(data.beside(-1, true, 0))", 0),
        ("data.beside(-1, true, 5000)", -1),
    ],
)
def test_questions_of_the_view(question: str, answer: object, tmp_path: Path) -> None:
    tools = "const of = number => data.withId(number), id = at => data.slice[at];"
    tools += "const hit = (at, back) => { const one = data.nextHit(data.search('launch'), at, back);"
    tools += " return [id(one.found), one.number]; };"
    asked = f"(() => {{ {tools} return {question}; }})()"
    assert in_node(made(ROWS), asked, tmp_path) == answer


def test_the_longest_of_any_stretch(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    durations = draw.integers(0, 1000, 3000).tolist()
    timeline = made([("op", "a", 2000 * n, dur, "main") for n, dur in enumerate(durations)])
    pairs = np.sort(draw.integers(0, 3001, (200, 2)), axis=1)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]].tolist()
    found = in_node(timeline, f"{pairs}.map(([low, high]) => data.longest.of(low, high))", tmp_path)
    for (low, high), at in zip(pairs, found, strict=True):
        assert low <= at < high
        assert durations[at] == max(durations[low:high])
