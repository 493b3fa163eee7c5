"""The docker backend's requests as values, for every kind of host and collector."""

from __future__ import annotations

import csv
import dataclasses
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.backends.docker.cli_args import docker_run
from profrun.backends.docker.request import Container, container, container_name
from profrun.backends.docker.sdk_args import sdk_arguments
from profrun.backends.host import HostFacts, RenderNode, probe_host
from profrun.backends.mounts import parse_mount
from profrun.backends.privileges import needs_with
from profrun.contract.profilers import built_in, profiler
from profrun.errors import UnavailableError, UsageError
from profrun.jobs.model import Job, Resources
from profrun.plans.model import Plan, Trial
from profrun.store.runs import Run
from tests.conftest import ROOT

RUN = Run(Path("/runs/t-0a1b"))
SOURCE = Path("/home/ada/work")
CPU = HostFacts(uid=1001, gid=1002, user="ada")
AMD_NODES = (RenderNode("/dev/dri/renderD128", 992), RenderNode("/dev/dri/renderD129", 992))
HOSTS = {
    "cpu": CPU,
    "nvidia": dataclasses.replace(CPU, nvidia_gpus=2, nvidia_driver=(570, 86, 15)),
    "nvidia-cdi": dataclasses.replace(CPU, nvidia_gpus=2, nvidia_driver=(570, 86, 15), nvidia_cdi=True),
    "nvidia-old-engine": dataclasses.replace(CPU, nvidia_gpus=2, nvidia_cdi=True, api=(1, 41)),
    "nvidia-old-driver": dataclasses.replace(CPU, nvidia_gpus=2, nvidia_driver=(550, 54, 14)),
    "nvidia-open": dataclasses.replace(CPU, nvidia_gpus=1, nvidia_driver=(570, 1), nvidia_counters=True),
    "amd": dataclasses.replace(CPU, amd_gpus=AMD_NODES, kfd_gid=993, paranoid=4),
    "amd-cdi": dataclasses.replace(CPU, amd_gpus=AMD_NODES, kfd_gid=993, amd_cdi=True),
    "amd-runtime": dataclasses.replace(CPU, amd_gpus=AMD_NODES, kfd_gid=993, amd_runtime=True),
    "amd-open": dataclasses.replace(CPU, amd_gpus=AMD_NODES, kfd_gid=993, paranoid=2),
    "rootless": dataclasses.replace(CPU, rootless=True, raise_limits=False),
    "podman": dataclasses.replace(CPU, rootless=True, raise_limits=False, podman=True),
    "weak-engine": dataclasses.replace(CPU, raise_limits=False),
    "selinux": dataclasses.replace(CPU, selinux=True),
    "root": dataclasses.replace(CPU, uid=0, gid=0, user="root", nvidia_gpus=1, nvidia_driver=(570, 1)),
}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "torch": {"with_stack": True},
    "nsys": {},
    "nsys-sample": {"sample": "process-tree"},
    "nsys-metrics": {"gpu_metrics": "all"},
    "ncu": {},
    "rocprof": {},
    "rocprof-pmc": {"pmc": [["SQ_WAVES"]]},
}


def asked(host: str = "cpu", collector: str = "none", image: str = "img:1", **job: Any) -> Container:
    """The container of a one-trial job on one of the hosts."""
    spec = Job(name="transformer", command="python train.py", **job)
    trial = Trial(
        0, f"000-a-{collector}-r1", "a", {}, collector.partition("-")[0], False, 1, ("python", "train.py"),
        options={collector.partition("-")[0]: OPTIONS[collector]},
    )  # fmt: skip
    return container(Plan(spec, (trial,)), trial, RUN, SOURCE, HOSTS[host], image)


def options_of(text: str) -> list[str]:
    """The options of a `docker run` line, one each, without the shell's quoting."""
    return [" ".join(shlex.split(line)) for line in text.split(" \\\n  ")[1:]]


