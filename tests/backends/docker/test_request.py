"""The docker backend's requests as values, for every kind of host and collector."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from profrun.backends.docker.cli_args import docker_run
from profrun.backends.docker.request import container, container_name
from profrun.backends.docker.sdk_args import sdk_arguments
from profrun.backends.host import probe_host
from profrun.backends.mounts import parse_mount
from profrun.errors import UnavailableError, UsageError
from profrun.jobs.model import Job, Resources
from profrun.plans.model import Plan, Trial
from profrun.store.runs import Run
from tests.backends.docker.containers import HOSTS, RUN, SOURCE, asked, options_of


def test_timeline_and_counters_are_resolved_by_the_gpu() -> None:
    spec = Job(name="j", command="x")
    block = {"nsys": {"sample": "process-tree"}, "rocprof": {}}
    trial = Trial(0, "t", "a", {}, "timeline", False, 1, ("x",), options=block)
    on_nvidia = container(Plan(spec, (trial,)), trial, RUN, SOURCE, HOSTS["nvidia"], "i")
    on_amd = container(Plan(spec, (trial,)), trial, RUN, SOURCE, HOSTS["amd"], "i")
    assert "PERFMON" in on_nvidia.cap_add
    assert on_amd.cap_add == ()


def test_stop_timeout_covers_the_profilers_own_time() -> None:
    """grace 60 s + what the collector says it needs (5 s, nsys 120 s) + 15 s for the wrapper."""
    assert asked("cpu", "none").stop_s == 80
    assert asked("nvidia", "nsys").stop_s == 195
    assert asked("cpu", "none", resources=Resources(grace=5.5)).stop_s == 26


def test_resources_network_and_shm() -> None:
    few = Resources(cpus=4, memory=8 << 30, shm=None, gpus=0)
    line = options_of(docker_run(asked(resources=few, network=True)))
    assert {"--cpus 4", "--memory 8589934592 --memory-swap 8589934592", "--network bridge"} <= set(line)
    assert not any(option.startswith("--shm-size") for option in line)
    config = sdk_arguments(asked(resources=few, network=True))["host_config"]
    assert (config["nano_cpus"], config["mem_limit"], config["memswap_limit"]) == (
        4 * 10**9,
        8 << 30,
        8 << 30,
    )
    assert "shm_size" not in config


@pytest.mark.parametrize(
    ("version", "network"), [(None, "slirp4netns"), ((4, 3, 1), "slirp4netns"), ((5, 0), "pasta")]
)
def test_the_network_of_rootless_podman(version: tuple[int, ...] | None, network: str) -> None:
    host = dataclasses.replace(HOSTS["rootless-podman"], engine_version=version)
    trial = Trial(0, "t", "a", {}, "none", False, 1, ("x",))
    for wanted, found in ((True, network), (False, "none")):
        plan = Plan(Job(name="j", command="x", network=wanted), (trial,))
        assert container(plan, trial, RUN, SOURCE, host, "i").network == found


def test_only_tmp_is_writable_beside_the_trial() -> None:
    """Libraries that Triton compiles in /tmp are loaded from there, so it is not noexec."""
    line, config = options_of(docker_run(asked())), sdk_arguments(asked())["host_config"]
    size = 8 << 30
    assert "--read-only" in line
    assert f"--tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777,size={size}" in line
    assert config["read_only"] is True
    assert config["tmpfs"] == {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={size}"}


def test_the_size_of_tmp_and_a_writable_root() -> None:
    small = asked(resources=Resources(tmp=1 << 20))
    engines = asked(resources=Resources(tmp=None))
    free = asked(resources=Resources(writable_root=True))
    assert small.tmpfs["/tmp"].endswith(",size=1048576")
    assert engines.tmpfs["/tmp"].endswith(",mode=1777")
    assert not {"read_only", "tmpfs"} & set(sdk_arguments(free)["host_config"])
    assert not [word for word in options_of(docker_run(free)) if word.startswith(("--read-only", "--tmpfs"))]


def test_job_mounts(tmp_path: Path) -> None:
    found = {m.target: m for m in asked(mounts=("data/set:/data:ro", "/scratch:/scratch")).mounts}
    assert (found["/data"].source, found["/data"].read_only) == ("/home/ada/work/data/set", True)
    assert (found["/scratch"].source, found["/scratch"].read_only) == ("/scratch", False)
    assert parse_mount("~/x:/y:rw", tmp_path).source == str(Path("~/x").expanduser())


def test_a_workdir_outside_is_mounted_too() -> None:
    inside = [m.target for m in asked(workdir="sub").mounts]
    outside = [m.target for m in asked(workdir="../other").mounts]
    assert "/home/ada/work/sub" not in inside
    assert "/home/ada/other" in outside


@pytest.mark.parametrize(
    ("job", "error", "said"),
    [
        ({"resources": Resources(gpus=1)}, UnavailableError, "asks for 1 GPU, and no GPU was found here"),
        ({"resources": Resources(nodes=2)}, UsageError, "the job asks for 2 nodes"),
        ({"mounts": ("/data:/usr",)}, UsageError, "hide the image's own"),
        ({"mounts": ("/da\nta:/x",)}, UsageError, "no control characters"),
    ],
)
def test_what_cannot_be_asked(job: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        asked(**job)


def test_an_engine_elsewhere_is_refused() -> None:
    far = probe_host(Path("/nowhere"), {"DOCKER_HOST": "ssh://ada@gpu1"})
    trial = Trial(0, "t", "a", {}, "none", False, 1, ("x",))
    with pytest.raises(UnavailableError, match="ssh://ada@gpu1 is on another machine"):
        container(Plan(Job(name="j", command="x"), (trial,)), trial, RUN, SOURCE, far, "i")


def test_names_differ_between_folders_and_fit_the_engine() -> None:
    a, b = (
        container_name(RUN, "000-ä b-none-r1"),
        container_name(Run(Path("/other") / RUN.name), "000-ä b-none-r1"),
    )
    assert a != b
    assert a.isascii()
    assert " " not in a
