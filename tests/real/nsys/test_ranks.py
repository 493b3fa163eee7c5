"""Several ranks under a real nsys: one report of torchrun's, one a rank where each has a wrapper."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.in_job.kit import Done, Trial
from tests.real.nsys.kit import nsys

pytestmark = pytest.mark.nsys

STEPS = """
import os, sys, time
import profrun
for step in range(int(sys.argv[1])):
    with profrun.range(f"rank {os.environ['RANK']}"):
        time.sleep(0.003)
    profrun.step()
    if step == 50:
        print("on", os.environ["RANK"], flush=True)
"""
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "job.py"]
PER_RANK = (
    "SELECT p.rank, regexp_replace(s.name, '.*#.*', 'step') AS what, count(*) FROM slices s "
    "JOIN tracks USING (track) JOIN processes p USING (process) "
    "WHERE s.kind = 'step' OR s.name LIKE 'rank %' GROUP BY ALL ORDER BY ALL"
)
"""Which rank saw how many steps and how many of its program's own ranges, which hold their rank's name."""
SIX_EACH = [(0, "rank 0", 6), (0, "step", 6), (1, "rank 1", 6), (1, "step", 6)]


def environ() -> dict[str, str]:
    return {"PROFRUN_NSYS": nsys(), "OMP_NUM_THREADS": "1"}


def reports(done: Done) -> list[str]:
    return sorted(path.parent.name for path in done.folder.glob("raw/*/*.nsys-rep"))


def trace_of(done: Done, out: Path) -> Trace:
    files = [done.folder / row["path"] for row in done.exit["artefacts"] if row["path"].endswith(".sqlite")]
    normalize(files, out)
    return Trace(out)


def test_torchruns_ranks_are_in_one_report(tmp_path: Path) -> None:
    done = Trial(tmp_path, [*TORCHRUN, "6"], STEPS, collector="nsys").run(environ())
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert reports(done) == ["rank0"]
    assert "mporter" not in str(done.exit["warnings"])  # nsys 2024.2 speaks of one, and the report is there
    with trace_of(done, tmp_path / "t") as trace:
        rows = trace.sql(PER_RANK).rows
        assert "rank-guessed" not in str(trace.sql("SELECT code FROM issues").rows)
    assert rows == SIX_EACH


def test_torchrun_ended_by_its_time_limit_keeps_all_ranks(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [*TORCHRUN, "1000000"], STEPS, collector="nsys", timeout_s=45.0, grace_s=60.0)
    done = trial.run(environ())
    told = (done.log(), done.log("stderr"), done.exit["reason"], done.exit["warnings"], done.exit["seconds"])
    assert {"on 0", "on 1"} <= set(done.log().splitlines()), told
    assert done.exit["state"] == "timeout"
    assert reports(done) == ["rank0"]
    assert {row["state"] for row in done.exit["artefacts"]} == {"whole"}
    with trace_of(done, tmp_path / "t") as trace:
        rows = trace.sql(PER_RANK).rows
    assert [row[:2] for row in rows] == [row[:2] for row in SIX_EACH]
    assert min(count for _, _, count in rows) > 50


def test_ranks_with_a_wrapper_each_leave_a_report_each_and_become_one_trace(tmp_path: Path) -> None:
    """As srun starts them. Each step lies where its own hook saw it, so the ranks are on one clock."""
    trial = Trial(tmp_path, [sys.executable, "job.py", "6"], STEPS, collector="nsys", ranks=2)
    slurm = {"SLURM_NTASKS": "2", "SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "n[1-2]"} | environ()
    started = [trial.start(slurm | {"SLURM_PROCID": rank, "SLURM_LOCALID": rank}) for rank in ("0", "1")]
    (done, _) = [trial.finish(process) for process in started]
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert reports(done) == ["rank0", "rank1"]
    with trace_of(done, tmp_path / "t") as trace:
        rows = trace.sql(PER_RANK).rows
        seen = trace.sql(
            "SELECT p.rank, s.name, s.ts_ns FROM slices s JOIN tracks USING (track) "
            "JOIN processes p USING (process) WHERE s.kind = 'step'"
        ).rows
        epoch = trace.meta["epoch_ns"]
    assert rows == SIX_EACH
    told = {
        (rank, f"profrun.step#{step['step']}"): step["ts_ns"]
        for rank in (0, 1)
        for step in json.loads((done.folder / f"raw/rank{rank}/steps.json").read_text())["steps"]
    }
    apart = [abs(epoch + ts - told[rank, name]) for rank, name, ts in seen]
    assert len(apart) == 12
    assert max(apart) < 50_000_000  # ns; far below the 100 ms and more by which two sessions begin apart
