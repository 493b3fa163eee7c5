"""torch's table of a profile as text: the columns and numbers of ``key_averages().table()``.

The numbers are written as torch writes them (1.234ms, 56.78%, 1.50 MB), and not as everywhere else in
profrun, so that they can be laid beside torch's own output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.reports.terminal_layout import PLAIN, Part, Table, lay_out

if TYPE_CHECKING:
    from profrun.analysis.trace.key_averages import KeyAverage, KeyAverages

NAME = 55
SHAPES = 80
"""Columns that torch gives to names and to shapes at most."""


def torch_text(table: KeyAverages, rows: int | None) -> str:
    """The table with torch's totals below.

    Args:
        table: the rows in the order in which they are printed.
        rows: how many of them; None for all.
    """
    on_gpu = any(row.self_device_ns for row in table.rows)
    gpu_memory = table.memory and any(row.self_device_bytes for row in table.rows)
    header = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    if on_gpu:
        header += ["Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"]
    if table.memory:
        header += ["CPU Mem", "Self CPU Mem"]
    if gpu_memory:
        header += ["CUDA Mem", "Self CUDA Mem"]
    header += ["# of Calls", *(["Input Shapes"] if table.by_shapes else [])]
    shown = table.rows if rows is None else table.rows[:rows]
    cells = [_cells(row, table, on_gpu, gpu_memory) for row in shown]
    parts: list[Part] = [Table(header, cells, range(1, len(header)), indent="")]
    left = len(table.rows) - len(shown)
    if left:
        parts.append(f"... and {left} more (--rows 0 shows all)")
    parts.append(f"Self CPU time total: {_time(table.self_cpu_total_ns)}")
    if on_gpu:
        parts.append(f"Self CUDA time total: {_time(table.self_device_total_ns)}")
    return lay_out(parts, PLAIN)


def _cells(row: KeyAverage, table: KeyAverages, on_gpu: bool, gpu_memory: bool) -> list[object]:
    calls = row.calls or 1
    cells: list[object] = [
        row.name if len(row.name) < NAME - 3 else f"{row.name[: NAME - 3]}...",  # as torch cuts them
        _share(row.self_cpu_ns, table.self_cpu_total_ns),
        _time(row.self_cpu_ns),
        _share(row.cpu_ns, table.self_cpu_total_ns),
        _time(row.cpu_ns),
        _time(row.cpu_ns / calls),
    ]
    if on_gpu:
        cells += [
            None if row.self_device_ns is None else _time(row.self_device_ns),
            None if row.self_device_ns is None else _share(row.self_device_ns, table.self_device_total_ns),
            None if row.device_ns is None else _time(row.device_ns),
            None if row.device_ns is None else _time(row.device_ns / calls),
        ]
    if table.memory:
        cells += [_memory(row.cpu_bytes), _memory(row.self_cpu_bytes)]
    if gpu_memory:
        cells += [_memory(row.device_bytes), _memory(row.self_device_bytes)]
    return [*cells, row.calls, *([row.shapes[:SHAPES]] if table.by_shapes else [])]


def _time(ns: float) -> str:
    """As torch's ``_format_time``: "1.234us", "1.234ms", "1.234s"."""
    if ns >= 1e9:
        return f"{ns / 1e9:.3f}s"
    return f"{ns / 1e6:.3f}ms" if ns >= 1e6 else f"{ns / 1e3:.3f}us"


def _share(ns: int, whole: int) -> str:
    """As torch's ``_format_time_share``: "12.34%"."""
    return f"{100 * ns / whole:.2f}%" if whole else "NaN"


def _memory(count: int) -> str:
    """As torch's ``_format_memory``: "512 B", "1.50 KB"."""
    for size, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"
