"""Whole runs through the command line: the real client, driver, script and wrapper; only the cluster is ours.

The claim is a folder with the same path here and in the pods, and the image is this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.backend import KubernetesBackend
from profrun.backends.kubernetes.probe import probe
from profrun.backends.node_probe import probe_job
from profrun.cli import doctor
from profrun.errors import UnavailableError
from profrun.jobs.cluster import ClusterSettings
from profrun.runner.drive import drive
from profrun.runner.interrupt import Interrupts
from profrun.runner.pipeline import new_run
from profrun.runner.planning import plan_job, spec_at
from profrun.store.state import read_state
from tests.backends.kubernetes.node import Cluster
from tests.backends.kubernetes.server import Server
from tests.runner.scripted import Watcher

WORK = """
import os, sys, time, profrun
print("token of", len(os.environ.get("HF_TOKEN", "")), "letters")
for _ in range(8):
    time.sleep(0.002 * int(sys.argv[1]))
    profrun.step()
"""
LONG = """
import pathlib, signal, time, profrun
pathlib.Path("started").touch()
profrun.step()
time.sleep(60)
"""
SPEC = """
name: tiny
image: python:3.12
command: python {command}
{rest}
resources: {{gpus: 0, timeout: 60s, grace: 5s, nodes: {nodes}}}
cluster: {{pvc: runs, parallel: 2, shared: {folder}, pvc_path: {claim}}}
"""


@pytest.fixture
def cluster(server: Server) -> Iterator[Cluster]:
    """A node behind the server, and the claim."""
    server.put("persistentvolumeclaims", {"metadata": {"name": "runs"}}, "ADDED")
    made = Cluster(server)
    yield made
    made.close()


class Desk:
    """A user's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *argv: str) -> subprocess.Popen[str]:
        """``profrun ...`` in this folder."""
        process = subprocess.Popen(
            [sys.executable, "-m", "profrun.cli", *argv],
            cwd=self.folder,
            env={**os.environ, "HF_TOKEN": "hf-very-secret"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    def submit(self, command: str, rest: str = "collectors: [none]") -> subprocess.Popen[str]:
        """Submit a job that runs a script of this folder."""
        spec = SPEC.format(command=command, rest=rest, folder=self.folder, claim=self.folder, nodes=1)
        (self.folder / "job.yaml").write_text(spec)
        return self.start("submit", "job.yaml", "--backend", "kubernetes", "--json")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A folder; what was started there is ended."""
    made = Desk(tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What it says when it has ended."""
    out, err = process.communicate(timeout=300)
    assert out, err
    document: dict[str, Any] = json.loads(out)
    return document


def wait_for(what: Callable[[], object], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def the_run(folder: Path) -> Path:
    (found,) = (folder / "runs").glob("tiny-*")
    return found


@pytest.mark.thorough
def test_a_run_ends_as_anywhere_else(cluster: Cluster, server: Server, desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(WORK)
    rest = "collectors: [none]\nvariants: {a: {n: 1}, b: {n: 2}}\nsecrets: [HF_TOKEN]"
    document = end(desk.submit("work.py {n}", rest))
    assert [(trial["state"], trial["reason"]) for trial in document["trials"]] == [("finished", None)] * 2
    assert all(trial["steps"] == 8 and trial["trace"] for trial in document["trials"])
    run = the_run(tmp_path)
    # The secret reached the program and is in no file of the run and in no object but the Secret.
    assert {path.read_text() for path in run.glob("trials/*/stdout.log")} == {"token of 14 letters\n"}
    kept = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
    assert b"hf-very-secret" not in kept
    told = [body for method, path, body in server.requests if method == "POST" and "secrets" not in path]
    assert "hf-very-secret" not in json.dumps(told)
    (job,) = server.of("jobs")
    assert job["status"]["completedIndexes"] == "0,1"
    command = json.loads(next(run.glob("trials/*/command.json")).read_text())
    assert command["cwd"] == str(tmp_path)


class Driven:
    """A run driven in a thread of this process."""

    def __init__(
        self,
        folder: Path,
        *,
        claim: str | None = None,
        nodes: int = 1,
        parallel: int = 2,
        rest: str = "collectors: [none]",
    ) -> None:
        more = {"folder": folder, "claim": claim or folder, "nodes": nodes, "rest": rest}
        text = SPEC.format(command="work.py 1", **more)
        (folder / "job.yaml").write_text(text.replace("parallel: 2", f"parallel: {parallel}"))
        job = spec_at(folder / "job.yaml")
        plan = plan_job(job)
        self.run = new_run(folder / "runs", job, plan, backend="kubernetes")
        self.interrupts = Interrupts()
        backend = KubernetesBackend(fastest=0.1, lag_s=0.0 if claim else 15.0)
        how = {"cwd": folder, "observer": Watcher(), "interrupts": self.interrupts}
        self.thread = threading.Thread(target=drive, args=(self.run, plan, backend), kwargs=how)
        self.thread.start()

    def states(self) -> list[str]:
        """How its trials ended."""
        self.thread.join(60)
        return [trial.state for trial in read_state(self.run).trials]

    def state(self) -> str:
        """How its only trial ended."""
        self.thread.join(30)
        (trial,) = read_state(self.run).trials
        return trial.state


@pytest.mark.thorough
def test_cancel_lets_the_wrapper_write_how_it_ended(cluster: Cluster, server: Server, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(LONG)
    driven = Driven(tmp_path)
    wait_for((tmp_path / "started").exists)
    driven.interrupts.press("test")
    assert driven.state() == "cancelled"
    (file,) = driven.run.path.glob("trials/*/exit.json")
    assert json.loads(file.read_text())["state"] == "cancelled"  # the wrapper heard SIGTERM as first process
    wait_for(lambda: not server.of("pods"))
    assert server.of("jobs") == []


@pytest.mark.thorough
def test_a_trial_on_a_lost_node_is_a_new_attempt(cluster: Cluster, server: Server, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        "import pathlib, time, profrun\n"
        "again = pathlib.Path('started').exists()\n"
        "pathlib.Path('started').touch()\n"
        "for _ in range(4):\n    profrun.step()\n"
        "time.sleep(0 if again else 60)\n"
    )
    driven = Driven(tmp_path)
    wait_for((tmp_path / "started").exists)
    cluster.lose(server.of("pods")[0]["metadata"]["name"])
    assert driven.state() == "finished"
    (trial,) = driven.run.path.glob("trials/*")
    assert json.loads((trial / "exit.json").read_text())["attempt"] == 2
    assert (trial / "attempts/1/stdout.log").exists()
    assert not (trial / "attempts/1/exit.json").exists()


@pytest.mark.thorough
def test_a_preempted_trial_is_done_again_although_it_said_how_it_ended(
    cluster: Cluster, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "work.py").write_text(
        "import pathlib, time, profrun\n"
        "again = pathlib.Path('started').exists()\n"
        "for _ in range(4):\n    profrun.step()\n"
        "pathlib.Path('started').touch()\n"
        "time.sleep(0 if again else 60)\n"
    )
    driven = Driven(tmp_path)
    wait_for((tmp_path / "started").exists)
    cluster.preempt(server.of("pods")[0]["metadata"]["name"])
    assert driven.state() == "finished"
    (trial,) = driven.run.path.glob("trials/*")
    first = json.loads((trial / "attempts/1/exit.json").read_text())
    assert (first["state"], first["stopped_by"]) == ("timeout", "SIGTERM")
    (record,) = read_state(driven.run).trials
    assert (record.state, record.attempt, record.steps.count) == ("finished", 2, 4)


@pytest.mark.thorough
def test_a_killed_submitter_loses_nothing(
    cluster: Cluster, server: Server, desk: Desk, tmp_path: Path
) -> None:
    (tmp_path / "work.py").write_text(
        "import pathlib, time, profrun\n"
        "pathlib.Path('started').touch()\n"
        "while not pathlib.Path('go').exists():\n    time.sleep(0.01)\n"
        "profrun.step()\n"
    )
    process = desk.submit("work.py")
    wait_for((tmp_path / "started").exists)
    process.kill()
    process.communicate()
    (tmp_path / "go").touch()
    document = end(desk.start("resume", "last", "--json"))
    assert [trial["state"] for trial in document["trials"]] == ["finished"]
    assert len(server.of("jobs")) == 1


def test_a_claim_that_is_another_folder_is_said_and_ends_the_job(
    cluster: Cluster, server: Server, tmp_path: Path
) -> None:
    driven = Driven(tmp_path, claim="/elsewhere")
    assert driven.state() == "failed"
    (trial,) = read_state(driven.run).trials
    assert "cluster.shared must be the claim here" in (trial.reason or "")
    assert f"/elsewhere/runs/{driven.run.name}/trials/{trial.id} is not in the volume" in (trial.reason or "")
    (job,) = server.of("jobs")
    assert job["status"]["conditions"][0]["reason"] == "PodFailurePolicy"


@pytest.mark.thorough
def test_nodes_of_a_trial_share_its_folder_and_give_one_answer(
    cluster: Cluster, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "work.py").write_text(WORK)
    driven = Driven(tmp_path, nodes=2)
    assert driven.state() == "finished"
    (trial,) = driven.run.path.glob("trials/*")
    ranks = sorted(path.parent.name for path in trial.glob("raw/rank*/steps.json"))
    assert ranks == ["rank0", "rank1"]
    assert sorted(path.name for path in trial.glob("pod.*")) == ["pod.0", "pod.1"]
    assert [service["spec"]["clusterIP"] for service in server.of("services")] == ["None"]


@pytest.mark.thorough
@pytest.mark.parametrize("parallel", [1, 2])
def test_no_more_trials_of_several_nodes_run_at_once_than_the_job_allows(
    cluster: Cluster, server: Server, tmp_path: Path, parallel: int
) -> None:
    (tmp_path / "work.py").write_text(WORK)
    most, trials = [], parallel + 1

    def running() -> int:
        lives = [pod for pod in server.of("pods") if pod["status"]["phase"] == "Running"]
        return len({pod["metadata"]["labels"]["job-name"] for pod in lives})

    driven = Driven(tmp_path, nodes=2, parallel=parallel, rest=f"collectors: [none]\nrepeats: {trials}")
    while driven.thread.is_alive():
        most.append(running())
        time.sleep(0.02)
    assert driven.states() == ["finished"] * trials
    assert max(most) <= parallel
    assert len(server.of("jobs")) == trials


def test_the_doctor_asks_a_node_and_leaves_nothing(
    cluster: Cluster,
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PROFRUN_CLUSTERS", str(tmp_path / "clusters.yaml"))
    profile = f"lab: {{pvc: runs, shared: {tmp_path}, pvc_path: {tmp_path}}}\n"
    (tmp_path / "clusters.yaml").write_text(profile)
    where: dict[str, Any] = {"backend": "kubernetes", "profile": "lab", "image": ["python:3.12"], "gpus": 0}
    doctor.command(["none"], runs=tmp_path / "runs", json_=True, **where)
    document = json.loads(capsys.readouterr().out)
    assert document["collectors"]["none"]["usable"] is True
    assert document["node"]
    assert list((tmp_path / "runs").iterdir()) == []
    assert server.of("jobs") == []


@pytest.mark.thorough
def test_a_probe_that_policy_forbids_says_so(
    server: Server, tmp_path: Path, connect: Callable[[str | None, str | None], Api]
) -> None:
    settings = ClusterSettings(pvc="runs", shared=str(tmp_path))
    api = connect(None, None)
    real = api.create

    def create(manifest: Any) -> dict[str, Any]:
        about = {"name": manifest["metadata"]["name"]}
        message = 'pods "x" is forbidden: violates PodSecurity "restricted:latest"'
        event = {"metadata": {"name": "e"}, "involvedObject": about, "message": message}
        server.put("events", event, "ADDED")
        return real(manifest)

    api.create = create  # type: ignore[method-assign]
    with pytest.raises(UnavailableError, match="the probe cannot start: Pod Security does not allow"):
        probe(probe_job(settings, "python:3.12", gpus=0), tmp_path / "runs", api=api, patience_s=20)
    assert server.of("jobs") == []
    assert list((tmp_path / "runs").iterdir()) == []
