"""The compiled parser: exact or refused, never a guess; and the same trace as without it."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.collectors.normalize import normalize
from profrun.collectors.torch import reader_cut, reader_workers
from profrun.collectors.torch.events import MISSING, Field, Parser, Refused, library
from profrun.collectors.torch.reader_stage import OWNER
from tests.collectors.torch.test_exact import FILES, MORE
from tests.collectors.torch.test_fuzz import MUTATIONS, original
from tests.conftest import ROOT, THOROUGH, examples, first, missing, need_tool, shared_data

FIELDS = (
    Field("ph", "ph", "text", inside=False),
    Field("cat", "cat", "text", inside=False),
    Field("ts", "ts", "microseconds", inside=False),
    Field("xid", "External id", "integer"),
    Field("xid", "external id", "integer"),
    Field("load", "load", "real"),
    Field("grid", "grid", "triple"),
    Field("dims", "dims", "text"),
)
COLUMNS = ("ph", "cat", "ts", "xid", "load", "grid_x", "grid_y", "grid_z", "dims")


@pytest.fixture(autouse=True)
def compiled() -> None:
    """These tests need the parser itself."""
    if library() is None:
        missing("the compiled parser (a C compiler when profrun was installed)")


def parse(text: bytes, room: int = 8) -> list[tuple[Any, ...]]:
    """Rows of all events: values of ``COLUMNS``, texts as JSON."""
    parser = Parser(FIELDS, ("cat", "xid"), room)
    rows: list[tuple[Any, ...]] = []
    at = 0
    try:
        while at < len(text):
            count, at = parser.read(text, at)
            texts = parser.texts(0)
            for event in parser.values[:, :count].T.tolist():
                row: list[Any] = [None if value == MISSING else value for value in event]
                for place, name in enumerate(COLUMNS):
                    if name in ("ph", "cat", "dims") and row[place] is not None:
                        row[place] = texts[row[place]].decode()
                    if name == "load" and row[place] is not None:
                        row[place] = float(np.int64(row[place]).view(np.float64))
                rows.append(tuple(row[: len(COLUMNS)]))
    finally:
        parser.close()
    return rows


def one(column: str, text: str) -> Any:
    """One column of one event."""
    (row,) = parse(text.encode())
    return row[COLUMNS.index(column)]


@pytest.mark.parametrize(
    ("column", "event", "value"),
    [
        ("ph", '{"ph": "X"}', '"X"'),
        ("ph", "{}", None),
        ("ph", '{"ph": null}', None),
        ("ts", '{"ts": 1}', 1_000),
        ("ts", '{"ts": 1.5}', 1_500),
        ("ts", '{"ts": 0.001}', 1),
        ("ts", '{"ts": -0.25}', -250),
        ("ts", '{"ts": "12.3450"}', 12_345),
        ("ts", '{"ts": 1758927066581847.260}', 1_758_927_066_581_847_260),  # a float64 would lose 84 ns
        ("xid", '{"args": {"External id": 9223372036854775807}}', 2**63 - 1),
        ("xid", '{"args": {"external id": "82944"}}', 82_944),
        ("xid", '{"args": {"x": [{"External id": 3}, "\\u00e9", 1e5, true]}}', None),
        ("xid", '{"External id": 3}', None),  # only args has it
        ("load", '{"args": {"load": 33.5}}', 33.5),
        ("load", '{"args": {"load": -0.0}}', 0.0),
        ("grid_z", '{"args": {"grid": [1, 2, 3]}}', 3),
        ("grid_x", '{"args": {"grid": []}}', None),
        ("grid_x", '{"args": {"grid": [1, 2, 3, 4]}}', None),
        ("grid_x", '{"args": {"grid": "grid(100,)"}}', None),
        ("dims", '{"args": {"dims": [[ 2, 3 ], []]}}', "[[ 2, 3 ], []]"),
        ("dims", '{"args": null}', None),
    ],
)
def test_a_value_is_exact(column: str, event: str, value: Any) -> None:
    assert one(column, event) == value


@pytest.mark.parametrize(
    "text",
    [
        *('{"ph": "X"', '{"ph" "X"}', "{,}", '{"a": 1,}', '{"a": 1}}', "[]", "1", '{"a": 01}', '{"a": .5}'),
        *('{"a": +1}', '{"a": 1.}', '{"a": NaN}', '{"a": tru}', "{'a': 1}", '{"a": "\t"}', '{"a": "\\x"}'),
        *('{"a": "\\ud800"}', '{"a": [1}', '{"a": {"b"}}', "{}{}", "{},,{}", '{"a": 1} x'),
        '{"a": ' + "[" * 100 + "]" * 100 + "}",
        *('{"ts": 1e3}', '{"ts": 1.2345}', '{"ts": 9223372036854775.808}', '{"ts": "soon"}', '{"ts": 1.}'),
        *('{"args": []}', '{"args": {}, "args": {}}', '{"ph": "X", "ph": "X"}', '{"p\\u0068": "X"}'),
        '{"args": {"External id": 1, "external id": 2}}',
        *('{"args": {"External id": 9223372036854775808}}', '{"args": {"External id": 1.0}}'),
        *('{"args": {"External id": true}}', '{"args": {"grid": [1.0, 2, 3]}}', '{"args": {"load": 1e2}}'),
        '{"args": {"load": 0.12345678901234567}}',
    ],
)
def test_what_is_not_plain_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse(text.encode())


@pytest.mark.parametrize(
    "raw", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x00"]
)
def test_bytes_that_are_no_utf8_are_refused(raw: bytes) -> None:
    assert parse(b'{"a": "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"}') != []
    with pytest.raises(Refused):
        parse(b'{"a": "0123456' + raw + b'"}')


@pytest.mark.parametrize("number", ["1" * 5000, "1e400"])
def test_shapes_of_absurd_numbers_are_left_to_the_other_reader(number: str, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        reader_workers.plain(f"[[{number}]]".encode())
    event = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": '
    event += f'{{"Input Dims": [[{number}]]}}}}'
    (tmp_path / "a.json").write_text(f'{{"schemaVersion": 1, "traceEvents": [{event}]}}')
    result = normalize([tmp_path / "a.json"], tmp_path / "trace")
    lost = [issue["count"] for issue in result.issues if issue["code"] in ("truncated", "unreadable_event")]
    assert [result.counts["ops"], *lost] in ([1], [0, 1])  # nothing goes in silence


def test_arrows_are_left_out_but_for_forward_to_backward() -> None:
    arrows = ",".join(
        json.dumps({"ph": ph, "cat": cat}) for ph in "stfX" for cat in ("ac2g", "fwdbwd", "kernel")
    )
    assert [row[:2] for row in parse(arrows.encode())] == [
        *(('"s"', '"fwdbwd"'), ('"t"', '"fwdbwd"'), ('"f"', '"fwdbwd"')),
        *(('"X"', '"ac2g"'), ('"X"', '"fwdbwd"'), ('"X"', '"kernel"')),
    ]


def test_more_events_than_room_come_in_turns() -> None:
    text = b", ".join(b'{"ts": %d}' % number for number in range(1000))
    assert [row[2] for row in parse(text, room=7)] == [number * 1000 for number in range(1000)]


NUMBERS = st.one_of(
    st.integers(-(2**64), 2**64),
    st.decimals(-(10**12), 10**12, places=3),
    st.decimals(-100, 100, places=6),
    st.floats(allow_nan=False, allow_infinity=False),
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "i", "M"]),
        "cat": st.text(max_size=6),
        "ts": NUMBERS,
        "other": ANYTHING,
        "args": st.fixed_dictionaries(
            {},
            optional={
                "External id": NUMBERS | st.none(),
                "load": NUMBERS,
                "grid": st.lists(st.integers(-5, 2**31), max_size=4) | st.text(max_size=3),
                "dims": ANYTHING,
                "more": ANYTHING,
            },
        ),
    },
)


def dump(value: Any, blank: str, ascii_only: bool) -> str:
    """JSON of a value, Decimals as they are, with any white space between."""

    def inner(value: Any) -> str:
        if isinstance(value, Decimal):
            return f"{value:f}"
        if isinstance(value, dict):
            pairs = (f"{inner(key)}{blank}:{blank}{inner(item)}" for key, item in value.items())
            return "{" + blank + f"{blank},{blank}".join(pairs) + blank + "}"
        if isinstance(value, list):
            return "[" + blank + f"{blank},{blank}".join(map(inner, value)) + blank + "]"
        return json.dumps(value, ensure_ascii=ascii_only)

    return inner(value)


def same(found: Any, stated: Any) -> bool:
    """Whether a text column holds the JSON of what was stated."""
    return bool(stated is None if found is None else json.loads(found, parse_float=Decimal) == stated)


@given(
    st.lists(EVENTS, max_size=4),
    st.sampled_from(["", " ", "\n  ", "\r\n\t"]),
    st.booleans(),
)
@examples(150, 5000)
def test_any_events_are_read_exactly_or_refused(events: list[Any], blank: str, ascii_only: bool) -> None:
    text = f"{blank},{blank}".join(dump(event, blank, ascii_only) for event in events).encode()
    try:
        rows = parse(text)
    except Refused:
        return
    assert len(rows) == len(events)
    for row, event in zip(rows, events, strict=True):
        found = dict(zip(COLUMNS, row, strict=True))
        args = event.get("args", {})
        assert same(found["ph"], event.get("ph"))
        assert same(found["cat"], event.get("cat"))
        dims = json.loads(dump(args.get("dims"), "", True), parse_float=Decimal)
        assert same(found["dims"], dims)
        for name, stated, scale in (
            ("ts", event.get("ts"), 1000),
            ("xid", args.get("External id"), 1),
            ("load", args.get("load"), 1),
        ):
            value = None if found[name] is None else Decimal(str(found[name]))
            assert value == (None if stated is None else Decimal(str(stated)) * scale)
        grid = args.get("grid")
        three = grid if isinstance(grid, list) and len(grid) == 3 else [None] * 3
        assert [found["grid_x"], found["grid_y"], found["grid_z"]] == three


def events_of_a_real_file() -> bytes:
    """What stands between the brackets of traceEvents."""
    document = original("h200/torch/mlp.json.gz")
    start = document.index(b'"traceEvents": [') + len(b'"traceEvents": [')
    return document[start : document.rindex(b"]")]


@given(st.integers(0, 2**64 - 1))
@examples(40, 3000)
def test_damaged_text_is_refused_or_is_still_json(seed: int) -> None:
    rng = random.Random(seed)
    text = events_of_a_real_file()
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(MUTATIONS)(text, rng)
    parser = Parser(reader_workers.FIELDS, OWNER)
    try:
        rows = at = 0
        while at < len(text):
            count, at = parser.read(text, at)
            rows += count
    except Refused:
        return
    finally:
        parser.close()
    events = json.loads(b"[" + text.rstrip().removesuffix(b",") + b"]")
    kept = [
        event for event in events if event.get("ph") not in ("s", "t", "f") or event.get("cat") == "fwdbwd"
    ]
    assert rows == len(kept)


@pytest.mark.thorough
def test_the_sanitizers_see_nothing_in_damaged_text(tmp_path: Path) -> None:
    program = tmp_path / "events"
    here = Path(__file__).with_name("events_main.c")
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compiler = [need_tool("cc"), "-g", "-O1", "-Wall", "-Wextra", "-Werror", *sanitizers]
    source = ["-I", str(ROOT / "collectors/torch"), str(here)]
    subprocess.run([*compiler, *source, "-o", str(program)], check=True)
    text = events_of_a_real_file()
    rng = random.Random(1)
    paths = []
    for number in range(600):
        damaged = text[: text.rindex(b"\n  }", 0, 30_000) + 4] if number else text
        for _ in range(number % 4):
            damaged = rng.choice(MUTATIONS)(damaged, rng)
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_bytes(damaged)
    done = subprocess.run([str(program), *map(str, paths)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    counts = list(map(int, done.stdout.split()))
    assert counts[0] > 100
    assert 100 < counts.count(-1) < 590


def tables(folder: Path) -> Iterator[tuple[str, list[Any]]]:
    """Everything in a trace, slices named by what they are instead of by their ids."""
    con = duckdb.connect()
    for path in folder.glob("*.parquet"):
        con.execute(f"CREATE VIEW {path.stem} AS FROM read_parquet('{path}')")
    yield (
        "slices",
        con.execute(
            "SELECT s.* EXCLUDE (slice, parent, launch), p.* EXCLUDE (slice, parent, launch), "
            "l.* EXCLUDE (slice, parent, launch) FROM slices s LEFT JOIN slices p ON s.parent = p.slice "
            "LEFT JOIN slices l ON s.launch = l.slice ORDER BY ALL"
        ).fetchall(),
    )
    named = "JOIN (SELECT slice, name, ts_ns, dur_ns, track FROM slices) s USING (slice)"
    for table in ("kernels", "copies", "collectives", "metrics"):
        yield table, con.execute(f"SELECT * EXCLUDE slice FROM {table} {named} ORDER BY ALL").fetchall()
    yield (
        "ops",
        con.execute(
            f"SELECT o.* EXCLUDE (slice, backward_of), s.* EXCLUDE slice, f.name, f.ts_ns FROM ops o {named} "
            "LEFT JOIN slices f ON f.slice = o.backward_of ORDER BY ALL"
        ).fetchall(),
    )
    for table in ("processes", "devices", "tracks", "counters", "issues"):
        yield table, con.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()


BY_NAME = sorted({*FILES, *MORE}, key=lambda name: name.rsplit("/")[-1])


@pytest.mark.parametrize("name", first(2, BY_NAME if THOROUGH else BY_NAME[::3]))
def test_the_trace_is_the_same_without_the_parser(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shared_data(name)
    refused: list[str] = []
    reading = Parser.read

    def read(self: Parser, *args: Any) -> tuple[int, int]:
        try:
            return reading(self, *args)
        except Refused as error:
            refused.append(str(error))
            raise

    monkeypatch.setattr(Parser, "read", read)
    normalize([path], tmp_path / "with")
    assert not refused
    monkeypatch.setenv("PROFRUN_COMPILED", "0")
    normalize([path], tmp_path / "without")
    assert dict(tables(tmp_path / "with")) == dict(tables(tmp_path / "without"))


@pytest.mark.thorough
def test_many_small_pieces_make_the_same_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shared_data("h200/torch/train.json.gz")
    normalize([path], tmp_path / "one")
    monkeypatch.setattr(reader_cut, "BLOCK", 5000)
    monkeypatch.setattr(reader_cut, "HEAD", 5000)
    normalize([path], tmp_path / "many")
    assert dict(tables(tmp_path / "one")) == dict(tables(tmp_path / "many"))
