"""Which runtime and driver calls launch kernels and graphs, NVIDIA and AMD."""

from __future__ import annotations

LAUNCH_WORDS = (
    "cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx",
    "cudaLaunchCooperativeKernel", "cuLaunchCooperativeKernel", "cudaGraphLaunch", "cuGraphLaunch",
    "hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "hipExtLaunchKernel",
    "hipGraphLaunch", "hipLaunchCooperativeKernel",
    "hipLaunchByPtr", "hipDrvLaunchKernelEx", "hipLaunchKernelExC",
)  # fmt: skip


def is_launch(name: str) -> bool:
    """Is this runtime call one that enqueues a kernel or a graph? Version and stream suffixes are ignored."""
    base = name.split("_v")[0].removesuffix("_ptsz").removesuffix("_spt")
    return base in LAUNCH_WORDS


def is_graph_launch(name: str) -> bool:
    """Does this runtime call launch a graph?"""
    return "GraphLaunch" in name