def test_the_whole_line_of_a_cpu_trial() -> None:
    assert (
        docker_run(asked())
        == """docker run \\
  --rm \\
  --init \\
  --name profrun-t-0a1b-000-a-none-r1-65edd1 \\
  --hostname profrun \\
  --user 1001:1002 \\
  --cap-drop ALL \\
  --security-opt no-new-privileges \\
  --network none \\
  --shm-size 17179869184 \\
  --ulimit memlock=-1:-1 \\
  --ulimit stack=67108864:67108864 \\
  --log-driver json-file \\
  --log-opt max-size=10m \\
  --stop-timeout 80 \\
  --label profrun.path=/runs/t-0a1b/trials/000-a-none-r1 \\
  --label profrun.role=trial \\
  --label profrun.run=t-0a1b \\
  --label profrun.trial=000-a-none-r1 \\
  --env HOME=/tmp \\
  --env LOGNAME=ada \\
  --env NVIDIA_VISIBLE_DEVICES=void \\
  --env USER=ada \\
  --mount type=bind,source=/home/ada/work,target=/home/ada/work,readonly \\
  --mount type=bind,source=/runs/t-0a1b/bundle,target=/runs/t-0a1b/bundle,readonly \\
  --mount type=bind,source=/runs/t-0a1b/trials/000-a-none-r1,target=/runs/t-0a1b/trials/000-a-none-r1 \\
  --workdir /runs/t-0a1b/trials/000-a-none-r1 \\
  --entrypoint python3 \\
  img:1 \\
  /runs/t-0a1b/bundle/run.py /runs/t-0a1b/trials/000-a-none-r1"""
    )


def test_the_whole_body_of_a_cpu_trial() -> None:
    trial = f"{RUN.path}/trials/000-a-none-r1"
    assert sdk_arguments(asked()) == {
        "create": {
            "name": "profrun-t-0a1b-000-a-none-r1-65edd1",
            "image": "img:1",
            "entrypoint": ["python3"],
            "command": [f"{RUN.path}/bundle/run.py", trial],
            "user": "1001:1002",
            "hostname": "profrun",
            "working_dir": trial,
            "environment": {
                "HOME": "/tmp",
                "LOGNAME": "ada",
                "NVIDIA_VISIBLE_DEVICES": "void",
                "USER": "ada",
            },
            "labels": {
                "profrun.path": trial,
                "profrun.role": "trial",
                "profrun.run": RUN.name,
                "profrun.trial": "000-a-none-r1",
            },
            "stop_timeout": 80,
        },
        "host_config": {
            "auto_remove": True,
            "init": True,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "network_mode": "none",
            "mounts": [
                {"Type": "bind", "Source": str(SOURCE), "Target": str(SOURCE), "ReadOnly": True},
                {
                    "Type": "bind",
                    "Source": f"{RUN.path}/bundle",
                    "Target": f"{RUN.path}/bundle",
                    "ReadOnly": True,
                },
                {"Type": "bind", "Source": trial, "Target": trial, "ReadOnly": False},
            ],
            "log_config": {"Type": "json-file", "Config": {"max-size": "10m"}},
            "ulimits": [
                {"name": "memlock", "soft": -1, "hard": -1},
                {"name": "stack", "soft": 67108864, "hard": 67108864},
            ],
            "shm_size": 16 << 30,
        },
        "secrets": [],
        "env_file": None,
    }


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
    "podman": ({"--ulimit memlock=-1:-1"}, {"--userns keep-id"}),
    "weak-engine": ({"--ulimit memlock=-1:-1"}, set()),
    "selinux": (set(), {"--security-opt label=disable"}),
}


@pytest.mark.parametrize("host", GPU_CHANGES)
def test_what_a_host_changes(host: str) -> None:
    gpus = HOSTS[host].gpus
    changed = set(options_of(docker_run(asked(host, resources=Resources(gpus=gpus)))))
    plain = set(options_of(docker_run(asked())))
    assert (plain - changed, changed - plain) == GPU_CHANGES[host]


def test_nvidia_requests_of_the_sdk() -> None:
    plain = sdk_arguments(asked("nvidia", resources=Resources(gpus=1)))["host_config"]["device_requests"]
    cdi = sdk_arguments(asked("nvidia-cdi", resources=Resources(gpus=1)))["host_config"]["device_requests"]
    assert plain == [{"device_ids": ["0"], "capabilities": [["gpu", "compute", "utility"]]}]
    assert cdi == [{"driver": "cdi", "device_ids": ["nvidia.com/gpu=0"]}]


def test_auto_is_one_gpu_where_there_is_one() -> None:
    assert asked("cpu").gpus.device_requests == ()
    assert asked("nvidia-cdi").gpus.device_requests[0]["device_ids"] == ["nvidia.com/gpu=0"]
    assert asked("amd").gpus.devices == ("/dev/kfd", "/dev/dri/renderD128")


