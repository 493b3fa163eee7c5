"""A whole trial without an AMD GPU: the real bundle, wrapper and hook, a strict stand-in for rocprofv3.

Shown: our flags are known to the release, the window is opened and closed round the right steps, files are
found where rocprofv3 puts them, and the trace of the trial equals the recording. Not shown: a GPU.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from profrun.in_job.outcome import PROFILER_DIED
from profrun.in_job.proctree import descendants
from profrun.traces.trace import Trace
from tests.collectors.rocprof.kit import totals, trace_of
from tests.conftest import ROOT, first, need_tool, shared_data
from tests.in_job.kit import Trial

STANDINS = ROOT / "tests" / "standins"
RECORDING = "amd/rocpd-batched-gemm-mi300x/ck_bmm/37ca13315e70/28_results.db"
STEPS = """
import profrun

for n in range(6):
    print("step", n, flush=True)
    profrun.step()
"""


class AmdTrial(Trial):
    """A trial with the stand-ins on its PATH; ``vendor: amd`` is stated, because there is no /dev/kfd."""

    def start(self, env: Mapping[str, str] | None = None, **popen: Any) -> subprocess.Popen[str]:
        """Start the wrapper as backends do."""
        return super().start({"PATH": f"{STANDINS}:{os.environ['PATH']}", **(env or {})}, **popen)


@pytest.fixture(scope="session")
def roctx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that stands for /opt/rocm, with a ROCTX library that logs its calls."""
    root = tmp_path_factory.mktemp("rocm")
    (root / "lib").mkdir()
    library = root / "lib" / "librocprofiler-sdk-roctx.so"
    build = [need_tool("cc"), "-shared", "-fPIC", "-o", str(library), str(STANDINS / "roctx.c")]
    subprocess.run(build, check=True, capture_output=True)
    return root


def _environment(tmp_path: Path, roctx: Path, release: str = "7.1", **more: str) -> dict[str, str]:
    return {
        "PROFRUN_STANDIN_ROCM": release,
        "PROFRUN_STANDIN_ROCPD": str(shared_data(RECORDING)),
        "PROFRUN_STANDIN_LOG": str(tmp_path / "commands"),
        "PROFRUN_STANDIN_ROCTX_LOG": str(tmp_path / "roctx"),
        "ROCM_PATH": str(roctx),
        **more,
    }


def _trial(tmp_path: Path, script: str = STEPS, **command: Any) -> AmdTrial:
    return AmdTrial(
        tmp_path, [sys.executable, "job.py"], script, collector="rocprof", vendor="amd", **command
    )


def _commands(tmp_path: Path) -> list[list[str]]:
    return [json.loads(line) for line in (tmp_path / "commands").read_text().splitlines()]


def test_a_trial_from_command_to_trace(tmp_path: Path, roctx: Path) -> None:
    done = _trial(tmp_path).run(_environment(tmp_path, roctx))
    assert done.code == 0, done.stderr
    assert done.exit["state"] == "finished"
    assert (done.exit["tool"], done.exit["tool_version"]) == ("rocprofv3", "7.1.1")
    (database,) = (done.folder / "raw" / "rank0").rglob("*.db")
    assert database.parent.name == socket.gethostname()
    assert database.name.split("_")[0].isdigit()

    with sqlite3.connect(f"file:{shared_data(RECORDING)}?mode=ro&immutable=1", uri=True) as con:
        kernels = con.execute("SELECT count(*), sum(duration) FROM kernels").fetchone()
        calls = con.execute("SELECT count(*), sum(duration) FROM regions").fetchone()
    con.close()
    assert totals(trace_of(database, tmp_path / "t")) == {"kernel": kernels, "api": calls}

    (command,) = _commands(tmp_path)
    assert command[command.index("--output-format") + 1] == "rocpd"
    assert {"--selected-regions", "--marker-trace", "--kernel-trace"} <= set(command)


def test_the_window_is_opened_round_the_active_steps(tmp_path: Path, roctx: Path) -> None:
    """Schedule 1 wait, 1 warmup, 2 active: recording is on for steps 2 and 3, which have ranges."""
    done = _trial(tmp_path).run(_environment(tmp_path, roctx))
    lines = (tmp_path / "roctx").read_text().splitlines()
    inside = lines[lines.index("resume") : lines.index("pause") + 1]
    assert lines.count("resume") == lines.count("pause") == 1
    assert [line for line in inside if line.startswith("push")] == [
        "push profrun.step#2",
        "push profrun.step#3",
    ]
    assert sum(line == "pop" for line in inside) == 2
    assert done.exit["ranges_emitted"] == 2


