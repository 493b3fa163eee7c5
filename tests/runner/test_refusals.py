"""What cannot work is refused before anything is made: no run folder, no engine asked; also in a dry run."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from profrun.backends.docker import DockerBackend
from profrun.backends.host import HostFacts
from profrun.backends.local_checks import check_machine
from profrun.errors import UnavailableError
from profrun.jobs.load import load_text
from profrun.plans.make import make_plan
from profrun.plans.model import Plan, Trial
from profrun.runner.drive import drive
from profrun.runner.interrupt import Interrupts
from profrun.store.runs import Run
from profrun.store.state import read_state
from tests.cli.running import call
from tests.runner.scripted import Scripted, Watcher, new_run


@pytest.fixture(autouse=True)
def no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """No reader is asked."""
    monkeypatch.setattr("profrun.runner.trial_files.sources", lambda record: [])


CLUSTER = {"pvc": "runs", "vendor": "nvidia", "shared": "HERE"}
CASES = [
    ("local", {"resources": {"gpus": 512}}, 69, "the job asks for 512 GPUs, and "),
    ("local", {"resources": {"nodes": 2}}, 64, "the job asks for 2 nodes"),
    ("local", {"workdir": "/no/such"}, 69, "workdir /no/such is not a folder here"),
    ("docker", {"mounts": ["/no/such/folder:/data"]}, 69, "/no/such/folder is to be mounted at /data"),
    ("docker", {"mounts": ["~no/such:/data:ro"]}, 69, "/~no/such is to be mounted at /data"),
    ("docker", {"resources": {"gpus": 512}}, 69, "the job asks for 512 GPUs, and "),
    ("docker", {"resources": {"nodes": 2}}, 64, "the job asks for 2 nodes"),
    ("docker", {"mounts": [".:/usr"]}, 64, "cannot be mounted at '/usr'"),
    ("slurm", {"image": "img:1"}, 64, "needs a container runtime"),
    ("slurm", {"cluster": {"shared": "/no/such"}, "image": "none"}, 64, "is not in /no/such"),
    (
        "slurm",
        {"mounts": ["data:/data"], "image": "i:1", "cluster": {"runtime": "pyxis"}},
        69,
        "/data is to be mounted at /data",
    ),
    ("kubernetes", {"image": "i:1"}, 64, "needs a persistent volume claim"),
    ("kubernetes", {"image": "i:1", "cluster": CLUSTER, "mounts": ["/etc:/x"]}, 64, "/etc cannot be mounted"),
    (
        "kubernetes",
        {"image": "i:1", "cluster": CLUSTER, "mounts": ["data:/data"]},
        69,
        "/data is to be mounted at /data",
    ),
    (
        "kubernetes",
        {"image": "i:1", "cluster": {**CLUSTER, "shared": "/no/such"}},
        64,
        "is not in /no/such, which the claim",
    ),
]


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["submit", "dry run"])
@pytest.mark.parametrize(("backend", "more", "code", "said"), CASES)
def test_it_is_refused_and_nothing_is_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    backend: str,
    more: dict[str, object],
    code: int,
    said: str,
    dry: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("PROFRUN_RUNS", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")  # no engine, no scheduler, no cluster
    monkeypatch.setenv("PATH", str(tmp_path))
    spec = {"name": "t", "command": "python -c pass", "collectors": ["none"], **more}
    (tmp_path / "job.yaml").write_text(json.dumps(spec).replace("HERE", str(tmp_path)))
    done = call(capsys, "submit", "job.yaml", "--backend", backend, *dry)
    (line,) = done.err.strip().splitlines()
    assert (done.code, said in line) == (code, True), line
    assert not (tmp_path / "runs").exists()


def test_without_slurm_no_run_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text("name: t\ncommand: python -c pass\nimage: none\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call(capsys, "submit", "job.yaml", "--backend", "slurm")
    assert (done.code, "there is no sinfo here" in done.err) == (69, True)
    (tmp_path / "sinfo").write_text(
        "#!/bin/sh\necho 'slurm_load_partitions: Unable to contact' >&2\nexit 1\n"
    )
    (tmp_path / "sinfo").chmod(0o755)
    done = call(capsys, "submit", "job.yaml", "--backend", "slurm")
    assert (done.code, "Unable to contact" in done.err) == (69, True)
    assert not (tmp_path / "runs").exists()


def test_what_the_local_backend_leaves_out_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    spec: dict[str, object] = {"name": "t", "command": "python -c pass", "collectors": ["none"]}
    more = {"image": "img:1", "mounts": ["/no/such:/x"], "resources": {"ranks_per_node": 2}}
    (tmp_path / "job.yaml").write_text(json.dumps(spec | more))
    said = call(capsys, "submit", "job.yaml", "--dry-run", "--json").json["left_out"]
    assert [text.split(":")[0] for text in said] == [
        "image img",
        "mounts are not used",
        "the local backend starts the command once",
    ]
    shown = call(capsys, "submit", "job.yaml", "--dry-run").out.splitlines()
    assert [line for line in shown if "# note" in line] == [f"# note: {text}" for text in said]
    (tmp_path / "job.yaml").write_text(json.dumps(spec))
    assert call(capsys, "submit", "job.yaml", "--dry-run", "--json").json["left_out"] == []


@pytest.mark.parametrize(
    ("sign", "asked", "refused"),
    [
        ((), 1, True),
        ((), 0, False),
        (("dev/dxg",), 1, False),  # WSL: GPUs that /proc does not count
        (("proc/driver/nvidia/gpus/0000:01:00.0/x",), 1, False),
        (("proc/driver/nvidia/gpus/0000:01:00.0/x", "dev/nvidiactl"), 2, True),
    ],
)
def test_a_local_gpu_is_refused_only_where_it_is_sure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: tuple[str, ...], asked: int, refused: bool
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no nvidia-smi
    for name in sign:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    plan, *_ = _one(tmp_path, asked)
    with pytest.raises(UnavailableError) if refused else contextlib.nullcontext():
        check_machine(plan.job, tmp_path)


def test_a_gpu_is_there_or_is_refused_by_number(tmp_path: Path) -> None:
    two = HostFacts(nvidia_gpus=2, nvidia_driver=(570, 1))
    for asked, there in ((2, two), (0, HostFacts())):
        DockerBackend(there).prepare(*_one(tmp_path, asked), ask=False)
    with pytest.raises(UnavailableError, match=r"asks for 3 GPUs, and this machine has 2;"):
        DockerBackend(two).prepare(*_one(tmp_path, 3), ask=False)


def _one(folder: Path, gpus: int) -> tuple[Plan, tuple[Trial, ...], Run, Path]:
    plan = make_plan(load_text(f"name: t\ncommand: python x.py\nresources: {{gpus: {gpus}}}\n"))
    return plan, plan.trials, Run(folder / "runs/t"), folder


def test_a_run_carried_on_is_refused_too_and_loses_no_trial(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    engine = Scripted(refuses="the folder is gone")
    with pytest.raises(UnavailableError, match="the folder is gone"):
        drive(run, plan, engine, cwd=tmp_path, observer=Watcher(), interrupts=Interrupts())
    assert engine.started == []
    assert [trial.state for trial in read_state(run).trials] == ["planned", "planned"]


def test_a_run_with_nothing_left_to_start_asks_nothing(tmp_path: Path) -> None:
    run, plan = new_run(tmp_path)
    for engine in (Scripted(), Scripted(refuses="the folder is gone")):
        drive(run, plan, engine, cwd=tmp_path, observer=Watcher(), interrupts=Interrupts())
    assert read_state(run).phase == "finished"
