"""The writer refuses what the check of the folder refuses, and keeps orders and names."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.errors import InputError
from profrun.traces.trace import Trace
from profrun.traces.writer import TraceWriter
from tests.conftest import first
from tests.tracekit import make_trace
from tests.traces.sound import SIDE, SLICES


def test_a_trace_is_written_opened_and_checked(tmp_path: Path) -> None:
    trace = make_trace(
        tmp_path / "t",
        [("api", "cudaLaunchKernel", 0, 2, "main"), ("kernel", "gemm", 10, 5, "stream 7", {"launch": 0})],
    )
    trace.check()
    assert trace.sql("SELECT name, device, stream, dur_ns FROM gpu_slices").rows == [("gemm", 0, 7, 5)]


@pytest.mark.parametrize(
    "change",
    first(
        4,
        [
            "UPDATE slices SET parent = 3 WHERE slice = 2",
            "UPDATE slices SET launch = 1 WHERE slice = 2",
            "UPDATE slices SET name = '' WHERE slice = 4",
            "UPDATE slices SET slice = 9 WHERE slice = 4",
            "DELETE FROM kernels WHERE slice = 6",
            "UPDATE copies SET direction = 'DtoH' WHERE slice = 5",
            "UPDATE slices SET depth = NULL WHERE slice = 1",
            "UPDATE tracks SET device = NULL WHERE kind = 'stream'",
            "ALTER TABLE slices ALTER track TYPE BIGINT",
        ],
    ),
)
def test_the_writer_refuses_what_the_check_of_the_folder_refuses(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its own check the writer writes the folder and Trace.check() refuses it; with it, nothing."""
    plain = TraceWriter.finish

    def changed(self: TraceWriter, *, check: bool = False) -> Path:
        self.con.execute(change)
        return plain(self, check=bool(ask))

    monkeypatch.setattr(TraceWriter, "finish", changed)
    ask: list[bool] = []
    # A column of another type is refused when the trace is opened.
    with pytest.raises(InputError) as refused, make_trace(tmp_path / "a", SLICES, side=SIDE) as trace:
        trace.check()
    ask.append(True)
    with pytest.raises(InputError, match="cannot become a trace") as raised:
        make_trace(tmp_path / "b", SLICES, side=SIDE)
    assert (raised.value.why or "?") in str(refused.value)
    assert not (tmp_path / "b").exists()


def test_the_writer_asks_the_files_and_not_what_was_staged(tmp_path: Path) -> None:
    """A delivered query may say anything: what counts is what stands in the file."""
    with TraceWriter(tmp_path / "t") as writer:
        writer.meta.update({"source": "synthetic", "collector": "torch"})
        writer.insert("processes", ("process", "pid", "rank"), [(0, 1, 0)])
        writer.deliver(
            "processes", "SELECT * REPLACE (process + random()::INTEGER + 1 AS process) FROM processes"
        )
        with pytest.raises(InputError, match="ids of processes run from"):
            writer.finish(check=True)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("begin", first(1, [True, False]))
def test_delivered_names_keep_the_order_and_any_number(tmp_path: Path, begin: bool) -> None:
    for few, count in (("few", 40), ("many", 20_000)):
        with TraceWriter(tmp_path / few) as writer:
            writer.meta.update({"source": "synthetic", "collector": "torch"})
            writer.insert("processes", ("process", "pid", "rank"), [(0, 1, 0)])
            writer.insert("tracks", ("track", "kind", "process"), [(0, "thread", 0)])
            writer.con.execute(
                "CREATE TABLE texts AS SELECT i AS label, 'name ' || (i % 9999) AS name "
                f"FROM range({count}) t(i)"
            )
            name = writer.names("texts", f"(i % {count})")
            writer.deliver(
                "slices",
                f"SELECT i AS slice, 'range' AS kind, {name} AS name, i AS ts_ns, 0::BIGINT AS dur_ns, "
                "0 AS track, NULL::BIGINT AS parent, 0 AS depth, NULL::BIGINT AS correlation, "
                "NULL::BIGINT AS launch FROM range(400000) t(i)",
                begin=begin,
            )
            writer.finish(check=True)
        with Trace(tmp_path / few) as trace:
            trace.check()
            wrong = trace.sql(
                f"SELECT count(*) FROM (SELECT *, row_number() OVER () - 1 AS row FROM slices) "
                f"WHERE slice <> row OR name <> 'name ' || (slice % {count} % 9999)"
            ).scalar()
            assert wrong == 0


