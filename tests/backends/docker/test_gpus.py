"""How a container is given GPUs, for every kind of host."""

from __future__ import annotations

import pytest

from profrun.backends.docker.cli_args import docker_run
from profrun.backends.docker.gpus import gpus
from profrun.backends.docker.request import RAISE_STACK
from profrun.backends.docker.sdk_args import sdk_arguments
from profrun.errors import UnavailableError
from profrun.jobs.model import Resources
from tests.backends.docker.containers import HOSTS, asked, options_of

WRAPPER = "/runs/t-0a1b/bundle/run.py /runs/t-0a1b/trials/000-a-none-r1"

# What each host changes of the CPU line above: (removed options, added options).
GPU_CHANGES = {
    "nvidia": (
        {"--env NVIDIA_VISIBLE_DEVICES=void"},
        {'--gpus "device=0,1","capabilities=compute,utility"'},
    ),
    "nvidia-cdi": (
        {"--env NVIDIA_VISIBLE_DEVICES=void"},
        {"--device nvidia.com/gpu=0", "--device nvidia.com/gpu=1"},
    ),
    "nvidia-old-engine": (
        {"--env NVIDIA_VISIBLE_DEVICES=void"},
        {'--gpus "device=0,1","capabilities=compute,utility"'},
    ),
    "amd": (
        set(),
        {
            "--device /dev/kfd",
            "--device /dev/dri/renderD128",
            "--device /dev/dri/renderD129",
            "--group-add 992",
            "--group-add 993",
        },
    ),
    "amd-cdi": (
        set(),
        {"--device amd.com/gpu=0", "--device amd.com/gpu=1", "--group-add 992", "--group-add 993"},
    ),
    "amd-runtime": (
        set(),
        {"--runtime amd", "--env AMD_VISIBLE_DEVICES=0,1", "--group-add 992", "--group-add 993"},
    ),
    "rootless": ({"--user 1001:1002", "--ulimit memlock=-1:-1"}, {"--user 0:0"}),
    "podman": (set(), set()),
    "podman-nvidia": (
        {"--env NVIDIA_VISIBLE_DEVICES=void"},
        {"--device nvidia.com/gpu=0", "--device nvidia.com/gpu=1"},
    ),
    "podman-amd": (
        set(),
        {
            "--device /dev/kfd",
            "--device /dev/dri/renderD128",
            "--device /dev/dri/renderD129",
            "--group-add 992",
            "--group-add 993",
        },
    ),
    "rootless-podman": (
        {
            "--user 1001:1002",
            "--ulimit memlock=-1:-1",
            "--ulimit stack=67108864:67108864",
            "--entrypoint python3",
            WRAPPER,
        },
        {
            "--user 0:0",
            "--entrypoint sh",
            " ".join((RAISE_STACK[1], RAISE_STACK[2], "python3", WRAPPER)),
        },
    ),
    "weak-engine": ({"--ulimit memlock=-1:-1"}, set()),
    "selinux": (set(), {"--security-opt label=disable"}),
}


@pytest.mark.parametrize("host", GPU_CHANGES)
def test_what_a_host_changes(host: str) -> None:
    resources = Resources(gpus=HOSTS[host].gpus)
    changed = set(options_of(docker_run(asked(host, resources=resources))))
    plain = set(options_of(docker_run(asked())))
    assert (plain - changed, changed - plain) == GPU_CHANGES[host]


def test_nvidia_requests_of_the_sdk() -> None:
    plain = sdk_arguments(asked("nvidia", resources=Resources(gpus=1)))["host_config"]["device_requests"]
    cdi = sdk_arguments(asked("nvidia-cdi", resources=Resources(gpus=1)))["host_config"]["device_requests"]
    assert plain == [{"device_ids": ["0"], "capabilities": [["gpu", "compute", "utility"]]}]
    assert cdi == [{"driver": "cdi", "device_ids": ["nvidia.com/gpu=0"]}]


@pytest.mark.parametrize(
    ("host", "options"),
    [
        ("nvidia", {'--gpus device=1,"capabilities=compute,utility"'}),
        ("nvidia-cdi", {"--device nvidia.com/gpu=1"}),
        ("amd", {"--device /dev/kfd", "--device /dev/dri/renderD129"}),
        ("amd-cdi", {"--device amd.com/gpu=1"}),
        ("amd-runtime", {"--runtime amd", "--env AMD_VISIBLE_DEVICES=1"}),
    ],
)
def test_a_named_gpu(host: str, options: set[str]) -> None:
    line = options_of(docker_run(asked(host, resources=Resources(gpus=(1,)))))
    flags = ("--gpus", "--device", "--runtime", "--env AMD")
    assert {word for word in line if word.startswith(flags)} == options


def test_a_part_of_a_gpu() -> None:
    plain = gpus(("MIG-a",), HOSTS["nvidia"]).device_requests
    assert plain == ({"device_ids": ["MIG-a"], "capabilities": [["gpu", "compute", "utility"]]},)


def test_auto_is_one_gpu_where_there_is_one() -> None:
    assert asked("cpu").gpus.device_requests == ()
    assert asked("nvidia-cdi").gpus.device_requests[0]["device_ids"] == ["nvidia.com/gpu=0"]
    assert asked("amd").gpus.devices == ("/dev/kfd", "/dev/dri/renderD128")


def test_more_gpus_than_there_are() -> None:
    with pytest.raises(UnavailableError, match="asks for 3 GPUs, and this machine has 2"):
        asked("nvidia", resources=Resources(gpus=3))