# host, collector -> capabilities added. Everything that is not here adds none.
CAPABILITIES = {
    ("cpu", "nsys-sample"): ("PERFMON",),
    ("nvidia", "nsys-sample"): ("PERFMON",),
    ("nvidia", "nsys-metrics"): ("PERFMON",),
    ("nvidia", "ncu"): ("PERFMON",),
    ("nvidia-old-driver", "nsys-sample"): ("PERFMON",),
    ("nvidia-old-driver", "nsys-metrics"): ("SYS_ADMIN",),
    ("nvidia-old-driver", "ncu"): ("SYS_ADMIN",),
    ("nvidia-old-engine", "nsys-sample"): ("SYS_ADMIN",),
    ("nvidia-old-engine", "nsys-metrics"): ("SYS_ADMIN",),
    ("nvidia-old-engine", "ncu"): ("SYS_ADMIN",),
    ("nvidia-open", "nsys-sample"): ("PERFMON",),
    ("amd", "nsys-sample"): ("PERFMON",),
    ("amd", "rocprof-pmc"): ("PERFMON",),
    ("amd-open", "nsys-sample"): ("PERFMON",),
}
MANY = ("cpu", "nvidia", "nvidia-old-driver", "nvidia-old-engine", "nvidia-open", "amd", "amd-open")


@pytest.mark.parametrize("collector", OPTIONS)
@pytest.mark.parametrize("host", MANY)
def test_privileges(host: str, collector: str) -> None:
    wanted = CAPABILITIES.get((host, collector), ())
    found = asked(host, collector)
    if not wanted:
        assert found.cap_add == ()
        assert found.user == "1001:1002"
        assert found.argv[0] == "python3"
        return
    # Engines give capabilities to root only: it starts as root, becomes the caller, keeps that one.
    assert set(found.cap_add) == {*wanted, "SETUID", "SETGID", "SETPCAP"}
    assert found.user == "0:0"
    keep = "-all," + ",".join(f"+{name.lower()}" for name in wanted)
    words = " ".join(found.argv[: found.argv.index("python3")])
    groups = f"--groups {','.join(map(str, found.groups))}" if found.groups else "--clear-groups"
    assert words == (
        f"setpriv --reuid 1001 --regid 1002 {groups} --inh-caps={keep} --ambient-caps={keep}"
        f" --bounding-set={keep} --"
    )


def test_a_root_caller_needs_no_setpriv() -> None:
    found = asked("root", "ncu")
    assert (found.user, found.cap_add, found.argv[0]) == ("0:0", ("PERFMON",), "python3")


def test_never_privileged() -> None:
    for host in HOSTS:
        for collector in OPTIONS:
            what = asked(host, collector)
            said = docker_run(what) + json.dumps(sdk_arguments(what))
            for word in (
                "--privileged",
                '"privileged"',
                "seccomp",
                "apparmor",
                "SYS_PTRACE",
                "--pid",
                "--ipc",
            ):
                assert word not in said


def test_options_that_are_off_need_nothing() -> None:
    for off in ("none", False, None, ""):
        options = {"sample": off, "cpuctxsw": off, "gpu_metrics": off}
        assert needs_with(profiler("nsys"), options, "nvidia") == ()
    assert {found.name for found in built_in() if found.privileges} == {"nsys", "ncu", "rocprof"}


def test_the_page_names_every_need() -> None:
    page = (ROOT / "docs/containers.md").read_text()
    rows = page[page.index("## Privileges") : page.index("## Without a registry")]
    for found in built_in():
        for need in found.privileges:
            assert f"`{found.name}`" in rows
            assert need.option is None or f"`{need.option}`" in rows


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


def test_secrets_are_names_never_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret")
    what = asked(secrets=("HF_TOKEN",), env_file="private.env")
    said = docker_run(what) + json.dumps(sdk_arguments(what))
    assert "hf_very_secret" not in said
    assert "--env HF_TOKEN" in options_of(docker_run(what))
    assert "--env-file /home/ada/work/private.env" in options_of(docker_run(what))


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


def test_more_gpus_than_there_are() -> None:
    with pytest.raises(UnavailableError, match="asks for 3 GPUs, and this machine has 2"):
        asked("nvidia", resources=Resources(gpus=3))


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


@given(st.text("ab, \"'$\\:=é", min_size=1, max_size=12).filter(lambda text: text.strip("/. ")))
def test_line_and_body_say_the_same_whatever_the_paths(name: str) -> None:
    """The line, read back as a shell and docker's CSV do, gives the SDK's arguments."""
    trial = Trial(0, "000-a-none-r1", "a", {}, "none", False, 1, ("x",))
    run = Run(Path("/runs") / name / "r-1")
    what = container(Plan(Job(name="j", command="x"), (trial,)), trial, run, Path("/src") / name, CPU, "i")
    words = shlex.split(docker_run(what).replace(" \\\n", " "))
    mounts = []
    for at, word in enumerate(words):
        if word == "--mount":
            fields = next(csv.reader([words[at + 1]]))
            pairs = dict(field.partition("=")[::2] for field in fields)
            mounts.append(
                {
                    "Type": "bind",
                    "Source": pairs["source"],
                    "Target": pairs["target"],
                    "ReadOnly": "readonly" in pairs,
                }
            )
    asked_for = sdk_arguments(what)
    assert mounts == asked_for["host_config"]["mounts"]
    assert words[words.index("i") + 1 :] == asked_for["create"]["command"]
    assert words[words.index("--workdir") + 1] == asked_for["create"]["working_dir"]


