"""The script in front of the wrapper, run by a real shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from profrun.backends.kubernetes.launch import PROBE, script_of_many, script_of_nodes
from tests.backends.kubernetes.node import expand, own_pids
from tests.conftest import missing, need_tool

MANY = script_of_many()
NODES = script_of_nodes(nodes=2, address="job-0.job", port=29500, ranks=4)
WRAPPER = """
import json, os, pathlib, sys
trial = pathlib.Path(sys.argv[1])
keys = [key for key in os.environ if key.startswith(("PET_", "RANK", "WORLD", "MASTER", "LOCAL_RANK"))]
told = json.loads((trial / "command.json").read_text())
(trial / "ran").write_text(json.dumps({"attempt": told["attempt"], "env": {k: os.environ[k] for k in keys}}))
"""
TERM = """
import pathlib, signal, sys, time
trial = pathlib.Path(sys.argv[1])
def end(*_):
    (trial / "ended").touch()
    raise SystemExit(124)
signal.signal(signal.SIGTERM, end)
(trial / "started").touch()
time.sleep(60)
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of three trials whose wrapper says that it ran."""
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle/run.py").write_text(WRAPPER)
    for name in ("a", "b", "c c"):
        (tmp_path / "trials" / name).mkdir(parents=True)
        (tmp_path / "trials" / name / "command.json").write_text('{\n "attempt": 1,\n "trial": "b"\n}\n')
    return tmp_path


def start(
    run: Path, script: str, index: int, *trials: str, pod: str = "uid-1"
) -> subprocess.CompletedProcess[str]:
    """As the kubelet starts it."""
    env = {**os.environ, "PROFRUN_RUN": str(run), "PROFRUN_POD": pod, "JOB_COMPLETION_INDEX": str(index)}
    return subprocess.run(
        ["/bin/sh", "-c", expand(script, env), "profrun", *trials],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_index_chooses_the_trial(run: Path) -> None:
    for index, name in enumerate(("a", "b", "c c")):
        assert start(run, MANY, index, "a", "b", "c c").returncode == 0
        assert sorted(path.parent.name for path in run.glob("trials/*/ran")) == ["a", "b", "c c"][: index + 1]
        assert (run / "trials" / name / "pod").read_text() == "uid-1\n"


def test_a_volume_without_the_run_is_told_apart(run: Path) -> None:
    (run / "bundle/run.py").unlink()
    done = start(run, MANY, 0, "a")
    assert done.returncode == 199
    assert f"{run}/trials/a is not in the volume" in done.stderr


def test_a_trial_cancelled_in_the_queue_does_not_start(run: Path) -> None:
    (run / "trials/a/cancel").touch()
    assert start(run, MANY, 0, "a").returncode == 130
    assert not (run / "trials/a/ran").exists()


def test_a_second_pod_leaves_what_ended_alone(run: Path) -> None:
    (run / "trials/a/exit.json").touch()
    (run / "trials/a/pod").write_text("uid-0\n")
    assert start(run, MANY, 0, "a").returncode == 0
    assert not (run / "trials/a/ran").exists()


@pytest.mark.parametrize(
    ("state", "by", "repeated"),
    [
        ("timeout", '"SIGTERM"', True),  # preempted or evicted, with time to write how it ended
        ("timeout", '"limit"', False),  # its own limit: it would be reached again
        ("finished", "null", False),
        ("cancelled", '"SIGINT"', False),
        ("failed", "null", False),
    ],
)
def test_a_trial_that_was_ended_with_its_pod_is_done_again(
    run: Path, state: str, by: str, repeated: bool
) -> None:
    trial = run / "trials/a"
    (trial / "exit.json").write_text(f'{{\n "state": "{state}",\n "stopped_by": {by}\n}}\n')
    (trial / "pod").write_text("uid-0\n")
    assert start(run, MANY, 0, "a").returncode == 0
    assert (trial / "ran").exists() == repeated
    assert (trial / "attempts/1/exit.json").exists() == repeated


def test_a_second_pod_moves_an_interrupted_attempt_aside(run: Path) -> None:
    trial = run / "trials/b"
    assert start(run, MANY, 1, "a", "b", pod="uid-0").returncode == 0
    (trial / "raw").mkdir()
    (trial / "raw/half").write_text("half a report")
    (trial / ".hidden").touch()
    assert start(run, MANY, 1, "a", "b", pod="uid-1").returncode == 0
    kept = trial / "attempts/1"
    assert sorted(path.name for path in kept.iterdir()) == [".hidden", "command.json", "pod", "ran", "raw"]
    assert (kept / "raw/half").read_text() == "half a report"
    assert json.loads((kept / "ran").read_text())["attempt"] == 1
    assert json.loads((trial / "ran").read_text())["attempt"] == 2
    assert json.loads((trial / "command.json").read_text()) == {"attempt": 2, "trial": "b"}


def test_nodes_of_a_trial_get_their_ranks(run: Path) -> None:
    assert start(run, NODES, 1, "a", pod="uid-1").returncode == 0
    assert json.loads((run / "trials/a/ran").read_text())["env"] == {
        "RANK": "1",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "job-0.job",
        "MASTER_PORT": "29500",
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "4",
        "PET_NODE_RANK": "1",
        "PET_MASTER_ADDR": "job-0.job",
        "PET_MASTER_PORT": "29500",
    }
    again = start(run, NODES, 1, "a", pod="uid-2")
    assert (again.returncode, "resume repeats the whole trial" in again.stderr) == (198, True)


def test_sigterm_reaches_the_wrapper_as_first_process(run: Path) -> None:
    words = own_pids()
    if not words:
        missing("the right to make a PID namespace")
    (run / "bundle/run.py").write_text(TERM)
    env = {**os.environ, "PROFRUN_RUN": str(run), "PROFRUN_POD": "x", "JOB_COMPLETION_INDEX": "0"}
    argv = [*words, "/bin/sh", "-c", MANY, "profrun", "a"]
    with subprocess.Popen(argv, env=env) as process:
        deadline = time.monotonic() + 10
        while not (run / "trials/a/started").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (first,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(first), signal.SIGTERM)
        assert process.wait(10) == 124
    assert (run / "trials/a/ended").exists()


@pytest.mark.parametrize("script", [MANY, NODES, PROBE, script_of_many(ranks=2)])
def test_scripts_are_posix_and_the_kubelet_changes_nothing_in_them(script: str) -> None:
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    need_tool("shellcheck")
    # SC2154: PROFRUN_RUN and others come from the pod's environment.
    argv = ["shellcheck", "--shell=sh", "--exclude=SC2154", "-"]
    done = subprocess.run(argv, input=script, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert expand(script, {"PROFRUN_RUN": "x", "HOME": "y"}) == script
