"""Programs in which no step is seen, in real trials with CPU torch: the run is one step."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from profrun.collectors.normalize import normalize
from profrun.contract.command import Ranges, StepsFrom
from profrun.contract.steps import RUN_RANGE
from profrun.in_job import whole_run
from profrun.in_job.config import HookConfig
from profrun.in_job.hook_process import HookProcess
from profrun.in_job.ranges import Ranges as EmittedRanges
from profrun.in_job.whole_run import WholeRun
from profrun.in_job.window import WindowDriver
from profrun.traces.trace import Trace
from tests.conftest import first
from tests.in_job.kit import Done, Trial, python
from tests.in_job.test_session import inside, trace_of

ENV = {"OMP_NUM_THREADS": "1"}
OFF = {"modules": None, "steps": "off"}
LOOP = """
import torch
a, b = torch.randn(64, 64), torch.randn(64, 64)
for _ in range(200): c = torch.add(torch.matmul(a, b), b)
"""
CHUNKS = """
import time, torch
a = torch.randn(4, 4)
for chunk in range(COUNT):
    began = time.monotonic()
    while time.monotonic() - began < 0.05:
        torch.add(a, a)
    print("chunk", chunk, flush=True)
"""


class Clock:
    """A host clock that a test moves, ns."""

    def __init__(self) -> None:
        self.now = 10**18

    def perf_counter_ns(self) -> int:
        return self.now


class SlowProfiler(WindowDriver):
    """Takes 3 s to start, and 1 s to write at a limit."""

    clock: Clock

    def record_everything(self) -> None:
        self.clock.now += 3 * 10**9
        self.recording = True

    def finish(self) -> None:
        self.clock.now += 10**9


@pytest.mark.parametrize("collector", ["none", "torch"])
def test_a_run_lasts_equally_long_with_and_without_a_profiler_and_its_start_is_kept(
    monkeypatch: pytest.MonkeyPatch, collector: str
) -> None:
    """The program works 2 s before and 4 s after its only op; the profiler starts, and writes at a limit."""
    clock = Clock()
    monkeypatch.setattr(whole_run, "time", clock)
    steps: StepsFrom = "off" if collector == "torch" else "auto"
    process = HookProcess(HookConfig(folder="/t", collector=collector, ranges=Ranges(steps=steps)))
    window = SlowProfiler(process.config, process.schedule, None, lambda _: None, process.warn)
    window.clock = clock
    run = WholeRun(process, window, EmittedRanges(process), lambda: None)
    run.begin()
    clock.now += 2 * 10**9
    if collector == "torch":
        assert run.cut("max_seconds")
    clock.now += 4 * 10**9
    run.end()
    assert run.dur_ns == 6 * 10**9
    assert run.start_ns == (3 * 10**9 if collector == "torch" else 0)


def codes(done: Done) -> list[str]:
    return [row["code"] for row in done.exit["warnings"] if row["code"] not in ("recording-note", "no-gpu")]


@pytest.mark.thorough
def test_a_bare_loop_after_a_trial_that_saw_no_step_is_recorded_from_the_start(tmp_path: Path) -> None:
    none = Trial(tmp_path, [sys.executable, "job.py"], LOOP).run(ENV)
    assert (none.exit["steps"], codes(none)) == ({"how": "run", "count": 1}, ["no-steps"])
    (run,) = none.steps()["steps"]
    assert (run["step"], run["window"]) == (0, "active")
    assert none.steps()["profiler_start_ns"] == 0, "nothing starts"
    assert 1e5 < run["dur_ns"] < 1e9 * none.exit["seconds"]["app"] / 2, (
        "importing torch is no part of the run"
    )
    other = Trial(tmp_path, [sys.executable, "job.py"], collector="torch", variant="b").run(ENV)
    assert codes(other) == ["second-run"], "another variant may have steps"
    torch = Trial(tmp_path, [sys.executable, "job.py"], collector="torch").run(ENV)
    assert (torch.exit["state"], torch.exit["steps"]) == ("finished", {"how": "run", "count": 1})
    assert codes(torch) == ["no-steps-before"]
    assert "trial 000-a saw no step" in torch.warnings[0]
    for done in (torch, other):
        events = trace_of(done)
        names = Counter(event["name"] for event in events)
        assert (names["aten::matmul"], names["aten::add"], names[RUN_RANGE]) == (200, 200, 1)
        assert not [name for name in names if name.startswith("ProfilerStep")]
        assert inside(events, "aten::add", RUN_RANGE)
        (whole,) = (event for event in events if event["name"] == RUN_RANGE)
        (run,) = done.steps()["steps"]
        assert 0 < run["dur_ns"] <= 1e3 * whole["dur"], "the range is round the run"
        assert done.steps()["profiler_start_ns"] > 1e7, "torch.profiler imports what it needs"
    (recorded,) = (torch.folder / "raw/rank0").glob("*.pt.trace.json.gz")
    normalize([recorded], tmp_path / "trace")
    with Trace(tmp_path / "trace") as trace:
        assert trace.sql("SELECT name FROM slices WHERE kind = 'step'").rows == [(RUN_RANGE,)]


SCRIPTS = {
    "one forward": "import torch; m = torch.nn.Linear(4, 4); m(torch.randn(2, 4))",
    "one op": "import torch; torch.randn(8, 8) @ torch.randn(8, 8)",
}


@pytest.mark.parametrize("script", first(0, SCRIPTS.values()))
def test_a_script_that_does_one_thing_is_recorded_in_a_second_run(tmp_path: Path, script: str) -> None:
    """Nothing is repeated, so there is no step, and the schedule's window never opens."""
    done = Trial(tmp_path, python(script, "print('done')"), collector="torch").run(ENV)
    assert (done.exit["state"], codes(done)) == ("finished", ["second-run"])
    assert done.log() == "done\ndone\n"
    assert any(event["name"] in ("aten::linear", "aten::matmul") for event in trace_of(done))
    assert len(done.provenance["processes"]) == 1


