"""Which runtime and driver calls launch kernels and graphs, NVIDIA and AMD."""

from __future__ import annotations

from profrun.analysis.trace.frame import Frame

BLOCKING_SHARE = 0.9
"""Share of launches that return after their kernel from which a recording counts as blocking."""
BLOCKING_LAUNCHES = 5
"""Fewer placed launches tell nothing."""

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


def blocking_share(source: Frame) -> float | None:
    """Share of placed launches whose call returned only after their kernel had ended; None without
    launches."""
    kernels = source.of("kernel")
    kernels = kernels[source.launch[kernels] >= 0]
    kernels = kernels[source.is_kind(source.launch[kernels], "api")]
    if not len(kernels):
        return None
    return float((source.end[source.launch[kernels]] >= source.end[kernels]).mean())


def looks_blocking(source: Frame) -> bool:
    """Does the timing of the launches say that they were blocking?"""
    share = blocking_share(source)
    enough = int((source.launch[source.of("kernel")] >= 0).sum()) >= BLOCKING_LAUNCHES
    return share is not None and share >= BLOCKING_SHARE and enough
