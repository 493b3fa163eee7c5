"""steps.json -> trace: a small one by hand with its expected table, and what must be refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profrun.collectors.none.reader import READERS
from profrun.collectors.normalize import normalize
from profrun.errors import InputError
from profrun.traces.trace import Trace

GPU = {"vendor": "nvidia", "ordinal": 0, "name": "Test GPU", "arch": "sm_90", "sm_count": 4}
ANCHOR = {"realtime_ns": 1, "monotonic_ns": 2, "boottime_ns": 3}


def steps_file(path: Path, rank: int, steps: list[tuple[int, int]], **more: Any) -> Path:
    rows = [
        {"step": number, "ts_ns": ts, "dur_ns": dur, "window": "wait"}
        for number, (ts, dur) in enumerate(steps)
    ]
    value = {
        "format": 1,
        "rank": rank,
        "pid": 10 + rank,
        "host": "h",
        "how": "optimizer",
        "clock": "cuda_event",
    }
    value |= {
        "collector": "none",
        "blocking": True,
        "device": GPU,
        "anchor": ANCHOR,
        "work": {},
        "steps": rows,
    }
    path.write_text(json.dumps(value | more))
    return path


def test_two_ranks_on_one_axis_and_no_overlap_behind_a_host_that_runs_ahead(tmp_path: Path) -> None:
    epoch = 1_700_000_000_000_000_000
    files = [
        steps_file(tmp_path / "b.json", 1, [(epoch + 5, 10)]),
        steps_file(tmp_path / "a.json", 0, [(epoch, 100), (epoch + 40, 50), (epoch + 400, 7)]),
    ]
    result = normalize(files, tmp_path / "trace")
    assert (result.source, result.vendor, result.counts["steps"]) == ("steps", "nvidia", 4)
    with Trace(tmp_path / "trace") as trace:
        trace.check()
        rows = trace.sql(
            "SELECT p.rank, s.name, s.ts_ns, s.dur_ns FROM slices s JOIN tracks t USING (track) "
            "JOIN processes p USING (process) ORDER BY ALL"
        ).rows
        assert rows == [
            (0, "profrun.step#0", 0, 100),
            (0, "profrun.step#1", 100, 50),
            (0, "profrun.step#2", 400, 7),
            (1, "profrun.step#0", 5, 10),
        ]
        assert trace.sql("SELECT code, count FROM issues").rows == [("step_start_moved", 1)]
        assert trace.meta["epoch_ns"] == epoch
        assert trace.meta["launch_blocking"] is True
        assert trace.sql("SELECT sm_count, arch, uuid FROM devices").rows == [(4, "sm_90", None)] * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "steps format 2"),
        ({"clock": "sundial"}, "clock is 'sundial'"),
        ({"device": {"vendor": "nvia", "ordinal": 0, "name": "x"}}, "vendor is 'nvia'"),
    ],
)
def test_what_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = steps_file(tmp_path / "s.json", 0, [(0, 1)], **change)
    with pytest.raises(InputError, match=message):
        normalize([path], tmp_path / "trace")
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("odd", [(5, -(2**63)), (5, 2**62), (-1, 5), (2**62, 5)])
def test_steps_beyond_all_time_are_damage(tmp_path: Path, odd: tuple[int, int]) -> None:
    path = steps_file(tmp_path / "s.json", 0, [(0, 1), odd])
    with pytest.raises(InputError, match="step 1 begins at"):
        normalize([path], tmp_path / "trace")


def test_a_cut_file_is_bad_input_and_others_are_not_ours(tmp_path: Path) -> None:
    from profrun.collectors.sniff import make_source

    path = steps_file(tmp_path / "s.json", 0, [(0, 1)])
    assert READERS[0].accepts(make_source(path))
    path.write_text(path.read_text()[:-10])
    with pytest.raises(InputError, match=r"no whole steps\.json"):
        normalize([path], tmp_path / "trace")
    other = tmp_path / "other.json"
    other.write_text('{"traceEvents": []}')
    assert not READERS[0].accepts(make_source(other))


def test_a_run_without_steps_is_one_step_of_that_name(tmp_path: Path) -> None:
    out = tmp_path / "t"
    normalize([steps_file(tmp_path / "s.json", 0, [(1_000, 70)], how="run")], out)
    with Trace(out) as trace:
        assert trace.sql("SELECT step, name, dur_ns FROM steps").rows == [(0, "profrun.run", 70)]