WHOLE = """
import os, time
import profrun
import cupy

def is_over():
    return {pauses} <= open(os.environ["PROFRUN_STANDIN_ROCTX_LOG"]).read().count("pause")

with profrun.range("work"):
    pass
while not is_over():
    time.sleep(0.01)
with profrun.range("work"):
    print("the program went on")
"""


def _whole(tmp_path: Path, pauses: int, **schedule: Any) -> AmdTrial:
    ranges = {"modules": 0, "steps": "off"}
    trial = _trial(tmp_path, WHOLE.format(pauses=pauses), ranges=ranges, schedule=schedule)
    (trial.work / "cupy.py").touch()
    return trial


def test_a_run_without_steps_is_one_range(tmp_path: Path, roctx: Path) -> None:
    done = _whole(tmp_path, 0).run(_environment(tmp_path, roctx))
    assert done.exit["state"] == "finished", done.exit["reason"]
    (command,) = _commands(tmp_path)
    assert "--selected-regions" not in command
    assert (tmp_path / "roctx").read_text().splitlines() == [
        "resume",
        "push profrun.run",
        *["push work", "pop"] * 2,
        "pop",
        "pause",
    ]


@pytest.mark.thorough
def test_where_nothing_resumed_it_the_program_runs_again_as_a_whole(tmp_path: Path, roctx: Path) -> None:
    """rocprofv3 leaves files either way: that the first run recorded nothing is known from the steps."""
    done = _trial(tmp_path, "print('one thing')").run(_environment(tmp_path, roctx))
    assert done.exit["state"] == "finished", done.exit["reason"]
    assert ["--selected-regions" in command for command in _commands(tmp_path)] == [True, False]
    assert "second-run" in [row["code"] for row in done.exit["warnings"]]
    assert len(list((done.folder / "raw/rank0").rglob("*.db"))) == 1


def test_at_a_limit_the_run_is_paused_and_the_program_goes_on(tmp_path: Path, roctx: Path) -> None:
    done = _whole(tmp_path, 1, max_seconds=0.5).run(_environment(tmp_path, roctx))
    assert done.log() == "the program went on\n"
    lines = (tmp_path / "roctx").read_text().splitlines()
    assert lines == ["resume", "push profrun.run", "push work", "pop", "pop", "pause"]
    assert [row["code"] for row in done.exit["warnings"]].count("recording-cut") == 1


