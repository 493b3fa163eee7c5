"""The container of a rank: the script itself, with a stand-in for docker that says what it was given."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from profrun.backends.slurm.docker_step import docker_words
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from tests.backends.plans import plan

CWD = Path("/shared/me/project")


def _given(
    folder: Path, vendor: str, resources: str = "gpus: 2", cluster: str = "", **environ: str
) -> tuple[int, list[str], str]:
    """Exit code, the arguments of docker, and stderr, of a task with this environment."""
    made = plan(resources=resources, cluster=cluster)
    for name, text in (("docker", 'printf "%s\\n" "$@"'), ("stat", "echo 44")):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    settings: ClusterSettings = made.job.cluster.of_site(None)
    words = docker_words(
        made.job, settings, "image:1", ["type=bind,src=/a,dst=/a"], CWD, vendor, nodes=folder / "kfd"
    )
    done = subprocess.run(
        ["bash", "-c", " ".join([*words, 'python3 run.py "$trial"'])],
        env={"PATH": f"{folder}:{os.environ['PATH']}", "trial": "/t/1 x", **environ},
        text=True,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


def _kfd(folder: Path, minors: tuple[int, ...]) -> None:
    for node, minor in enumerate(minors):
        (folder / f"kfd/{node}").mkdir(parents=True)
        (folder / f"kfd/{node}/properties").write_text(f"cpu_cores_count 0\ndrm_render_minor {minor}\n")


def test_nvidia_gets_the_gpus_of_the_step_by_their_numbers_on_the_node(tmp_path: Path) -> None:
    code, words, _ = _given(tmp_path, "nvidia", SLURM_STEP_GPUS="2,3", CUDA_VISIBLE_DEVICES="0,1")
    assert code == 0
    assert '--gpus="device=2,3","capabilities=compute,utility"' in words
    assert "--gpus=all" not in words
    assert not any("VISIBLE_DEVICES" in word for word in words)
    assert words[-4:] == ["image:1", "python3", "run.py", "/t/1 x"]


def test_nothing_is_more_than_the_job_has(tmp_path: Path) -> None:
    _, words, _ = _given(
        tmp_path,
        "nvidia",
        SLURM_STEP_GPUS="1",
        SLURM_MEM_PER_NODE="4096",
        SLURM_NTASKS_PER_NODE="2",
    )
    assert {"--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only"} <= set(words)
    assert {"--memory=2048m", "--memory-swap=2048m"} <= set(words)
    cores = next(word for word in words if word.startswith("--cpuset-cpus="))
    assert cores.split("=")[1]
    assert f"--user={os.getuid()}:{os.getgid()}" in words


def test_memory_that_is_stated_for_each_core_counts_too(tmp_path: Path) -> None:
    more = {"SLURM_STEP_GPUS": "1", "SLURM_MEM_PER_CPU": "200", "SLURM_CPUS_ON_NODE": "4"}
    assert "--memory=800m" in _given(tmp_path, "nvidia", **more)[1]
    assert not any(word.startswith("--memory") for word in _given(tmp_path, "nvidia", SLURM_STEP_GPUS="1")[1])


def test_amd_gets_the_render_nodes_of_the_gpus_of_the_step(tmp_path: Path) -> None:
    _kfd(tmp_path, (0, 0, 128, 136, 144, 152))  # two CPUs, then four GPUs
    code, words, _ = _given(tmp_path, "amd", SLURM_STEP_GPUS="1,3", ROCR_VISIBLE_DEVICES="0,1")
    assert code == 0
    devices = [word for word in words if word.startswith("--device=")]
    assert devices == ["--device=/dev/kfd", "--device=/dev/dri/renderD136", "--device=/dev/dri/renderD152"]
    assert "--group-add=44" in words
    assert not any("ROCR" in word for word in words)


@pytest.mark.parametrize("vendor", ["nvidia", "amd"])
def test_without_ids_no_container_is_started(tmp_path: Path, vendor: str) -> None:
    _kfd(tmp_path, (0, 128, 136))
    code, words, said = _given(tmp_path, vendor)
    assert (code, words) == (69, [])
    assert "SLURM_STEP_GPUS is not set" in said
    assert "cluster.exclusive: true" in said


def test_whole_nodes_may_use_all_gpus(tmp_path: Path) -> None:
    _kfd(tmp_path, (0, 128, 136))
    cluster = "exclusive: true, gpu_directive: none"
    assert "--gpus=all" in _given(tmp_path, "nvidia", cluster=cluster)[1]
    words = _given(tmp_path, "amd", cluster=cluster)[1]
    assert {"--device=/dev/dri/renderD128", "--device=/dev/dri/renderD136"} <= set(words)


def test_whole_nodes_still_give_only_what_the_step_has(tmp_path: Path) -> None:
    words = _given(tmp_path, "nvidia", cluster="exclusive: true", SLURM_STEP_GPUS="0")[1]
    assert '--gpus="device=0","capabilities=compute,utility"' in words


def test_a_gpu_without_a_render_node_is_named(tmp_path: Path) -> None:
    _kfd(tmp_path, (0, 128))
    code, words, said = _given(tmp_path, "amd", SLURM_STEP_GPUS="0,1")
    assert (code, words) == (69, [])
    assert "no render node of GPU 1" in said


def test_a_job_without_gpus_gets_none(tmp_path: Path) -> None:
    code, words, _ = _given(tmp_path, "nvidia", resources="gpus: 0")
    assert code == 0
    assert "--env=NVIDIA_VISIBLE_DEVICES=void" in words
    assert not any(word.startswith("--gpus") for word in words)


def test_gpus_that_slurm_is_not_asked_for_are_refused_unless_the_node_is_whole() -> None:
    made = plan(cluster="runtime: docker, gpu_directive: none")
    settings = made.job.cluster.of_site(None)
    with pytest.raises(UsageError, match="must be told which GPUs"):
        docker_words(made.job, settings, "image:1", [], CWD, "nvidia")
