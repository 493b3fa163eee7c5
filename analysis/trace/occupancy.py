"""Estimated achieved occupancy from a kernel's resources, where the profiler gave none.

NVIDIA: the calculation of ``cuda_occupancy.h`` (resident blocks by warps, registers, shared memory and block
slots), then kineto's formula (``libkineto/src/DeviceProperties.cpp``): min(resident blocks, blocks per SM) x
block size / max threads per SM. AMD: waves per SIMD by VGPRs and LDS (AMD's ISA guides). NULL stays NULL: a
device or kernel whose properties are not known has no occupancy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profrun.traces.schema import DeviceRow

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SmLimits:
    """Limits per SM of a compute capability, which no tool reports.

    Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability";
    ``cuda_occupancy.h``.

    Attributes:
        blocks: resident blocks.
        register_unit: registers that are given out at once to a warp.
        smem_unit: bytes of shared memory that are given out at once.
        smem_reserved: bytes of shared memory per block that the system keeps.
    """

    blocks: int
    register_unit: int
    smem_unit: int
    smem_reserved: int


_BLOCKS = {16: (75, 86, 87), 24: (89, 120), 32: (50, 52, 53, 60, 61, 62, 70, 72, 80, 90, 100, 103)}
"""Resident blocks per SM -> compute capabilities."""


def _nvidia_limits(arch: str | None) -> SmLimits | None:
    """Limits of sm_80, sm_90, ...; None for an architecture that is not known."""
    hit = re.match(r"sm_(\d+)", arch or "")
    version = int(hit[1]) if hit else -1
    blocks = next((count for count, versions in _BLOCKS.items() if version in versions), None)
    if blocks is None:
        return None
    return SmLimits(blocks, 256, 128 if version >= 80 else 256, 1024 if version >= 80 else 0)


def estimate_occupancy(
    device: DeviceRow, blocks: Floats, threads: Floats, registers: Floats, smem: Floats
) -> Floats:
    """Estimated achieved occupancy of kernels on a device.

    Args:
        device: a row of the devices table.
        blocks: blocks of the grid, float64, shape (kernels,); NaN for NULL, as in the other columns.
        threads: threads per block.
        registers: registers per thread (VGPRs on AMD).
        smem: bytes of shared memory per block.

    Returns:
        float64, shape (kernels,), from 0 to 1; NaN where it cannot be known.
    """
    if device["vendor"] == "nvidia":
        return _nvidia(device, blocks, threads, registers, smem)
    if device["vendor"] == "amd":
        return _amd(device, blocks, threads, registers, smem)
    return np.full(len(blocks), np.nan)


def _ceil_to(values: Floats, unit: int) -> Floats:
    return np.asarray(np.ceil(values / unit) * unit)


def _nvidia(device: DeviceRow, blocks: Floats, threads: Floats, registers: Floats, smem: Floats) -> Floats:
    limits = _nvidia_limits(device.get("arch"))
    sm_count, max_threads = device.get("sm_count"), device.get("max_threads_per_sm")
    regs, shared = device.get("regs_per_sm"), device.get("smem_per_sm")
    if limits is None or not sm_count or not max_threads or not regs or not shared:
        return np.full(len(blocks), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        warps = np.ceil(threads / 32)
        by_warps = np.floor(max_threads // 32 / warps)
        # registers are given out per warp, in units, from four equal partitions
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


def _amd(device: DeviceRow, blocks: Floats, threads: Floats, registers: Floats, smem: Floats) -> Floats:
    arch, units = device.get("arch") or "", device.get("sm_count")
    if not units or arch not in ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"):
        return np.full(len(blocks), np.nan)
    slots, lds = 8, 163840 if arch == "gfx950" else 65536  # waves per SIMD; bytes per CU
    with np.errstate(invalid="ignore", divide="ignore"):
        waves = np.ceil(threads / 64)
        by_registers = np.minimum(np.floor(512 / _ceil_to(registers, 8)), slots)  # 512 unified VGPRs per lane
        resident = np.floor(by_registers * 4 / waves)  # four SIMDs per CU
        resident = np.minimum(resident, np.where(smem > 0, np.floor(lds / _ceil_to(smem, 512)), np.inf))
        found = np.minimum(resident, blocks / units) * waves / (slots * 4)
    found[np.isnan(registers) | (registers <= 0) | (threads <= 0)] = np.nan
    return np.asarray(np.minimum(found, 1.0))
