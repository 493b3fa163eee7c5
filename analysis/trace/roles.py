"""What each GPU slice is: compute, communication, copy or fill; by kind, kernel name and the collectives
table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.kernel_names import KernelName, read_kernel
from profrun.analysis.trace.frame import KIND, Frame, Index, Mask

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

COMPUTE, COMM, MEMCPY, MEMSET = 0, 1, 2, 3
ROLES = ("compute", "comm", "memcpy", "memset")


def kernel_names(frame: Frame) -> dict[int, KernelName]:
    """``read_kernel`` of every name id that a kernel has."""
    found: dict[int, KernelName] | None = frame.cache.get("kernel_names")
    if found is None:
        ids = np.unique(frame.name[frame.of("kernel")])
        found = frame.cache["kernel_names"] = {
            int(number): read_kernel(frame.names[number]) for number in ids
        }
    return found


def roles(trace: Trace, frame: Frame) -> NDArray[np.int8]:
    """Role of every slice id, -1 off the GPU.

    A kernel communicates when its name or the collectives table says so. AMD's runtime copies and fills with
    kernels of its own (``__amd_rocclr_*``); they are memcpy and memset here, as they are on NVIDIA.
    """
    found: NDArray[np.int8] | None = frame.cache.get("roles")
    if found is not None:
        return found
    by_name = np.zeros(len(frame.names) + 1, dtype=np.int8)
    for number, kernel in kernel_names(frame).items():
        if kernel.category == "collective":
            by_name[number] = COMM
        elif kernel.family == "rocclr":
            by_name[number] = MEMSET if "fill" in kernel.name.lower() else MEMCPY
    found = np.full(len(frame), -1, dtype=np.int8)
    kernels = frame.of("kernel")
    found[kernels] = by_name[frame.name[kernels]]
    found[frame.of("memcpy")] = MEMCPY
    found[frame.of("memset")] = MEMSET
    rows = trace.tables.execute("SELECT slice FROM collectives").fetchnumpy()["slice"]
    listed = np.asarray(rows, dtype=np.int64)
    listed = listed[frame.kind[listed] == KIND["kernel"]]
    found[listed] = COMM
    frame.cache["roles"] = found
    return found


def select(trace: Trace, frame: Frame, *wanted: int) -> Index:
    """GPU slice ids with one of these roles."""
    ids = frame.gpu
    return np.asarray(ids[np.isin(roles(trace, frame)[ids], wanted)])


def on_device(frame: Frame, ids: Index, device: int) -> Index:
    """Those of the ids that ran on one device."""
    mask: Mask = frame.device_of(ids) == device
    return np.asarray(ids[mask])
