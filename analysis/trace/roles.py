"""What each GPU slice is: compute, communication, copy or fill.

The slice's kind, the kernel's name and the collectives table decide it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.kernel_names import KernelName, read_kernel
from profrun.analysis.trace.columns import int_column
from profrun.analysis.trace.frame import KIND, Frame, Index, frame
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

COMPUTE, COMM, MEMCPY, MEMSET = 0, 1, 2, 3
"""Codes of ``roles``."""
ROLES = ("compute", "comm", "memcpy", "memset")
"""Names of the roles, by code."""


@memoised
def kernel_names(source: Frame) -> dict[int, KernelName]:
    """What the name of each kernel tells, by name id."""
    ids = np.unique(source.name[source.of("kernel")])
    return {int(number): read_kernel(source.names[number]) for number in ids}


@memoised
def roles(trace: Trace) -> NDArray[np.int8]:
    """Role of every slice by slice id, shape (slices,), -1 for what is no GPU work.

    A kernel communicates when its name or the collectives table tells it. AMD's runtime copies and fills with
    kernels of its own (``__amd_rocclr_*``); they are memcpy and memset here, as they are on NVIDIA.
    """
    source = frame(trace)
    by_name = np.zeros(len(source.names) + 1, dtype=np.int8)
    for number, kernel in kernel_names(source).items():
        if kernel.category == "collective":
            by_name[number] = COMM
        elif kernel.family == "rocclr":
            by_name[number] = MEMSET if "fill" in kernel.name.lower() else MEMCPY
    found = np.full(len(source), -1, dtype=np.int8)
    kernels = source.of("kernel")
    found[kernels] = by_name[source.name[kernels]]
    found[source.of("memcpy")] = MEMCPY
    found[source.of("memset")] = MEMSET
    listed = int_column(trace.tables, "collectives", "slice", np.int64)
    found[listed[source.kind[listed] == KIND["kernel"]]] = COMM
    return found


def on_device(source: Frame, ids: Index, device: int) -> Index:
    """Those of the ids that ran on one device."""
    return np.asarray(ids[source.device_of(ids) == device])
