"""Jobs on a real Slurm: arrays, ranks, ends that keep reports, faults."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import profrun
from profrun.backends.slurm.backend import SlurmBackend
from profrun.backends.slurm.commands import Slurm
from profrun.backends.slurm.script import render_script
from profrun.in_job.repository import Repositories
from profrun.plans.make import make_plan
from tests.backends.plans import plan
from tests.backends.slurm.test_script import CASES
from tests.conftest import need_tool, shared_data
from tests.real.slurm.conftest import Cluster, Desk, wait_for
from tests.standins import rocprofv3

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

WORK = """
import sys, time, torch
layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
x = torch.randn(int(sys.argv[1]), 64)
with torch.no_grad():
    for _ in range(8):
        layer(x)
        time.sleep(0.005)
"""
LONG = """
import pathlib, time
pathlib.Path("started").touch()
time.sleep(600)
"""
# Stands for a profiler whose report takes longer than Slurm's KillWait (15 s here, 30 s by default).
SLOW_NSYS = """#!/usr/bin/env python3
import pathlib, subprocess, sys, time
if "--version" in sys.argv:
    print("NVIDIA Nsight Systems version 2025.1.1.0-0v0")
    raise SystemExit
if sys.argv[1] == "export":
    out = next(w.split("=", 1)[1] for w in sys.argv if w.startswith("--output="))
    if RECORDING:
        pathlib.Path(out).write_bytes(pathlib.Path(RECORDING).read_bytes())
    raise SystemExit(0)
words = sys.argv[2:]
out = next((w.split("=", 1)[1] for w in words if w.startswith("--output=")), None)
out = out or next((words[i + 1] for i, w in enumerate(words) if w in ("-o", "--output")), "report")
start = next(i for i, w in enumerate(words) if w.endswith(("python", "python3")))
code = subprocess.run(words[start:]).returncode
end = time.monotonic() + SECONDS
with open(out.replace("%q{RANK}", "0") + ".part", "wb") as part:
    while time.monotonic() < end:  # as nsys does that makes a large report; one that does nothing is killed
        part.write(bytes(1 << 20))
        part.flush()
        part.seek(0)
        time.sleep(0.5)