@pytest.mark.parametrize("release", first(2, ["6.2", "7.2", "6.3", "6.4", "7.0"]))
def test_every_release_takes_its_command(release: str, tmp_path: Path, roctx: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    sample = shared_data("amd/rocprofv3-docs-samples-rocm6_3/kernel_trace.csv")
    (files / "kernel_trace.csv").write_bytes(sample.read_bytes())
    # before ROCm 7.0 rocprofv3 has no --version: the release is in the .info folder of the installation
    home = tmp_path / "rocm"
    (home / "bin").mkdir(parents=True)
    (home / ".info").mkdir()
    (home / ".info" / "version").write_text(f"{release}.0-1\n")
    for name in ("rocprofv3", "rocprofv3.py"):
        shutil.copy(STANDINS / name, home / "bin" / name)
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    environment = _environment(tmp_path, roctx, release, PROFRUN_STANDIN_FILES=str(files), PATH=path)
    done = _trial(tmp_path).run(environment)
    assert done.code == 0, json.dumps(done.exit)
    assert done.exit["tool_version"].startswith(release)
    found = {path.suffix for path in (done.folder / "raw" / "rank0").rglob("*_*.*")}
    assert (".db" if release >= "7" else ".csv") in found


@pytest.mark.thorough
def test_counter_groups_run_the_command_once_each(tmp_path: Path, roctx: Path) -> None:
    options = {"pmc": [["SQ_WAVES"], ["TCC_HIT_sum", "TCC_MISS_sum"]]}
    done = _trial(tmp_path, options=options).run(_environment(tmp_path, roctx))
    assert done.code == 0, json.dumps(done.exit)
    groups = [command[command.index("--pmc") + 1 :] for command in _commands(tmp_path)]
    assert [group[: group.index("--marker-trace")] for group in groups] == [
        ["SQ_WAVES"],
        ["TCC_HIT_sum", "TCC_MISS_sum"],
    ]
    folders = {path.parent.parent.name for path in (done.folder / "raw").rglob("*.db")}
    assert folders == {"pass1", "pass2"}


def test_a_failing_program_keeps_its_code_and_its_recording(tmp_path: Path, roctx: Path) -> None:
    done = _trial(tmp_path, STEPS + "\nraise SystemExit(3)").run(_environment(tmp_path, roctx))
    assert done.code == 3
    assert done.exit["exit_code"] == 3
    assert list((done.folder / "raw" / "rank0").rglob("*_results.db"))


def test_stopped_from_outside_the_recording_is_there(tmp_path: Path, roctx: Path) -> None:
    """SIGTERM to the wrapper: the program ends, the profiler writes, then the wrapper leaves."""
    script = STEPS + "\nimport time\nprint('waiting', flush=True)\ntime.sleep(60)"
    trial = _trial(tmp_path, script)
    process = trial.start(_environment(tmp_path, roctx))
    try:
        trial.wait_for("waiting")
    finally:
        process.send_signal(signal.SIGTERM)
        done = trial.finish(process)
    assert done.exit["state"] in ("cancelled", "timeout", "failed")
    assert list((done.folder / "raw" / "rank0").rglob("*_results.db"))


def test_an_unknown_flag_is_refused_as_the_real_tool_would(tmp_path: Path, roctx: Path) -> None:
    done = _trial(tmp_path, options={"args": ["--no-such-flag"]}).run(_environment(tmp_path, roctx))
    assert done.code != 0
    assert "flags" in str(done.exit["reason"])


SUBMIT = """
import sys
import profrun.backends.local as local
local.machine_vendor = lambda *_: "amd"  # the one thing this machine is not
from profrun.cli import main
sys.argv = ["profrun", "submit", "job.yaml"]
main()
"""


def test_submit_from_job_to_summary(tmp_path: Path, roctx: Path) -> None:
    """`profrun submit` with collector timeline on an AMD host: the trace has the recording's GPU time."""
    (tmp_path / "job.py").write_text(STEPS)
    spec = f"name: amd\nimage: none\ncommand: {sys.executable} job.py\ncollectors: [timeline]\nrepeats: 1\n"
    (tmp_path / "job.yaml").write_text(spec)
    environment = {
        **os.environ,
        "PATH": f"{STANDINS}:{os.environ['PATH']}",
        **_environment(tmp_path, roctx),
    }
    done = subprocess.run(
        [sys.executable, "-c", SUBMIT],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = tmp_path.glob("runs/amd-*/trials/*/trace")
    with (
        Trace(folder) as trace,
        sqlite3.connect(f"file:{shared_data(RECORDING)}?mode=ro&immutable=1", uri=True) as con,
    ):
        assert (
            totals(trace)["kernel"] == con.execute("SELECT count(*), sum(duration) FROM kernels").fetchone()
        )
        assert ((trace.meta["job"] or {})["collector"], trace.meta["collector"]) == ("timeline", "rocprof")
    con.close()
    (command,) = _commands(tmp_path)
    assert "--selected-regions" in command


@pytest.mark.thorough
def test_a_profiler_that_is_killed_ends_the_trial_and_the_steps_are_kept(tmp_path: Path, roctx: Path) -> None:
    trial = _trial(tmp_path, STEPS + "import time\ntime.sleep(300)\n", timeout_s=600.0, grace_s=1.0)
    process = trial.start(_environment(tmp_path, roctx))
    trial.wait_for("step 5")
    found = [one for one in descendants(process.pid) if any("rocprofv3" in word for word in one.argv[:2])]
    os.kill(found[0].pid, signal.SIGKILL)
    done = trial.finish(process)
    assert (done.exit["state"], done.exit["code"]) == ("failed", PROFILER_DIED)
    assert "steps were kept; nothing was recorded" in done.exit["reason"]
    assert "memory" not in done.exit["reason"]
