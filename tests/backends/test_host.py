"""What is read from the files of a machine: GPUs, driver, capabilities, the caller."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from profrun.backends.host import RenderNode, probe_host
from profrun.images.engine_kind import EngineKind


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
    assert probe_host(tmp_path, {"DOCKER_HOST": "unix:///run/user/1000/docker.sock"}).engine.rootless
    podman = probe_host(tmp_path, {"DOCKER_HOST": "unix:///run/user/1000/podman/podman.sock"})
    assert podman.engine is EngineKind.ROOTLESS_PODMAN
    assert not probe_host(
        tmp_path, {"SUDO_UID": "1", "DOCKER_HOST": "unix:///var/run/docker.sock"}
    ).engine.rootless