pathlib.Path(out.replace("%q{RANK}", "0") + ".part").unlink()
pathlib.Path(out.replace("%q{RANK}", "0") + ".nsys-rep").write_bytes(b"slow report" * 100)
raise SystemExit(code if code >= 0 else 128 - code)
"""


def spec(command: str, rest: str) -> str:
    """A job with image none and little time."""
    return f"name: tiny\nimage: none\ncommand: {command}\n{rest}\n"


def test_variants_collectors_and_blocking_run_as_one_array_over_two_nodes(desk: Desk) -> None:
    need_tool("nsys")
    desk.write("work.py", WORK)
    document = desk.submit(
        spec(
            "python work.py {n}",
            "variants: {small: {n: 8}, large: {n: 64}}\ncollectors: [none, torch, nsys]\n"
            "launch_blocking: both\nranges: {modules: 1}\nresources: {timeout: 60s, grace: 5s}\n"
            "cluster: {partition: gpu, parallel: 2, exclusive: true}",
        )
    )
    trials = document["trials"]
    assert [(trial["state"], trial.get("reason")) for trial in trials] == [("finished", None)] * 12
    assert all(trial["steps"] == 8 and trial["trace"] for trial in trials)
    hosts = {
        json.loads((desk.run_folder() / "trials" / trial["trial"] / "provenance.json").read_text())
        .get("environment", {})
        .get("SLURMD_NODENAME")
        for trial in trials
    }
    assert hosts == {"n1", "n2"}
    jobs = {
        json.loads(line)["handle"]["data"]["job"]
        for line in (desk.run_folder() / "events.jsonl").read_text().splitlines()
        if '"handle"' in line
    }
    assert len(jobs) == 1


def test_two_nodes_with_four_ranks_give_one_trace(desk: Desk) -> None:
    desk.write("work.py", WORK)
    document = desk.submit(
        spec(
            "python work.py 8",
            "collectors: [torch]\nresources: {nodes: 2, ranks_per_node: 2, timeout: 90s, grace: 5s}",
        )
    )
    (trial,) = document["trials"]
    assert trial["state"] == "finished", trial
    folder = desk.run_folder() / "trials" / trial["trial"]
    with profrun.open(folder / "trace") as trace:
        ranks = trace.sql("SELECT rank, count(*) FROM processes GROUP BY 1 ORDER BY 1").rows
        steps = trace.sql(
            "SELECT rank, count(*) FROM slices JOIN tracks USING (track) JOIN processes USING (process) "
            "WHERE slices.kind = 'step' GROUP BY 1 ORDER BY 1"
        ).rows
    assert ranks == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert steps == [(rank, 3) for rank in range(4)]


def _slow_nsys(desk: Desk, seconds: int, recording: Path | None = None) -> dict[str, str]:
    bin_ = desk.folder / "bin"
    bin_.mkdir()
    fake = bin_ / "nsys"
    text = SLOW_NSYS.replace("SECONDS", str(seconds))
    fake.write_text(text.replace("RECORDING", repr(str(recording)) if recording else "None"))
    fake.chmod(0o755)
    environ = {"PATH": f"{bin_}:{desk.cluster.environ['PATH']}"}
    return {**environ, "PROFRUN_NSYS": str(fake)}


def test_cancel_waits_for_a_report_that_takes_longer_than_killwait(desk: Desk) -> None:
    environ = _slow_nsys(desk, 40)
    desk.write("long.py", LONG)
    desk.write(
        "job.yaml",
        spec("python3 long.py", "collectors: [nsys]\nresources: {timeout: 10m, grace: 90s}"),
    )
    process = desk.start("submit", "job.yaml", "--backend", "slurm", environ=environ)
    wait_for(desk.folder / "started")
    cancelled = desk.profrun("cancel", "last")
    _, err = process.communicate(timeout=300)
    (trial,) = (desk.run_folder() / "trials").iterdir()
    document = json.loads((trial / "exit.json").read_text())
    assert document["state"] == "cancelled", (document, cancelled.stderr, err)
    assert [path.read_bytes()[:11] for path in trial.glob("raw/rank0/*.nsys-rep")] == [b"slow report"]
    assert process.returncode == 1


def test_slurms_own_time_limit_in_mid_trial_keeps_the_report(desk: Desk) -> None:
    """The walltime ends before the trial's own limit: SIGURG comes in time for the report."""
    environ = _slow_nsys(desk, 20)
    desk.write("long.py", LONG)
    # nsys may need 2 x 120 s: with 40 s of grace the margin is 340 s; 7 min - 340 s: told after 20 to 80 s.
    document = desk.submit(
        spec(
            "python3 long.py",
            "collectors: [nsys]\nresources: {timeout: 20m, grace: 40s}\ncluster: {time: 7m}",
        ),
        environ=environ,
    )
    (trial,) = document["trials"]
    assert trial["state"] == "timeout"
    folder = desk.run_folder() / "trials" / trial["trial"]
    assert list(folder.glob("raw/rank0/*.nsys-rep"))


def test_killing_the_submitter_and_resuming_loses_and_repeats_nothing(desk: Desk) -> None:
    desk.write("work.py", 'import pathlib, sys, time\ntime.sleep(3)\nopen("ran", "a").write(sys.argv[1])\n')
    desk.write(
        "job.yaml",
        spec(
            "python3 work.py {n}",
            "variants: {a: {n: A}, b: {n: B}, c: {n: C}}\ncollectors: [none]\n"
            "resources: {timeout: 60s, grace: 5s}",
        ),
    )
    process = desk.start("submit", "job.yaml", "--backend", "slurm")
    wait_for(desk.folder / "ran")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = desk.profrun("resume", "last", "--json")
    assert [trial["state"] for trial in json.loads(done.stdout)["trials"]] == ["finished"] * 3
    assert sorted((desk.folder / "ran").read_text()) == ["A", "B", "C"]


