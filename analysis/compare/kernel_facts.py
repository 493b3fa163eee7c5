"""What the names and launches of kernels tell.

``kernel_facts`` is given the GPU slices of the typical samples and returns ``KernelFacts`` by kernel name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.compare.compared_trial import KernelFacts
from profrun.analysis.trace.frame import Frame, Index
from profrun.analysis.trace.roles import kernel_names
from profrun.traces.trace import registered

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

SHAPES = 16
"""Launch shapes kept of one kernel name."""
Shapes = tuple[tuple[str, int], ...]


def kernel_facts(trace: Trace, source: Frame, gpu: Index, names: Mapping[int, str]) -> dict[str, KernelFacts]:
    """Facts by normalised name of these GPU slices.

    Args:
        gpu: ids of the GPU slices of typical samples, shape (n,).
        names: normalised name by name id.
    """
    kernels = kernel_names(source)
    shapes = _launch_shapes(trace, source, gpu, names)
    found: dict[str, KernelFacts] = {}
    for number in map(int, np.unique(source.name[gpu])):
        name, kernel = names[number], kernels.get(number)
        if name in found:
            continue
        if kernel is None:
            found[name] = KernelFacts(source.names[number], name, "copy")
            continue
        found[name] = KernelFacts(
            raw=kernel.name,
            short=kernel.short,
            category=kernel.category,
            layout=kernel.layout,
            dtype=kernel.dtype,
            tile=kernel.tile,
            arch=kernel.arch,
            epilogue=kernel.epilogue,
            fused_ops=kernel.fused_ops,
            shapes=shapes.get(name, ()),
        )
    return found


def _launch_shapes(trace: Trace, source: Frame, gpu: Index, names: Mapping[int, str]) -> dict[str, Shapes]:
    """Grid x block of the launches, with how many launches, by normalised name."""
    if not len(gpu):
        return {}
    with registered(trace.tables, "launched", {"slice": gpu.astype(np.int64)}) as connection:
        rows = connection.execute(
            "SELECT s.name, k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z, count(*) AS n "
            "FROM launched JOIN kernels k USING (slice) JOIN slices s USING (slice) "
            "WHERE k.grid_x IS NOT NULL GROUP BY ALL ORDER BY n DESC, 1, 2, 3, 4, 5, 6, 7"
        ).fetchall()
    by_text = {source.names[number]: name for number, name in names.items()}
    merged: dict[str, dict[str, int]] = {}
    for text, gx, gy, gz, bx, by, bz, count in rows:
        shape = f"{gx}x{gy}x{gz} blocks of {bx}x{by}x{bz}"
        counts = merged.setdefault(by_text[text], {})
        counts[shape] = counts.get(shape, 0) + int(count)
    return {name: tuple(list(counts.items())[:SHAPES]) for name, counts in merged.items()}
