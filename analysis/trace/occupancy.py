"""Estimated achieved occupancy from a kernel's resources, where the profiler gave none.

NVIDIA: the calculation of ``cuda_occupancy.h`` (resident blocks by warps, registers, shared memory and block
slots), then kineto's formula (``libkineto/src/DeviceProperties.cpp``): min(resident blocks, blocks per SM) x
block size / max threads per SM. AMD: waves per SIMD by VGPRs and LDS (AMD's ISA guides). NULL stays NULL: a
device or kernel whose properties are not known has no occupancy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SmLimits:
    """Per-SM limits of a compute capability that no tool reports (CUDA C programming guide, table of
    technical
    specifications per compute capability; cuda_occupancy.h)."""

    blocks: int
    register_unit: int
    smem_unit: int
    smem_reserved: int


def _nvidia_limits(arch: str | None) -> SmLimits | None:
    hit = re.match(r"sm_(\d+)", arch or "")
    if not hit:
        return None
    version = int(hit[1])
    blocks = {
        50: 32, 52: 32, 53: 32, 60: 32, 61: 32, 62: 32, 70: 32, 72: 32, 75: 16, 80: 32, 86: 16, 87: 16, 89:
            24,
        90: 32, 100: 32, 103: 32, 120: 24,
    }.get(version)  # fmt: skip
    if blocks is None:
        return None
    return SmLimits(blocks, 256, 128 if version >= 80 else 256, 1024 if version >= 80 else 0)


def estimate_occupancy(
    device: dict[str, Any], blocks: Any, threads: Any, registers: Any, smem: Any
) -> Floats:
    """Occupancy 0 to 1 of kernels on a device, NaN where it cannot be known.

    Args:
        device: a row of the devices table.
        blocks, threads, registers, smem: arrays: blocks of the grid, threads a block, registers a thread
            (VGPRs on AMD), bytes of shared memory a block; NaN for NULL.
    """
    arrays = [np.asarray(column, dtype=np.float64) for column in (blocks, threads, registers, smem)]
    if device["vendor"] == "nvidia":
        return _nvidia(device, *arrays)
    if device["vendor"] == "amd":
        return _amd(device, *arrays)
    return np.full(len(arrays[0]), np.nan)


def _ceil_to(values: Floats, unit: int) -> Floats:
    return np.asarray(np.ceil(values / unit) * unit)


def _nvidia(
    device: dict[str, Any], blocks: Floats, threads: Floats, registers: Floats, smem: Floats
) -> Floats:
    limits = _nvidia_limits(device.get("arch"))
    sm_count, max_threads = device.get("sm_count"), device.get("max_threads_per_sm")
    regs, shared = device.get("regs_per_sm"), device.get("smem_per_sm")
    if limits is None or not sm_count or not max_threads or not regs or not shared:
        return np.full(len(blocks), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        warps = np.ceil(threads / 32)
        by_warps = np.floor(max_threads // 32 / warps)
        # registers are given out a warp at a time, in units, from four equal partitions
        each = _ceil_to(registers * 32, limits.register_unit)
        by_registers = np.where(registers > 0, np.floor(np.floor(regs / 4 / each) * 4 / warps), np.inf)
        block_smem = _ceil_to(smem + limits.smem_reserved, limits.smem_unit)
        by_smem = np.where(block_smem > 0, np.floor(shared / block_smem), np.inf)
        resident = np.minimum.reduce(
            [by_warps, by_registers, by_smem, np.full(len(blocks), float(limits.blocks))]
        )
        found = np.minimum(resident, blocks / sm_count) * threads / max_threads
    found[np.isnan(registers) | (threads <= 0)] = np.nan
    return np.asarray(np.minimum(found, 1.0))


def _amd(device: dict[str, Any], blocks: Floats, threads: Floats, registers: Floats, smem: Floats) -> Floats:
    arch, units = device.get("arch") or "", device.get("sm_count")
    if not units or arch not in ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"):
        return np.full(len(blocks), np.nan)
    slots, lds = 8, 163840 if arch == "gfx950" else 65536  # waves a SIMD; bytes a CU
    with np.errstate(invalid="ignore", divide="ignore"):
        waves = np.ceil(threads / 64)
        by_registers = np.minimum(np.floor(512 / _ceil_to(registers, 8)), slots)  # 512 unified VGPRs a lane
        resident = np.floor(by_registers * 4 / waves)  # four SIMDs a CU
        resident = np.minimum(resident, np.where(smem > 0, np.floor(lds / _ceil_to(smem, 512)), np.inf))
        found = np.minimum(resident, blocks / units) * waves / (slots * 4)
    found[np.isnan(registers) | (registers <= 0) | (threads <= 0)] = np.nan
    return np.asarray(np.minimum(found, 1.0))
