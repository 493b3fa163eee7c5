"""GPU vendors by driver and device, and the variables that steer the GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.in_job import vendor
from tests.in_job.roots import fake_root

NODES = "sys/class/kfd/kfd/topology/nodes"


def test_vendors_are_found_by_driver_and_device(tmp_path: Path) -> None:
    nvidia = {"proc/driver/nvidia/version": "NVRM", "dev/nvidia0": ""}
    amd = {
        "dev/kfd": "",
        f"{NODES}/0/properties": "simd_count 0\n",
        f"{NODES}/1/properties": "simd_count 1216\n",
    }
    assert vendor.detect(fake_root(tmp_path / "n", nvidia))[0] == "nvidia"
    assert vendor.detect(fake_root(tmp_path / "a", amd))[0] == "amd"
    assert (
        vendor.detect(
            fake_root(tmp_path / "cpu", {"dev/kfd": "", f"{NODES}/0/properties": "simd_count 0\n"})
        )[0]
        == "none"
    )
    assert [gpu["node"] for gpu in vendor.amd_gpus(tmp_path / "a")] == ["1"]


@pytest.mark.parametrize(
    ("gpu", "blocking", "expected"),
    [
        ("nvidia", True, {"CUDA_LAUNCH_BLOCKING": "1"}),
        ("amd", True, {"HIP_LAUNCH_BLOCKING": "1", "AMD_SERIALIZE_KERNEL": "3"}),
        ("nvidia", False, {}),
        ("amd", False, {}),
    ],
)
def test_blocking_by_vendor_leaves_nothing_of_the_other(
    gpu: str, blocking: bool, expected: dict[str, str]
) -> None:
    env = {"CUDA_LAUNCH_BLOCKING": "0", "HIP_LAUNCH_BLOCKING": "0", "AMD_SERIALIZE_KERNEL": "0"}
    vendor.blocking_env(env, gpu, blocking=blocking)
    assert env == expected


def test_one_visibility_variable_is_kept() -> None:
    slurm = {"CUDA_VISIBLE_DEVICES": "2", "ROCR_VISIBLE_DEVICES": "2", "GPU_DEVICE_ORDINAL": "2"}
    amd, nvidia, only = dict(slurm), dict(slurm), {"HIP_VISIBLE_DEVICES": "1"}
    assert len(vendor.visible_env(amd, "amd")) == len(vendor.visible_env(nvidia, "nvidia")) == 2
    vendor.visible_env(only, "amd")
    assert (amd, nvidia) == ({"ROCR_VISIBLE_DEVICES": "2"}, {"CUDA_VISIBLE_DEVICES": "2"})
    assert only == {"HIP_VISIBLE_DEVICES": "1"}


def test_nvidia_smi_rows_and_throttle_bits() -> None:
    names = ["index", "name", "power.draw", "temperature.gpu", "clocks_throttle_reasons.active"]
    row = vendor._gpu(names, "0, NVIDIA H200, 71.25, [N/A], 0x0000000000000024")
    assert row == {
        "index": 0,
        "name": "NVIDIA H200",
        "power_draw": 71.25,
        "temperature_gpu": None,
        "clocks_throttle_reasons_active": "0x0000000000000024",
        "throttled_by": ["sw_power_cap", "sw_thermal_slowdown"],
    }


@pytest.mark.parametrize(
    ("env", "whose", "ordinal", "expected"),
    [
        ({}, "nvidia", 0, None),
        ({"CUDA_VISIBLE_DEVICES": ""}, "nvidia", 0, None),
        ({"CUDA_VISIBLE_DEVICES": "3"}, "nvidia", 0, 3),
        ({"CUDA_VISIBLE_DEVICES": "2, 5"}, "nvidia", 1, 5),
        ({"CUDA_VISIBLE_DEVICES": "2,5"}, "nvidia", 2, None),
        ({"CUDA_VISIBLE_DEVICES": "2,-1,5"}, "nvidia", 1, None),
        ({"CUDA_VISIBLE_DEVICES": "GPU-e1c0937b,1"}, "nvidia", 1, None),
        ({"HIP_VISIBLE_DEVICES": "4"}, "amd", 0, 4),
        (
            {"ROCR_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "1"},
            "amd",
            0,
            None,
        ),  # one filters the other
    ],
)
def test_the_number_of_a_gpu_on_its_host(
    env: dict[str, str], whose: str, ordinal: int, expected: int | None
) -> None:
    assert vendor.host_ordinal(env, whose, ordinal) == expected
