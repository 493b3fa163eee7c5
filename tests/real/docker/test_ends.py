"""How runs in containers end: Ctrl-C, cancel, a killed profrun, a killed container, and what is then left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from profrun.backends.docker.leftovers import clear_dead, end_running, our_containers
from profrun.backends.docker.request import LABEL_PATH, LABEL_ROLE, LABEL_RUN, LABEL_TRIAL
from tests.real.docker.conftest import Cli, containers_of, until

pytestmark = pytest.mark.docker

# Ranges until it is told to go on, so that a test decides when it ends.
WAITS = """
import os, time, profrun
print("began", flush=True)
while not os.path.exists("go"):
    with profrun.range("waiting"):
        time.sleep(0.02)
print("went on", flush=True)
"""
JOB = """
name: waits
command: python waits.py
collectors: [{collector}]
image: cuda
repeats: {repeats}
resources: {{shm: 64MiB, timeout: 5m, grace: 120s}}
"""


def start(cli: Cli, collector: str = "none", repeats: int = 1) -> subprocess.Popen[str]:
    """Submit and come back when the first trial's workload runs."""
    cli.write("waits.py", WAITS)
    cli.write("job.yaml", JOB.format(collector=collector, repeats=repeats))
    running = cli.start("submit", "job.yaml", "--backend", "docker")
    try:
        until(lambda: [log for log in logs(cli) if "began" in log.read_text()], "the workload")
    except BaseException:
        finish(running)
        raise
    return running


def logs(cli: Cli) -> list[Path]:
    """What the trials printed so far."""
    return sorted(cli.folder.glob("runs/*/trials/*/stdout.log"))


def finish(process: subprocess.Popen[str], seconds: float = 300) -> tuple[int, str]:
    """Exit code and stderr."""
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, said


def states(run: Path) -> list[str]:
    """State of each trial that left an exit.json."""
    return [json.loads(path.read_text())["state"] for path in sorted(run.glob("trials/*/exit.json"))]


def test_ctrl_c_keeps_the_report(cli: Cli, engine: Any, cuda: str) -> None:
    """SIGINT reaches profrun's process group only; the wrapper ends the app, nsys writes, all is kept."""
    running = start(cli, "nsys", repeats=2)
    os.killpg(running.pid, signal.SIGINT)
    code, said = finish(running)
    assert code == 1, said
    run = cli.only_run()
    assert states(run) == ["cancelled"], said
    (document,) = [json.loads(path.read_text()) for path in run.glob("trials/*/exit.json")]
    whole = {Path(item["path"]).suffix for item in document["artefacts"] if item["state"] == "whole"}
    assert {".nsys-rep", ".sqlite"} <= whole, document
    until(lambda: not containers_of(engine, cli.folder), "the removal of the container")


def test_kill_9_then_resume(cli: Cli, engine: Any, cuda: str) -> None:
    """The trial does not notice that profrun was killed; resume waits for it and repeats nothing."""
    running = start(cli, repeats=2)
    os.killpg(running.pid, signal.SIGKILL)
    finish(running)
    (container,) = containers_of(engine, cli.folder)
    assert container["State"] == "running"
    run = cli.only_run()
    resumed = cli.start("resume", str(run))
    log = run / "events.jsonl"
    until(lambda: '"resumed"' in log.read_text(), "the resumed event")
    cli.write("go", "")
    code, said = finish(resumed)
    assert code == 0, said
    assert states(run) == ["finished", "finished"]
    attempts = [json.loads(path.read_text())["attempt"] for path in run.glob("trials/*/command.json")]
    assert attempts == [1, 1]
    until(lambda: not containers_of(engine, cli.folder), "the removal of the container")


def test_kill_9_and_the_container_ended_meanwhile(cli: Cli, engine: Any, cuda: str) -> None:
    """The engine removes it by itself; resume believes what it wrote."""
    running = start(cli)
    os.killpg(running.pid, signal.SIGKILL)
    finish(running)
    cli.write("go", "")
    until(lambda: not containers_of(engine, cli.folder), "the container's own end")
    done = cli.run("resume", str(cli.only_run()))
    assert done.returncode == 0, done.stderr
    assert states(cli.only_run()) == ["finished"]