@pytest.mark.parametrize("kinds", [("thread", "stream", "stream", "thread"), ("thread", "stream") * 40])
def test_rows_of_threads_and_others_come_in_the_order_of_tracks(
    tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    with TraceWriter(tmp_path / "t") as writer:
        for track, kind in enumerate(kinds):
            writer.insert("tracks", ("track", "kind", "process"), [(track, kind, 0)])
        for name, thread in (("calls", True), ("others", False)):
            tracks = [track for track, kind in enumerate(kinds) if (kind == "thread") is thread]
            writer.con.execute(
                f"CREATE TABLE {name} AS SELECT track, ts FROM (SELECT unnest({tracks}) AS track), "
                "range(1000) t(ts) ORDER BY track, ts"
            )
        query = writer.by_track("SELECT track, ts FROM calls", "SELECT track, ts FROM others", "track, ts")
        found = writer.con.execute(query).fetchall()
    assert found == [(track, ts) for track in range(len(kinds)) for ts in range(1000)]


@pytest.mark.parametrize(
    ("example", "kept"), [("", None), (" \n", None), ("a\ud800b", "a\ufffdb"), ("x", "x"), (None, None)]
)
def test_an_example_is_text_that_utf8_holds(example: str | None, kept: str | None, tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t") as writer:
        writer.meta.update({"source": "synthetic", "collector": "torch"})
        writer.issue("odd", 1, "an odd event", example)
        writer.finish(check=True)
    with Trace(tmp_path / "t") as trace:
        assert trace.sql("SELECT example FROM issues").scalar() == kept


def test_clocks_are_judged_only_when_asked_for(tmp_path: Path) -> None:
    assert "clocks" not in make_trace(tmp_path / "t", [("op", "aten::mm", 0, 2, "main")]).meta


def test_moved_slices_keep_the_order_of_their_tracks(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t") as writer:
        fill(writer, [(0, 9_000_001, 9_100_001), (1, 50_001, 60_001)])
        writer.finish(check=True, clocks="repair")
    trace = Trace(tmp_path / "t")
    (clock,) = trace.meta["clocks"]
    assert clock["verdict"] == "offset"
    moved = clock["moved_ns"]
    rows = trace.sql("SELECT slice, ts_ns, dur_ns FROM slices WHERE kind = 'kernel'").rows
    assert rows == [(3, 50_001 + moved, 10_000), (2, 9_000_001 + moved, 100_000)]


def fill(writer: TraceWriter, kernels: list[tuple[int, int, int]]) -> None:
    """Two launches at 9 ms, and kernels: (launch, start, end) in ns."""
    writer.meta.update({"source": "synthetic", "collector": "torch", "vendor": "nvidia"})
    writer.insert("processes", ("process", "pid", "rank"), [(0, 100, 0)])
    writer.insert(
        "devices", ("device", "process", "vendor", "ordinal", "name"), [(0, 0, "nvidia", 0, "Test GPU")]
    )
    writer.insert(
        "tracks", ("track", "kind", "process", "device"), [(0, "thread", 0, None), (1, "stream", 0, 0)]
    )
    columns = ("slice", "kind", "name", "ts_ns", "dur_ns", "track", "depth", "launch")
    calls = [(n, "api", "cudaLaunchKernel", 9_000_000 + n * 5000, 2000, 0, 0, None) for n in range(2)]
    work = [(2 + n, "kernel", "k", a, b - a, 1, None, call) for n, (call, a, b) in enumerate(kernels)]
    writer.insert("slices", columns, [*calls, *work])
    writer.insert("kernels", ("slice",), [(2 + n,) for n in range(len(kernels))])


def test_a_lone_surrogate_becomes_a_replacement_character_and_an_issue(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t") as writer:
        rows = [(0, 1, 0, "a\ud800b"), (1, 2, 1, "fine")]
        writer.insert("processes", ("process", "pid", "rank", "name"), rows)
        names = writer.con.execute("SELECT name FROM processes ORDER BY process").fetchall()
        issues = writer.con.execute("SELECT code, count FROM issues").fetchall()
    assert names == [("a\ufffdb",), ("fine",)]
    assert issues == [("odd_text", 1)]


def test_a_value_that_fits_no_column_is_one_short_line(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="fits no column of the table processes") as caught,
        TraceWriter(tmp_path / "t") as writer,
    ):
        writer.insert("processes", ("process", "pid", "rank"), [(0, 10**30, 0)])
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError) as caught, TraceWriter(tmp_path / "t") as writer:
        writer.insert("processes", ("process", "pid", "rank"), [(0, "x" * 100_000, 0)])
    assert len(str(caught.value)) < 2000


def test_an_example_of_an_issue_is_short(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t") as writer:
        writer.issue("code", 1, "message", "x" * 100_000)
        (length,) = writer.con.execute("SELECT length(example) FROM issues").fetchone() or (0,)
    assert length == 300


def test_a_large_recording_gets_memory_by_its_rows(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t") as writer:
        limit = "SELECT current_setting('memory_limit')"
        few = writer.con.execute(limit).fetchone()
        writer.room_for(4_000_000)
        assert writer.con.execute(limit).fetchone() == few == ("286.1 MiB",)
        writer.room_for(10_000_000)
        assert writer.con.execute(limit).fetchone() == ("972.7 MiB",)  # 300 MB and 120 B for 6 million rows