def test_a_profiler_inside_torch_says_that_the_program_never_imports_torch(tmp_path: Path) -> None:
    done = Trial(tmp_path, python("print('once')"), collector="torch").run()
    assert (done.exit["state"], done.exit["code"]) == ("failed", "torch-not-imported")
    assert done.log() == "once\n", "a second run would record nothing either"


@pytest.mark.thorough
def test_the_run_is_that_of_the_process_that_did_the_work(tmp_path: Path) -> None:
    """Not of a helper, a forked child, a DataLoader worker, or a shorter one of two."""
    script = """
import multiprocessing, os, subprocess, sys, torch
if __name__ == "__main__":
    subprocess.run([sys.executable, "-c", "print('helper')"], check=True)
    subprocess.run([sys.executable, "-c", "import torch; torch.randn(4)"], check=True)
    if os.fork() == 0:
        sys.exit()
    os.wait()
    data = torch.utils.data.DataLoader(range(1), num_workers=1, multiprocessing_context="spawn")
    list(data)
    x = torch.randn(400, 400)
    for _ in range(100): x = torch.tanh(x @ x)
    print("pid", os.getpid())
"""
    done = Trial(tmp_path, [sys.executable, "job.py"], script).run(ENV)
    assert done.exit["steps"] == {"how": "run", "count": 1}
    assert f"pid {done.steps()['pid']}\n" in done.log()
    roles = Counter(row["role"] for row in done.provenance["processes"])
    assert roles["dataloader worker"] == roles["forked child"] == 1


@pytest.mark.thorough
def test_each_rank_of_a_launcher_has_a_run_and_the_launcher_none(tmp_path: Path) -> None:
    script = "import torch, torch.distributed as dist; dist.init_process_group('gloo'); dist.barrier()"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "job.py"]
    done = Trial(tmp_path, command, script, collector="torch", ranges=OFF, ranks=2).run(ENV)
    assert done.exit["state"] == "finished", done.exit["reason"]
    pids = {done.steps(rank)["pid"] for rank in (0, 1)}
    roles = {row["pid"]: row["role"] for row in done.provenance["processes"]}
    assert "launcher" not in {roles[pid] for pid in pids}
    assert "launcher" in roles.values()
    for rank in (0, 1):
        assert RUN_RANGE in {event["name"] for event in trace_of(done, rank)}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("limits", "limit"),
    [({"max_seconds": 0.5}, "max_seconds"), ({"max_size": 32 << 20}, "max_size")],
)
def test_a_limit_ends_the_recording_and_the_program_goes_on(
    tmp_path: Path, limits: dict[str, float], limit: str
) -> None:
    schedule = {"max_seconds": 60.0, "max_size": 2 << 30, **limits}
    script = CHUNKS.replace("COUNT", "30")
    done = Trial(
        tmp_path, [sys.executable, "job.py"], script, collector="torch", ranges=OFF, schedule=schedule
    ).run(ENV)
    assert (done.exit["state"], codes(done)) == ("finished", ["recording-cut"])
    assert f"schedule.{limit} is " in done.warnings[-1]
    assert "of the run were recorded" in done.warnings[-1]
    (whole,) = (event for event in trace_of(done) if event["name"] == RUN_RANGE)
    (run,) = done.steps()["steps"]
    assert whole["dur"] * 1e3 < run["dur_ns"], "the time of the run is that of all of it"
    assert run["dur_ns"] > 1.4e9, "the last chunks come after the recording"
    if limit == "max_seconds":
        assert whole["dur"] >= 0.5e6


@pytest.mark.thorough
def test_what_was_recorded_until_a_signal_is_kept(tmp_path: Path) -> None:
    script = CHUNKS.replace("COUNT", "5000")
    trial = Trial(tmp_path, [sys.executable, "job.py"], script, collector="torch", ranges=OFF)
    process = trial.start(ENV)
    trial.wait_for("chunk 5")
    process.send_signal(signal.SIGTERM)
    done = trial.finish(process)
    assert done.exit["state"] == "timeout"
    assert "recorded data was kept" in done.exit["reason"]
    assert inside(trace_of(done), "aten::add", RUN_RANGE)
    assert not (done.folder / "raw/rank0/steps.json").exists(), (
        "the time of half a run is not that of the run"
    )