def test_kill_9_then_cancel(cli: Cli, engine: Any, cuda: str) -> None:
    """A run that nobody drives can still be ended well, from another process."""
    running = start(cli)
    os.killpg(running.pid, signal.SIGKILL)
    finish(running)
    done = cli.run("cancel", str(cli.only_run()))
    assert done.returncode in (0, 1), done.stderr
    until(lambda: not containers_of(engine, cli.folder), "the end of the container")
    assert states(cli.only_run()) == ["cancelled"]


def test_a_container_killed_from_outside_is_lost_not_finished(cli: Cli, engine: Any, cuda: str) -> None:
    running = start(cli)
    (container,) = containers_of(engine, cli.folder)
    engine.api.kill(container["Id"])
    code, _ = finish(running)
    assert code == 1
    events = [json.loads(line) for line in (cli.only_run() / "events.jsonl").read_text().splitlines()]
    (ended,) = [event for event in events if event["event"] == "finished"]
    assert ended["state"] == "lost"
    assert "exit code 137" in ended["reason"]


def test_the_program_ends_with_a_wrapper_that_is_killed(cli: Cli, engine: Any, cuda: str) -> None:
    """The container ends with the wrapper; the next trial begins after that."""
    running = start(cli, repeats=2)
    (container,) = containers_of(engine, cli.folder)
    rows = engine.api.top(container["Id"], ps_args="-eo pid,ppid,args")["Processes"]
    wrappers = {int(pid): int(parent) for pid, parent, line in rows if "run.py" in line}
    programs = [int(pid) for pid, _, line in rows if line.endswith("python waits.py")]
    assert programs
    (wrapper,) = [pid for pid, parent in wrappers.items() if parent not in wrappers]
    os.kill(wrapper, signal.SIGKILL)
    until(lambda: len(logs(cli)) == 2 and "began" in logs(cli)[1].read_text(), "the second trial")
    assert not any(Path(f"/proc/{pid}").exists() for pid in programs)
    cli.write("go", "")
    code, _ = finish(running)
    assert code == 1
    assert states(cli.only_run()) == ["finished"]
    until(lambda: not containers_of(engine, cli.folder), "the removal of the container")


def test_a_container_that_is_left_running_is_ended_before_the_next_trial(
    cli: Cli, engine: Any, cuda: str
) -> None:
    """It is one of a trial that is over for profrun."""
    running = start(cli)
    os.killpg(running.pid, signal.SIGKILL)
    finish(running)
    (container,) = containers_of(engine, cli.folder)
    folder = container["Labels"][LABEL_PATH]
    assert end_running(engine, ["/elsewhere"]) == []
    assert [item.path for item in end_running(engine, [folder])] == [folder]
    until(lambda: not containers_of(engine, cli.folder), "the removal of the container")


def test_docker_stop_by_hand_is_a_good_end_too(cli: Cli, engine: Any, cuda: str) -> None:
    running = start(cli, "nsys")
    (container,) = containers_of(engine, cli.folder)
    engine.containers.get(container["Id"]).stop()  # the container's own stop timeout, not docker's 10 s
    finish(running)
    run = cli.only_run()
    assert len(list(run.glob("trials/*/raw/rank0/*.nsys-rep"))) == 1


def test_dead_containers_of_a_killed_profrun_are_found_and_removed(engine: Any, cuda: str) -> None:
    """Killed before its container started, profrun leaves one; the next submit removes it by label."""
    labels = {LABEL_ROLE: "trial", LABEL_RUN: "gone", LABEL_TRIAL: "000-x"}
    made = engine.containers.create(
        cuda, command=["true"], labels=labels, entrypoint=["/bin/sh", "-c"], network_mode="none"
    )
    try:
        assert made.id not in [item.id for item in clear_dead(engine)], "young: it may be about to start"
        made.start()
        made.wait()
        assert made.id in [item.id for item in clear_dead(engine)]
        assert made.id not in [item.id for item in our_containers(engine)]
    finally:
        for item in our_containers(engine):
            if item.run == "gone":
                engine.api.remove_container(item.id, force=True)
