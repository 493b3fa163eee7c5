"""The sbatch script as a value: golden files, one for each way onto a node."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from profrun.backends.slurm.script import render_script
from profrun.errors import UsageError
from tests.backends.plans import plan

GOLDEN = Path(__file__).parent / "golden"
RUN = Path("/shared/runs/transformer-20260101T000000Z-abcd")
CWD = Path("/shared/me/project")
NGC = "nvcr.io/nvidia/pytorch:25.12-py3"
CASES = {
    "none": {"cluster": "partition: gpu, account: ml, gpu_type: h200"},
    "pyxis": {"image": NGC, "cluster": "runtime: pyxis, gpu_type: h200, parallel: 4, qos: high"},
    "apptainer": {"image": NGC, "cluster": "runtime: apptainer, gpu_directive: gres, gpu_type: mi300x"},
    "charliecloud": {"image": "auto", "cluster": "runtime: charliecloud, rootfs: /images/torch"},
    "docker": {"image": "auto", "cluster": "runtime: docker, vendor: amd, setup: ['ulimit -c 0']"},
    "docker-nvidia": {
        "image": NGC,
        "resources": "gpus: 4, nodes: 2, ranks_per_node: 4",
        "cluster": "runtime: docker, gpu_type: h200, exclusive: true",
    },
    "ranks": {
        "resources": "gpus: 4, nodes: 2, ranks_per_node: 4, cpus: 8, memory: 64GiB, timeout: 2h",
        "cluster": "modules: [cuda/12.4, nccl], extra: ['--comment=profile'], exclusive: true",
    },
    "many-ranks": {
        "image": "auto",
        "resources": "nodes: 64, ranks_per_node: 8",
        "cluster": "runtime: charliecloud, rootfs: /images/torch",
    },
    "many-torchrun": {
        "command": "torchrun train.py --batch {batch}",
        "resources": "nodes: 2, ranks_per_node: 8",
    },
    "torchrun": {
        "command": "torchrun train.py --batch {batch}",
        "resources": "gpus: 4, nodes: 2, ranks_per_node: 4",
        "cluster": "time: '4:00:00', constraint: nvlink",
    },
}


def script(name: str) -> str:
    """The golden case as profrun renders it now."""
    made = plan(**CASES[name])
    return render_script(made, made.trials, RUN, CWD)


@pytest.mark.parametrize("name", CASES)
def test_scripts_are_as_kept(name: str) -> None:
    kept = GOLDEN / f"{name}.sh"
    if os.environ.get("PROFRUN_GOLDEN") == "write":
        kept.write_text(script(name))
    assert script(name) == kept.read_text()


@pytest.mark.parametrize("name", CASES)
def test_scripts_are_bash(name: str) -> None:
    subprocess.run(["bash", "-n"], input=script(name), text=True, check=True)


@pytest.mark.parametrize(
    ("workdir", "also"), [("sub", ""), ("../x", "/shared/me/x:/shared/me/x:ro,"), ("/opt/app", "")]
)
def test_a_workdir_outside_is_mounted_too_unless_it_may_lie_in_the_image(workdir: str, also: str) -> None:
    made = plan(**CASES["pyxis"])
    made = replace(made, job=replace(made.job, workdir=workdir))
    text = render_script(made, made.trials, RUN, CWD)
    assert f"--container-mounts={CWD}:{CWD}:ro,{also}{RUN}:{RUN} " in text


def test_the_time_limit_leaves_room_for_the_report() -> None:
    # 30 min of work, 60 s grace, twice nsys's 120 s to finalise, 60 s for the rest: margin 360 s; and Slurm
    # may announce the end a minute early: 1800 + 360 + 60 s = 37 min.
    made = script("none")
    assert "#SBATCH --time=00:37:00\n" in made
    assert "#SBATCH --signal=URG@360\n" in made


def test_a_limit_that_leaves_no_time_for_the_work_is_refused() -> None:
    made = plan(cluster="time: 6m")
    with pytest.raises(UsageError, match=r"cluster\.time is 360 s, and 420 s of it are for writing"):
        render_script(made, made.trials, RUN, CWD)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"image": NGC}, "needs a container runtime on the cluster"),
        ({"image": "auto", "cluster": "runtime: pyxis"}, "this machine cannot see what GPUs they have"),
        ({"image": NGC, "cluster": "runtime: charliecloud"}, "charliecloud runs an unpacked image"),
    ],
)
def test_what_does_not_fit_together_is_said(case: dict[str, str], message: str) -> None:
    made = plan(**case)
    with pytest.raises(UsageError, match=message):
        render_script(made, made.trials, RUN, CWD)


def test_options_of_srun_are_passed_on_after_profruns_own() -> None:
    made = plan(resources="cpus: 4", cluster="srun_extra: [--mpi=pmix, '--cpu-bind=map_cpu:0,1']")
    last = render_script(made, made.trials, RUN, CWD).splitlines()[-1]
    assert " --cpus-per-task=4 --mpi=pmix --cpu-bind=map_cpu:0,1 python3 " in last


@pytest.mark.parametrize("option", ["--wait=0", "-N2", "-n 4", "--ntasks=2", "-K", "--container-image=x"])
def test_options_of_srun_that_profrun_sets_itself_are_refused(option: str) -> None:
    made = plan(image=NGC, cluster=f"runtime: pyxis, srun_extra: ['{option}']")
    with pytest.raises(UsageError, match=r"profrun sets .* of srun itself"):
        render_script(made, made.trials, RUN, CWD)


def test_setup_can_change_the_masters_address() -> None:
    made = plan(command="torchrun t.py {batch}", cluster="setup: ['export MASTER_ADDR=$MASTER_ADDR-ib0']")
    text = render_script(made, made.trials, RUN, CWD)
    places = [
        text.index(word)
        for word in ("export MASTER_ADDR MASTER", "-ib0", "export PET_NNODES", "watched srun ")
    ]
    assert places == sorted(places)


def test_a_requeued_task_moves_the_attempt_before_aside(tmp_path: Path) -> None:
    """The script's own shell, run with a stand-in for srun and scontrol."""
    made = plan(cluster="")
    trial = made.trials[0].id
    folder = tmp_path / "trials" / trial
    (folder / "raw/rank0").mkdir(parents=True)
    (folder / "raw/rank0/half.nsys-rep").write_text("half")
    (folder / "command.json").write_text('{\n "attempt": 1,\n "trial": "x"\n}\n')
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, text in (("srun", 'echo "srun $*"'), ("scontrol", "echo n1")):
        (bin_ / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_ / name).chmod(0o755)
    environment = {
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "SLURM_ARRAY_TASK_ID": "0",
        "SLURM_RESTART_COUNT": "1",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "n1",
    }
    text = render_script(made, made.trials, tmp_path, tmp_path)
    done = subprocess.run(["bash"], input=text, text=True, env=environment, capture_output=True, check=True)
    assert f"{tmp_path}/bundle/run.py {folder}" in done.stdout
    assert (folder / "attempts/1/raw/rank0/half.nsys-rep").read_text() == "half"
    assert '"attempt": 1' in (folder / "attempts/1/command.json").read_text()
    assert '"attempt": 2' in (folder / "command.json").read_text()
    assert list((folder / "raw").iterdir()) == []


def test_a_requeued_task_that_had_finished_does_nothing(tmp_path: Path) -> None:
    made = plan()
    folder = tmp_path / "trials" / made.trials[0].id
    folder.mkdir(parents=True)
    (folder / "exit.json").write_text('{\n "state": "finished"\n}\n')
    environment = {"PATH": os.environ["PATH"], "SLURM_ARRAY_TASK_ID": "0", "SLURM_RESTART_COUNT": "1"}
    text = render_script(made, made.trials, tmp_path, tmp_path)
    subprocess.run(["bash"], input=text, text=True, env=environment, check=True)
    assert (folder / "exit.json").exists()
    assert not (folder / "attempts").exists()
