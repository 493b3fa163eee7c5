"""Being stopped: who is signalled, what is kept, when something is killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.in_job.kit import Trial, fake_nsys, python

TIDY = python(
    "import signal, sys, time",
    "def end(*_):",
    "    print('app ends well', flush=True); sys.exit(5)",
    "signal.signal(signal.SIGTERM, end)",
    "print('running', flush=True)",
    "time.sleep(60)",
)
STUBBORN = python(
    "import os, signal, time",
    "signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'no\\n'))",  # print fails inside of another print
    "print('running', flush=True)",
    "while True: time.sleep(1)",
)


@pytest.mark.parametrize(
    ("number", "cancel", "state", "code"),
    [
        (signal.SIGURG, True, "cancelled", 130),
        (signal.SIGURG, False, "timeout", 124),
        (signal.SIGTERM, True, "cancelled", 130),
        (signal.SIGTERM, False, "timeout", 124),
        (signal.SIGINT, False, "cancelled", 130),
    ],
)
def test_the_app_is_asked_and_the_cause_is_told(
    tmp_path: Path, number: signal.Signals, cancel: bool, state: str, code: int
) -> None:
    trial = Trial(tmp_path, TIDY)
    process = trial.start()
    trial.wait_for("running\n")
    if cancel:
        (trial.folder / "cancel").touch()
    process.send_signal(number)
    done = trial.finish(process)
    assert done.log() == "running\napp ends well\n"
    assert (done.exit["state"], done.exit["exit_code"], done.code) == (state, 5, code)
    assert done.exit["stopped_by"] == signal.Signals(number).name
    assert "SIG" not in done.exit["reason"]


def test_a_program_that_got_the_batch_systems_signal_first_was_stopped_by_it(tmp_path: Path) -> None:
    ends = python("import os, signal", "print('ends', flush=True)", "os.kill(os.getpid(), signal.SIGTERM)")
    trial = Trial(tmp_path, ends)
    process = trial.start()
    trial.wait_for("ends\n")
    time.sleep(0.3)  # the program is gone, and the wrapper may just be told
    process.send_signal(signal.SIGTERM)
    done = trial.finish(process)
    assert (done.exit["state"], done.exit["stopped_by"]) == ("timeout", "SIGTERM")


@pytest.mark.thorough
def test_the_time_limit_ends_the_app_and_keeps_the_report(tmp_path: Path) -> None:
    """The profiler needs 1.5 s to write after the app has ended, and is not signalled itself."""
    on_signal = (
        "signal.signal(signal.SIGTERM, lambda *_: (print('profiler was hit', flush=True), os._exit(9)))"
    )
    env = fake_nsys(tmp_path, 1.5, on_signal)
    done = Trial(tmp_path, TIDY, collector="nsys", timeout_s=1.5).run(env)
    assert done.log().splitlines() == [
        "running",
        "app ends well",
        "fake nsys: the app is gone",
        "fake nsys: report written",
    ]
    found = done.exit
    assert (found["state"], found["exit_code"]) == ("timeout", 5)
    assert "time limit of 1.5 s" in found["reason"]
    assert [row["state"] for row in found["artefacts"]] == ["whole", "whole"]
    assert found["seconds"]["finalise"] >= 1.2
    assert done.warnings == [text for text in done.warnings if "killed" not in text]


def test_only_after_the_grace_something_is_killed_and_the_unfinished_file_is_named(tmp_path: Path) -> None:
    env = fake_nsys(tmp_path, 60)
    trial = Trial(tmp_path, STUBBORN, collector="nsys", grace_s=1.5)
    process = trial.start(env)
    trial.wait_for("running\n")
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    done = trial.finish(process)
    assert 1.4 <= time.monotonic() - began < 20
    found = done.exit
    assert found["state"] == "timeout"
    assert ("raw/rank0/report.qdstrm", "truncated") in [(r["path"], r["state"]) for r in found["artefacts"]]
    assert ("raw/rank0/*.nsys-rep", "missing") in [(r["path"], r["state"]) for r in found["artefacts"]]
    assert any("was killed: it had not ended in time" in text for text in done.warnings)
    assert "no" in done.log().splitlines()


def test_a_second_signal_kills_the_app_and_the_profiler_still_writes(tmp_path: Path) -> None:
    on_signal = "signal.signal(signal.SIGTERM, lambda *_: print('profiler was asked', flush=True))"
    env = fake_nsys(tmp_path, 0.5, on_signal)
    trial = Trial(tmp_path, STUBBORN, collector="nsys", grace_s=60.0)
    process = trial.start(env)
    trial.wait_for("running\n")
    process.send_signal(signal.SIGINT)
    trial.wait_for("no\n")
    process.send_signal(signal.SIGINT)
    done = trial.finish(process)
    found = done.exit
    assert (found["state"], found["exit_code"], found["signal"]) == ("cancelled", None, "SIGKILL")
    assert ("raw/rank0/report.nsys-rep", "whole") in [(r["path"], r["state"]) for r in found["artefacts"]]
    assert "profiler was asked" in done.log()
    assert any("killed: it was asked to end twice" in text for text in done.warnings)


def test_repeated_urg_stays_polite(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path,
        python(
            "import signal, sys, time",
            "def end(*_):",
            "    print('ending', flush=True); time.sleep(0.7); print('done', flush=True); sys.exit(0)",
            "signal.signal(signal.SIGTERM, end)",
            "print('running', flush=True); time.sleep(60)",
        ),
    )
    process = trial.start()
    trial.wait_for("running\n")
    process.send_signal(signal.SIGURG)
    trial.wait_for("ending\n")
    process.send_signal(signal.SIGURG)
    assert trial.finish(process).log() == "running\nending\ndone\n"


def test_a_shell_in_between_does_not_keep_the_program_from_ending(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('heard', flush=True)))\n"
        "print('running', flush=True)\ntime.sleep(60)\n"
    )
    argv = ["sh", "-c", f"{sys.executable} {tmp_path}/app.py; exit 0"]
    trial = Trial(tmp_path, argv, grace_s=60.0)
    process = trial.start()
    trial.wait_for("running\n")
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    done = trial.finish(process)
    assert "heard" in done.log()
    assert time.monotonic() - began < 30, "it did not wait for the grace"


def test_a_signal_before_the_start_keeps_the_program_from_starting(tmp_path: Path) -> None:
    slow = tmp_path / "nsys"
    slow.write_text("#!/bin/sh\necho asked > " + str(tmp_path / "asked") + "\nsleep 0.7\necho 2024.2.3\n")
    slow.chmod(0o755)
    trial = Trial(tmp_path, python("print('must not run')"), collector="nsys")
    process = trial.start({"PROFRUN_NSYS": str(slow)})
    deadline = time.monotonic() + 30
    while not (tmp_path / "asked").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGTERM)
    done = trial.finish(process)
    assert done.exit["state"] == "timeout"
    assert "must not run" not in done.stdout


def test_the_run_of_a_program_under_a_profiler_leaves_out_the_profilers_own_start(tmp_path: Path) -> None:
    """The stand-in needs 1 s until it starts the program, which is in no language that the hook knows."""
    env = fake_nsys(tmp_path, 0, "time.sleep(1)")
    done = Trial(tmp_path, ["sleep", "0.5"], collector="nsys").run(env)
    assert done.exit["state"] == "finished", done.exit["reason"]
    (step,) = done.steps()["steps"]
    assert done.steps()["how"] == "run"
    assert 0.48e9 <= step["dur_ns"] <= (done.exit["seconds"]["app"] - 0.98) * 1e9
