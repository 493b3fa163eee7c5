"""Trials that share an allocation, on a real Slurm: one wait in the queue, the same nodes, ends that keep
reports; and an allocation that was there before."""

from __future__ import annotations

import json
import signal
import subprocess
from itertools import pairwise
from typing import Any

import pytest

from tests.real.slurm.conftest import Desk, wait_for
from tests.real.slurm.test_runs import LONG, _slow_nsys, spec

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

PAIR = "variants: {a: {n: A}, b: {n: B}}\nrepeats: 3\ncollectors: [none]\n"
NOTES = """
import os, pathlib, sys, time
name = f"{sys.argv[1]} {os.environ['SLURM_JOB_ID']} {os.environ['SLURM_STEP_NODELIST']}"
if os.environ["SLURM_PROCID"] == "0":
    with open("ran", "a") as file:
        file.write(name + "\\n")
time.sleep(float(os.environ.get("SECONDS_EACH", "1")))
"""
GAP_S = 15.0
"""The longest time from the end of a trial to the begin of the next that is accepted on a busy machine."""


def _lines(desk: Desk) -> list[list[str]]:
    return [line.split() for line in (desk.folder / "ran").read_text().splitlines()]


def _exits(desk: Desk, trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    folder = desk.run_folder() / "trials"
    return [json.loads((folder / trial["trial"] / "exit.json").read_text()) for trial in trials]


def test_six_trials_on_two_nodes_wait_once_and_run_on_the_same_nodes(desk: Desk) -> None:
    desk.write("work.py", NOTES)
    document = desk.submit(
        spec(
            "python3 work.py {n}",
            PAIR + "resources: {nodes: 2, timeout: 60s, grace: 5s}\ncluster: {partition: gpu}",
        )
    )
    assert [trial["state"] for trial in document["trials"]] == ["finished"] * 6
    ran = _lines(desk)
    assert [line[0] for line in ran] == ["A", "B"] * 3
    assert len({line[1] for line in ran}) == 1
    assert {line[2] for line in ran} == {"n[1-2]"}
    ends = _exits(desk, document["trials"])
    assert [end["nodes"] for end in ends] == [["n1", "n2"]] * 6
    gaps = [(later["started_ns"] - one["ended_ns"]) / 1e9 for one, later in pairwise(ends)]
    print("gaps between trials in s:", [round(gap, 2) for gap in gaps])
    assert all(0 < gap < GAP_S for gap in gaps), gaps
    resolved = (desk.run_folder() / "resolved.yaml").read_text()
    assert "allocation: one" in resolved


def test_a_trial_whose_turn_has_not_come_says_so_and_cancel_keeps_the_report_of_the_one_that_runs(
    desk: Desk,
) -> None:
    environ = _slow_nsys(desk, 20)
    desk.write("long.py", LONG)
    desk.write(
        "job.yaml",
        spec("python3 long.py", "repeats: 3\ncollectors: [nsys]\nresources: {timeout: 5m, grace: 60s}"),
    )
    process = desk.start("submit", "job.yaml", "--backend", "slurm", environ=environ)
    wait_for(desk.folder / "started")
    job = json.loads((desk.run_folder() / "slurm/allocation0.json").read_text())["job"]
    wait_for(lambda: f"its turn comes in allocation {job}" in desk.profrun("status", "last").stdout)
    desk.profrun("cancel", "last")
    _, err = process.communicate(timeout=300)
    first, *others = sorted((desk.run_folder() / "trials").iterdir())
    assert json.loads((first / "exit.json").read_text())["state"] == "cancelled", err
    assert [path.read_bytes()[:11] for path in first.glob("raw/rank0/*.nsys-rep")] == [b"slow report"]
    assert [(folder / "exit.json").exists() for folder in others] == [False, False]
    document = json.loads(desk.profrun("status", "last", "--json").stdout)
    assert [trial["state"] for trial in document["trials"]] == ["cancelled"] * 3
    assert desk.cluster.run("squeue", "-h", "-t", "R,PD").strip() == ""


def _salloc(desk: Desk, *options: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """An allocation that stays until its shell ends, and what a shell in it has in its environment."""
    desk.write("hold.sh", "env -0 >environ.new; mv environ.new environ; read -r line\n")
    process = subprocess.Popen(
        ["salloc", *options, "bash", "hold.sh"],
        cwd=desk.folder,
        env=dict(desk.cluster.environ),
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    wait_for(desk.folder / "environ")
    words = (desk.folder / "environ").read_text().split("\0")
    found = dict(word.split("=", 1) for word in words if word.startswith("SLURM_"))
    return process, found


def test_inside_salloc_the_trials_are_its_steps_and_survive_a_killed_driver(desk: Desk) -> None:
    desk.write("work.py", NOTES)
    desk.write(
        "job.yaml", spec("python3 work.py {n}", PAIR + "resources: {nodes: 2, timeout: 60s, grace: 5s}")
    )
    held, environ = _salloc(desk, "--nodes=2", "--ntasks=2", "--time=20")
    try:
        environ["SECONDS_EACH"] = "3"
        process = desk.start("submit", "job.yaml", "--backend", "slurm", environ=environ)
        wait_for(desk.folder / "ran")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert desk.cluster.run("squeue", "-h", "-t", "PD").strip() == ""
        done = desk.profrun("resume", "last", "--json", environ=environ)
        assert [trial["state"] for trial in json.loads(done.stdout)["trials"]] == ["finished"] * 6, (
            done.stderr
        )
        ran = _lines(desk)
        assert [line[0] for line in ran] == ["A", "B"] * 3
        assert {line[1] for line in ran} == {environ["SLURM_JOB_ID"]}
        assert "RUNNING" in desk.cluster.run("squeue", "-h", "-o", "%T", "-j", environ["SLURM_JOB_ID"])
    finally:
        held.communicate("\n", timeout=60)


def test_cancel_inside_salloc_ends_the_step_and_leaves_the_allocation(desk: Desk) -> None:
    desk.write("long.py", LONG)
    desk.write(
        "job.yaml", spec("python3 long.py", "repeats: 2\ncollectors: [none]\nresources: {timeout: 5m}")
    )
    held, environ = _salloc(desk, "--nodes=1", "--time=20")
    try:
        process = desk.start("submit", "job.yaml", "--backend", "slurm", environ=environ)
        wait_for(desk.folder / "started")
        desk.profrun("cancel", "last", environ=environ)
        process.communicate(timeout=300)
        document = json.loads(desk.profrun("status", "last", "--json").stdout)
        assert [trial["state"] for trial in document["trials"]] == ["cancelled"] * 2
        first = min((desk.run_folder() / "trials").iterdir())
        assert json.loads((first / "exit.json").read_text())["state"] == "cancelled"
        assert "RUNNING" in desk.cluster.run("squeue", "-h", "-o", "%T", "-j", environ["SLURM_JOB_ID"])
    finally:
        held.communicate("\n", timeout=60)


def test_an_allocation_that_is_too_small_is_refused_with_the_command_that_goes_on(desk: Desk) -> None:
    desk.write("job.yaml", spec("sleep 0", "collectors: [none]\nresources: {nodes: 2}"))
    held, environ = _salloc(desk, "--nodes=1", "--time=5")
    try:
        done = desk.profrun("submit", "job.yaml", "--backend", "slurm", environ=environ)
    finally:
        held.communicate("\n", timeout=60)
    assert done.returncode == 64
    assert "salloc --nodes=2 --ntasks-per-node=1" in done.stderr


def test_a_partition_that_is_down_is_told_while_submit_waits(desk: Desk) -> None:
    desk.write(
        "job.yaml",
        spec("sleep 0", "collectors: [none]\nresources: {timeout: 60s}\ncluster: {partition: amd}"),
    )
    desk.cluster.run("scontrol", "update", "partition=amd", "state=down")
    try:
        process = desk.start("submit", "job.yaml", "--backend", "slurm")
        assert process.stderr is not None
        told = next(line for line in process.stderr if "cannot start yet" in line)
        assert "PartitionDown: the partition is down" in told
    finally:
        desk.cluster.run("scontrol", "update", "partition=amd", "state=up")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "PartitionDown" not in err  # once


def test_a_requeued_allocation_goes_on_with_the_trial_that_was_interrupted(desk: Desk) -> None:
    desk.write(
        "work.py",
        "import pathlib, sys, time\nn = sys.argv[1]\nopen('ran', 'a').write(n)\n"
        "if n == 'B' and not pathlib.Path('once').exists():\n    pathlib.Path('once').touch()\n"
        "    time.sleep(600)\n",
    )
    variants = "variants: {a: {n: A}, b: {n: B}, c: {n: C}}\n"
    desk.write(
        "job.yaml", spec("python3 work.py {n}", variants + "collectors: [none]\nresources: {timeout: 5m}")
    )
    process = desk.start("submit", "job.yaml", "--backend", "slurm", "--json")
    wait_for(desk.folder / "once")
    job = json.loads((desk.run_folder() / "slurm/allocation0.json").read_text())["job"]
    desk.cluster.run("scontrol", "requeue", job)
    wait_for(lambda: "BeginTime" in desk.cluster.run("squeue", "-h", "-o", "%r", "-j", job))
    _, second, _ = sorted((desk.run_folder() / "trials").iterdir())
    wait_for(lambda: set(desk.cluster.run("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"})
    desk.cluster.run("scontrol", "update", f"jobid={job}", "StartTime=now+2")
    out, err = process.communicate(timeout=300)
    assert [trial["state"] for trial in json.loads(out)["trials"]] == ["finished"] * 3, err
    assert (desk.folder / "ran").read_text() == "ABBC"
    assert json.loads((second / "command.json").read_text())["attempt"] == 2
    assert (second / "attempts/1/command.json").exists()
