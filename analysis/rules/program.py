"""What a program already does, as its trace shows: ``Program``. No rule advises what is there already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.analysis.trace.frame import Index, frame
from profrun.analysis.trace.kernels import kernels
from profrun.analysis.trace.roles import kernel_names
from profrun.analysis.trace.runtime_calls import is_graph_launch

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

MOST = 0.5
"""Part of the launches or of the time from which a program counts as doing something."""
HALF_TYPES = frozenset({"fp16", "bf16", "fp8"})


@dataclass(frozen=True)
class Program:
    """What a program does.

    Attributes:
        torch: it runs PyTorch, by its ops or kernels.
        graphs: most of its kernels were launched by CUDA or HIP graphs.
        compiled: torch.compile made part of it.
        half: most of the time of its matrix kernels is in fp16, bf16 or fp8.
        tf32: some matrix kernels run in TF32.
        loader_workers: its DataLoader has worker processes; None where no DataLoader is recorded.
    """

    torch: bool
    graphs: bool
    compiled: bool
    half: bool
    tf32: bool
    loader_workers: bool | None

    @property
    def launch_remedy(self) -> str:
        """The same as ``launch_advice`` in a few words."""
        ways = ["larger batches"]
        if self.torch and not self.compiled:
            ways.append("torch.compile")
        if not self.graphs:
            ways.append("CUDA graphs")
        return ", ".join(ways)

    @property
    def launch_advice(self) -> str:
        """How to make launches fewer or cheaper, in ways that the program does not use yet."""
        if not self.torch:
            return (
                "Give the GPU more work per launch: larger batches, fewer and larger kernels"
                f"{'' if self.graphs else ', CUDA or HIP graphs'}; do other work of the host beside the "
                "GPU's."
            )
        ways = ["larger batches"]
        if not self.compiled:
            ways.append("torch.compile")
        if not self.graphs:
            ways.append("CUDA or HIP graphs (torch.compile with mode='reduce-overhead' makes them)")
        ways.append("fused or foreach optimizers")
        more = " Compile larger regions: graph breaks leave eager code between them." if self.compiled else ""
        if self.graphs:
            more += " Put into the graph what still runs outside of it."
        return f"Do more work per launch: {', '.join(ways)}. Move Python work out of the loop.{more}"


def program(trace: Trace, work: Index) -> Program:
    """What the program of a trace does.

    Args:
        trace: the trace.
        work: the GPU slices to judge by.
    """
    source = frame(trace)
    run = work[source.is_kind(work, "kernel")]
    calls = source.launch[run]
    graph = np.zeros(len(run), dtype=bool)
    graph[calls >= 0] = source.named(calls[calls >= 0], is_graph_launch)
    readings = kernel_names(source)
    matrix = half = 0
    for row in kernels(trace):
        if row.category in MATRIX_CATEGORIES and row.dtype is not None:
            matrix += row.total_ns
            half += row.total_ns if row.dtype in HALF_TYPES else 0
    ops, loops = source.of("op"), source.of("op", "range")
    regions = source.named(ops, lambda name: name.startswith("Torch-Compiled Region"))
    fetches = loops[source.named(loops, lambda name: name.startswith("enumerate(DataLoader)#"))]
    return Program(
        torch=bool(source.named(ops, lambda name: name.startswith("aten::")).any())
        or any("at::native" in reading.name for reading in readings.values()),
        graphs=len(run) > 0 and float(graph.mean()) >= MOST,
        compiled=bool(regions.any()) or any(one.family == "inductor" for one in readings.values()),
        half=matrix > 0 and half / matrix >= MOST,
        tf32=any(one.dtype == "tf32" for one in readings.values()),
        loader_workers=_workers(source.text(int(fetches[0]))) if len(fetches) else None,
    )


def _workers(fetch: str) -> bool:
    """Does a DataLoader with worker processes fetch the batch? Its iterator's name tells it."""
    return "MultiProcessing" in fetch