def test_five_hundred_trials_are_queued_with_five_cpu_seconds_and_asked_for_at_once(desk: Desk) -> None:
    from profrun.jobs.load import load_text
    from profrun.runner.pipeline import new_run
    from profrun.runner.planning import spec_at
    from profrun.runner.trial_files import prepare

    variants = ", ".join(f"v{index}: {{n: {index}}}" for index in range(500))
    text = spec("sleep {n}", f"variants: {{{variants}}}\ncollectors: [none]\nresources: {{timeout: 60s}}")
    made = make_plan(load_text(text))
    path = desk.write("job.yaml", text)
    backend = SlurmBackend(Slurm({"SLURM_CONF": desk.cluster.environ["SLURM_CONF"]}))
    before = os.times()
    repositories = Repositories("submit")
    run = new_run(desk.runs, spec_at(path), made, backend="slurm")
    prepared = backend.prepare(made, made.trials, run, desk.folder)
    for trial in made.trials:
        prepare(run, prepared, trial, backend, repositories=repositories)
    handles = backend.submit(prepared, made.trials, run)
    assert sum(os.times()[:4]) - sum(before[:4]) < 5.0  # of this process and of the commands that it runs
    assert len({handle.data["job"] for handle in handles.values()}) == 1
    asked = backend.questions
    states = backend.status(handles, run)
    assert len(states) == 500
    assert backend.questions == asked + 1
    backend.cancel(handles, run, grace=0)