def _write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_probe_of_an_nvidia_host(tmp_path: Path) -> None:
    root = _write(
        tmp_path,
        {
            "proc/driver/nvidia/gpus/0000:19:00.0/information": "",
            "proc/driver/nvidia/gpus/0000:3b:00.0/information": "",
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat\n",
            "proc/driver/nvidia/params": "Foo: 1\nRmProfilingAdminOnly: 1\n",
            "etc/cdi/nvidia.yaml": 'cdiVersion: "0.5.0"\nkind: nvidia.com/gpu\ndevices: []\n',
            "proc/sys/kernel/perf_event_paranoid": "4\n",
        },
    )
    facts = probe_host(root, {})
    assert (facts.vendor, facts.gpus, facts.nvidia_driver) == ("nvidia", 2, (535, 161, 8))
    assert (facts.nvidia_cdi, facts.nvidia_counters, facts.paranoid) == (True, False, 4)
    assert (facts.amd_cdi, facts.amd_gpus) == (False, ())


def test_probe_of_an_open_kernel_module(tmp_path: Path) -> None:
    text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n"
    root = _write(tmp_path, {"proc/driver/nvidia/version": text})
    assert probe_host(root, {}).nvidia_driver == (570, 86, 15)


def test_probe_of_an_amd_host(tmp_path: Path) -> None:
    """Two sockets come first in KFD's list and have no render minor; ROCm's GPU 0 is renderD129 here."""
    root = _write(
        tmp_path,
        {
            "dev/kfd": "",
            "dev/dri/renderD128": "",
            "dev/dri/renderD129": "",
            "sys/class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 96\ndrm_render_minor 0\n",
            "sys/class/kfd/kfd/topology/nodes/1/properties": "cpu_cores_count 96\ndrm_render_minor 0\n",
            "sys/class/kfd/kfd/topology/nodes/2/properties": "simd_count 1216\ndrm_render_minor 129\n",
            "sys/class/kfd/kfd/topology/nodes/10/properties": "simd_count 1216\ndrm_render_minor 128\n",
            "etc/docker/daemon.json": '{"runtimes": {"amd": {"path": "amd-container-runtime"}}}',
            "etc/cdi/amd.json": '{"cdiVersion": "0.6.0", "kind": "amd.com/gpu"}',
        },
    )
    facts = probe_host(root, {})
    gid = (root / "dev/kfd").stat().st_gid
    assert facts.vendor == "amd"
    assert facts.amd_gpus == (RenderNode("/dev/dri/renderD129", gid), RenderNode("/dev/dri/renderD128", gid))
    assert (facts.kfd_gid, facts.amd_cdi, facts.amd_runtime) == (gid, True, True)


@pytest.mark.parametrize(("mask", "may"), [("000001ffffffffff", True), ("000001fffeffffff", False)])
def test_probe_of_the_engines_capabilities(tmp_path: Path, mask: str, may: bool) -> None:
    status = f"Name: dockerd\nCapEff:\t{mask}\n"
    root = _write(tmp_path, {"var/run/docker.pid": "77\n", "proc/77/status": status})
    assert probe_host(root, {}).raise_limits is may
    assert probe_host(tmp_path / "without", {}).raise_limits


def test_probe_of_the_caller(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.getuid", lambda: 0)
    behind = probe_host(tmp_path, {"SUDO_UID": "4711", "SUDO_GID": "4712"})
    assert (behind.uid, behind.gid, behind.user) == (4711, 4712, "user4711")
    assert probe_host(tmp_path, {}).uid == 0
    monkeypatch.setattr("os.getuid", lambda: 1000)
    assert probe_host(tmp_path, {"DOCKER_HOST": "unix:///run/user/1000/docker.sock"}).rootless
    podman = probe_host(tmp_path, {"DOCKER_HOST": "unix:///run/user/1000/podman/podman.sock"})
    assert (podman.rootless, podman.podman) == (True, True)
    assert not probe_host(tmp_path, {"SUDO_UID": "1", "DOCKER_HOST": "unix:///var/run/docker.sock"}).rootless
