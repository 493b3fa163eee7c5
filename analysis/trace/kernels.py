"""The kernel table: the distribution of each kernel's time, not only its mean, and its reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profrun.analysis.kernel_names import read_kernel
from profrun.traces.memo import memoised

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class KernelWork:
    """The launches of a kernel in all steps: how many, and the sum of their times in ns."""

    calls: int
    total_ns: int


@dataclass(frozen=True)
class KernelRow:
    """One kernel name; times ns.

    Attributes:
        name, short, family, category: the name and its reading.
        layout, dtype, tile, arch, matrix_core, fused_ops: as in ``kernel_names.KernelName``.
        calls, total_ns, mean_ns, p50_ns, p99_ns, min_ns, max_ns, stdev_ns: the distribution; percentiles
            interpolate linearly, the standard deviation is the sample's (None for one call).
        share: total_ns / time of all kernels (concurrent ones counted each).
        in_steps: the part that steps launched; None for a recording without steps (``per_step`` sets it).
    """

    name: str
    short: str
    family: str
    category: str
    layout: str | None
    dtype: str | None
    tile: tuple[int, ...] | None
    arch: str | None
    matrix_core: bool | None
    fused_ops: tuple[str, ...]
    calls: int
    total_ns: int
    mean_ns: float
    p50_ns: float
    p99_ns: float
    min_ns: int
    max_ns: int
    stdev_ns: float | None
    share: float
    share_of: str = field(default="time of all kernels", init=False)
    in_steps: KernelWork | None = None


@dataclass(frozen=True)
class CategoryRow:
    """Kernel time by category; ``share`` of the time of all kernels."""

    category: str
    kernels: int
    calls: int
    total_ns: int
    share: float
    share_of: str = field(default="time of all kernels", init=False)


@memoised
def kernels(trace: Trace) -> list[KernelRow]:
    """Every kernel by name, most time first."""
    rows = trace.sql(
        "SELECT name, count(*) AS calls, sum(dur_ns)::BIGINT AS total, avg(dur_ns) AS mean, "
        "quantile_cont(dur_ns, [0.5, 0.99]) AS quantiles, min(dur_ns), max(dur_ns), stddev_samp(dur_ns) "
        "FROM slices WHERE kind = 'kernel' GROUP BY name ORDER BY total DESC, name"
    ).rows
    everything = sum(row[2] for row in rows)
    found = []
    for name, calls, total, mean, (p50, p99), low, high, stdev in rows:
        kernel = read_kernel(name)
        found.append(
            KernelRow(
                name=name,
                short=kernel.short,
                family=kernel.family,
                category=kernel.category,
                layout=kernel.layout,
                dtype=kernel.dtype,
                tile=kernel.tile,
                arch=kernel.arch,
                matrix_core=kernel.matrix_core,
                fused_ops=kernel.fused_ops,
                calls=calls,
                total_ns=total,
                mean_ns=mean,
                p50_ns=p50,
                p99_ns=p99,
                min_ns=low,
                max_ns=high,
                stdev_ns=stdev,
                share=total / everything if everything else 0.0,
            )
        )
    return found


def categories(rows: list[KernelRow]) -> list[CategoryRow]:
    """Kernel time by category, most first; the categories add up to all kernels, 'unknown' included."""
    total = sum(row.total_ns for row in rows)
    names = sorted({row.category for row in rows})
    found = []
    for name in names:
        mine = [row for row in rows if row.category == name]
        time = sum(row.total_ns for row in mine)
        found.append(
            CategoryRow(name, len(mine), sum(row.calls for row in mine), time, time / total if total else 0.0)
        )
    return sorted(found, key=lambda row: (-row.total_ns, row.category))