@pytest.mark.parametrize(
    ("cluster_block", "resources", "code", "words"),
    [
        ("partition: nope", "gpus: 0", 64, "invalid partition"),
        ("partition: nvidia, gpu_type: h200", "gpus: 9", 69, "node configuration is not available"),
        ("gpu_type: b200", "gpus: 1", 69, "node configuration is not available"),
    ],
)
def test_a_refused_job_says_slurms_reason(
    desk: Desk, cluster_block: str, resources: str, code: int, words: str
) -> None:
    desk.write(
        "job.yaml",
        spec("sleep 0", f"collectors: [none]\nresources: {{{resources}}}\ncluster: {{{cluster_block}}}"),
    )
    done = desk.profrun("submit", "job.yaml", "--backend", "slurm")
    assert done.returncode == code
    assert words in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_a_requeued_trial_is_a_new_attempt(desk: Desk) -> None:
    desk.write(
        "work.py",
        "import pathlib, time\nonce = pathlib.Path('once')\n"
        "if not once.exists():\n    once.touch()\n    time.sleep(600)\n",
    )
    desk.write("job.yaml", spec("python3 work.py", "collectors: [none]\nresources: {timeout: 5m}"))
    process = desk.start("submit", "job.yaml", "--backend", "slurm", "--json")
    wait_for(desk.folder / "once")
    job = json.loads((desk.run_folder() / "slurm/array0.json").read_text())["job"]
    desk.cluster.run("scontrol", "requeue", f"{job}_0")
    wait_for(lambda: "BeginTime" in desk.cluster.run("squeue", "-h", "-o", "%r", "-j", job))
    # Slurm itself waits two minutes: its first execution has ended then, and is cleaned up.
    (folder,) = (desk.run_folder() / "trials").iterdir()
    wait_for(folder / "exit.json")
    wait_for(lambda: set(desk.cluster.run("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"})
    # A task that starts in the second in which it was killed is refused by its node ("Job credential
    # revoked") and stays FAILED.
    desk.cluster.run("scontrol", "update", f"jobid={job}_0", "StartTime=now+2")
    out, err = process.communicate(timeout=300)
    (trial,) = json.loads(out)["trials"]
    assert trial["state"] == "finished", err
    assert json.loads((folder / "command.json").read_text())["attempt"] == 2
    assert (folder / "attempts/1/command.json").exists()


def test_a_held_job_says_so(desk: Desk) -> None:
    desk.write(
        "job.yaml",
        spec("sleep 0", "collectors: [none]\nresources: {timeout: 60s}\ncluster: {extra: ['--hold']}"),
    )
    process = desk.start("submit", "job.yaml", "--backend", "slurm")
    wait_for(lambda: "JobHeldUser" in _status(desk))
    assert "scontrol release" in _status(desk)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 1


def _status(desk: Desk) -> str:
    return desk.profrun("status", "last").stdout if desk.runs.exists() and any(desk.runs.iterdir()) else ""


@pytest.mark.parametrize("case", sorted(CASES))
def test_golden_scripts_are_accepted_by_sbatch(case: str, cluster: Cluster, tmp_path: Path) -> None:
    """What this cluster lacks (accounts, features, 64 nodes or GiB, one kind of GPU on two) is left out."""
    drop = ["account", "qos", "constraint", "mem", "gpus-per-node=4", "ntasks-per-node=4", "cpus-per-task"]
    drop += ["nodes=64", "ntasks-per-node=8"]
    if case == "docker-nvidia":  # one of the two nodes has H200s
        drop.append("gpus-per-node=h200:4")
    made = plan(**CASES[case])
    lines = render_script(made, made.trials, tmp_path, tmp_path).splitlines()
    kept = [line for line in lines if not any(line.startswith(f"#SBATCH --{word}") for word in drop)]
    script = tmp_path / "job.sh"
    script.write_text("\n".join(kept).replace("04:00:00", "00:59:00").replace("02:07:00", "00:59:00") + "\n")
    done = subprocess.run(
        ["sbatch", "--test-only", str(script)],
        env=dict(cluster.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "to start at" in done.stderr


def test_one_job_at_an_nvidia_and_an_amd_partition_is_one_run(desk: Desk) -> None:
    """Stand-ins for nsys and rocprofv3 replay real recordings of an H200 and an MI300X.

    No node has a /dev/kfd: where the job states the vendor, the preflight only warns of that.
    """
    recording = shared_data("h200/nsys/mlp.sqlite")
    environ = _slow_nsys(desk, 0, recording)
    environ = {**environ, **_amd_environ(environ["PATH"])}
    desk.write("work.py", WORK)
    document = desk.submit(
        spec(
            "python work.py 8",
            "collectors: [none, timeline]\nresources: {gpus: 1, timeout: 60s, grace: 5s}\n"
            "cluster: {sites: {h200: {partition: nvidia, gpu_type: h200}, "
            "mi300x: {partition: amd, gpu_type: mi300x}}}",
        ),
        environ=environ,
    )
    states: dict[str, Any] = {trial["trial"]: trial["state"] for trial in document["trials"]}
    assert set(states.values()) == {"finished"}, states
    variants = {trial["variant"] for trial in document["trials"]}
    assert variants == {"default@h200", "default@mi300x"}
    vendors = {
        trial["variant"]: json.loads((Path(trial["trace"]) / "meta.json").read_text())["source"]
        for trial in document["trials"]
        if trial["collector"] != "none" and trial["trace"]
    }
    assert vendors == {"default@h200": "nsys", "default@mi300x": "rocpd"}
    assert [
        (item["a"], item["b"]) for item in document["comparisons"] if "timeline" in json.dumps(item)
    ] != []


def _amd_environ(path: str) -> dict[str, str]:
    """The stand-in rocprofv3 on the PATH, and what it replays."""
    database = shared_data("amd/rocpd-batched-gemm-mi300x/bmm/37ca13315e70/21_results.db")
    return {
        "PATH": f"{Path(rocprofv3.__file__).parent}:{path}",
        "PROFRUN_STANDIN_ROCPD": str(database),
    }
