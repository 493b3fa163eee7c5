"""Who uses AMD's GPUs, by the kernel's files; a made-up tree of them."""

from __future__ import annotations

import os
from pathlib import Path

from profrun.in_job.gpu_use import GpuProcess, GpuUse, amd_uses, owner


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_amds_kernel_driver_says_who_uses_them(tmp_path: Path) -> None:
    kfd = "sys/class/kfd/kfd"
    write(
        tmp_path,
        {
            f"{kfd}/topology/nodes/0/properties": "drm_render_minor 0\n",
            f"{kfd}/topology/nodes/1/properties": "simd_count 304\ndrm_render_minor 128\n",
            f"{kfd}/topology/nodes/1/gpu_id": "51140\n",
            f"{kfd}/topology/nodes/2/properties": "simd_count 304\ndrm_render_minor 136\n",
            f"{kfd}/topology/nodes/2/gpu_id": "2938\n",
            f"{kfd}/proc/812/vram_51140": "42949672960\n",
            f"{kfd}/proc/812/vram_2938": "0\n",
            "proc/812/status": "",
            "sys/class/drm/renderD128/device/mem_info_vram_used": "42955000000\n",
            "sys/class/drm/renderD128/device/unique_id": "e5a1b2c3d4f60718\n",
            "sys/class/drm/renderD136/device/mem_info_vram_used": "10850304\n",
        },
    )
    busy, free = amd_uses(["/dev/dri/renderD128", "/dev/dri/renderD136"], tmp_path)
    assert busy == GpuUse(
        0, "GPU-e5a1b2c3d4f60718", 42955000000, (GpuProcess(812, os.getuid(), 42949672960),)
    )
    assert free == GpuUse(1, "", 10850304)
    assert (busy.free, free.free) == (False, True)


def test_files_that_are_not_there_leave_it_open(tmp_path: Path) -> None:
    (found,) = amd_uses(["/dev/dri/renderD128"], tmp_path)
    assert found == GpuUse(0)
    assert found.free
    assert owner(1, tmp_path) is None


def test_what_a_person_reads() -> None:
    gib = 1 << 30
    assert GpuUse(2, "", 5 * gib).text() == "GPU 2 (5.0 GiB in use)"
    assert GpuUse(2, "", None, (GpuProcess(5), GpuProcess(6, 0, gib))).text() == (
        "GPU 2 (pid 5; pid 6 of root, 1.0 GiB)"
    )
    assert GpuUse(2).text() == "GPU 2"
