"""steps.json of the ranks -> step_times: which process, which time, and what is damaged."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from profrun.collectors import step_times
from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from profrun.traces.writer import TraceWriter
from tests.conftest import SHARED, missing, unpack

EPOCH = 1_700_000_000_000_000_000
ANCHOR = {"realtime_ns": EPOCH, "monotonic_ns": 300, "boottime_ns": 400}
Rows = list[tuple[Any, ...]]


def step(number: int, ts: int, dur: int | None, **more: Any) -> dict[str, Any]:
    return {"step": number, "ts_ns": EPOCH + ts, "dur_ns": dur, "host_ns": 7, "window": "outside"} | more


def steps_file(folder: Path, rank: int, pid: int, steps: list[dict[str, Any]]) -> Path:
    path = folder / f"rank{rank}" / "steps.json"
    path.parent.mkdir(parents=True)
    head = {"format": 1, "rank": rank, "pid": pid, "host": f"h{rank}", "how": "optimizer"}
    path.write_text(json.dumps(head | {"clock": "cuda_event", "anchor": ANCHOR, "steps": steps}))
    return path


def added(
    out: Path, files: list[Path], processes: Rows, clock: str = "epoch", epoch: int | None = EPOCH - 1000
) -> tuple[Rows, list[tuple[str, int]], dict[int, str]]:
    """Rows of step_times, issues, and the hosts, for a trace of these processes."""
    with TraceWriter(out) as writer:
        writer.meta.update({"source": "synthetic", "collector": "torch", "clock": clock, "epoch_ns": epoch})
        writer.insert("processes", ("process", "pid", "rank", "rank_guessed"), processes)
        hosts = step_times.add_files(writer, files)
        writer.finish(check=True)
    with Trace(out) as trace:
        rows = trace.sql("FROM step_times ORDER BY process, step").rows
        return rows, trace.sql("SELECT code, count FROM issues ORDER BY code").rows, dict(hosts)


def test_two_ranks_on_the_axis_of_the_trace(tmp_path: Path) -> None:
    """What could not be measured is NULL, as is a time of 0; a step's own clock goes before the file's."""
    files = [
        steps_file(tmp_path, 0, 10, [step(0, 0, None, clock="wall"), step(1, 50, 40, window="active")]),
        steps_file(tmp_path, 1, 11, [step(0, 5, 0, host_ns=None)]),
    ]
    rows, issues, hosts = added(tmp_path / "t", files, [(0, 11, 1, False), (1, 10, 0, False)])
    assert rows == [
        (0, 0, 1005, None, None, "cuda_event", "outside"),
        (1, 0, 1000, None, 7, "wall", "outside"),
        (1, 1, 1050, 40, 7, "cuda_event", "active"),
    ]
    assert (issues, hosts) == ([], {1: "h0", 0: "h1"})


def test_hosts_of_processes_that_their_profiler_does_not_name(tmp_path: Path) -> None:
    """All processes of a stated rank run where the rank ran; a guessed rank, and a stated host, stay."""
    files = [steps_file(tmp_path, 0, 10, []), steps_file(tmp_path, 1, 11, [])]
    processes = [
        (0, 10, 0, False, None),
        (1, 99, 0, False, None),
        (2, 11, 1, False, "n9"),
        (3, 7, 1, True, None),
    ]
    with TraceWriter(tmp_path / "t") as writer:
        writer.meta.update({"source": "synthetic", "collector": "torch", "clock": "epoch", "epoch_ns": EPOCH})
        writer.insert("processes", ("process", "pid", "rank", "rank_guessed", "host"), processes)
        step_times.add_files(writer, files)
        writer.finish(check=True)
    with Trace(tmp_path / "t") as trace:
        found = trace.sql("SELECT host FROM processes ORDER BY process").rows
    assert [host for (host,) in found] == ["h0", "h0", "n9", None]


@pytest.mark.parametrize(
    ("processes", "owner"),
    [
        ([(0, 77, 0, False), (1, 10, 0, False)], 1),  # a launcher of the same rank, and the process itself
        ([(0, 77, 0, False), (1, 78, 1, False)], 0),  # pids of a container: the rank says it
        ([(0, 77, 0, True), (1, 10, 1, True)], 1),  # ranks are guessed: the pid says it
        ([(0, 77, 0, False), (1, 10, 1, False)], 0),  # ranks are stated: the pid is another container's
        ([(0, 77, 5, True)], 0),  # one process and one file
    ],
)
def test_the_process_of_a_rank(processes: Rows, owner: int, tmp_path: Path) -> None:
    rows, issues, _ = added(tmp_path / "t", [steps_file(tmp_path, 0, 10, [step(0, 0, 9)])], processes)
    assert ([row[0] for row in rows], issues) == ([owner], [])


@pytest.mark.parametrize(("clock", "begin"), [("boottime", 450), ("monotonic", 350)])
def test_a_trace_on_the_clock_of_the_host(clock: str, begin: int, tmp_path: Path) -> None:
    files = [steps_file(tmp_path, 0, 10, [step(0, 50, 9)])]
    rows, _, _ = added(tmp_path / "t", files, [(0, 10, 0, False)], clock, None)
    assert [row[2] for row in rows] == [begin]


def test_what_has_no_place_is_said(tmp_path: Path) -> None:
    one = steps_file(tmp_path / "a", 0, 10, [step(0, 0, 9), step(0, 1, 9), step(-1, 2, 9)])
    other = steps_file(tmp_path / "b", 3, 10, [step(0, 0, 9)])
    cut = tmp_path / "cut.json"
    cut.write_text(one.read_text()[:90])
    processes: Rows = [(0, 10, 0, False), (1, 11, 1, False)]
    rows, issues, _ = added(tmp_path / "t", [one, other, cut], processes)
    assert len(rows) == 1
    assert issues == [("step_time_damaged", 2), ("steps_unreadable", 1), ("steps_without_process", 1)]
    _, issues, _ = added(tmp_path / "u", [one], processes, "session", None)
    assert issues == [("steps_without_axis", 1)]


@pytest.mark.thorough
@pytest.mark.parametrize("run", ["hf", "dead", "ddp"])
@pytest.mark.parametrize("collector", ["torch", "nsys"])
def test_steps_of_real_recordings_begin_where_their_slices_do(
    run: str, collector: str, tmp_path: Path
) -> None:
    """Of each rank 5 steps were recorded on an H200; torch opens its range up to 0.32 ms before the hook."""
    packed = SHARED / "h200_runs" / f"{run}.tar.xz"
    if not packed.exists():
        missing(str(packed))
    with tarfile.open(packed) as file:
        wanted = [one for one in file.getmembers() if f"-{collector}-r1/raw/" in one.name]
        unpack(file, tmp_path, wanted)
    files = [path for path in tmp_path.rglob("rank*/*") if "steps" not in path.name]
    recorded = [path for path in files if "key_averages" not in path.name]
    normalize(recorded, tmp_path / "t", steps=sorted(tmp_path.rglob("steps.json")))
    with Trace(tmp_path / "t") as trace:
        apart = trace.sql(
            "SELECT s.ts_ns - e.ts_ns FROM slices s JOIN tracks t USING (track) JOIN step_times e ON "
            "e.process = t.process AND s.name IN ('profrun.step#' || e.step, 'ProfilerStep#' || e.step) "
            "WHERE s.kind = 'step' AND e.part = 'active'"
        ).rows
        assert len(apart) == (10 if run == "ddp" else 5)
        assert max(abs(by) for (by,) in apart) < 1_000_000
        (ranks,) = trace.sql("SELECT count(DISTINCT process) FROM step_times").rows[0]
        assert ranks == (2 if run == "ddp" else 1)
