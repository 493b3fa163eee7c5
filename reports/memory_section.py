"""The section on the memory of a trace as HTML: allocated bytes over time, and the peaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from profrun.contract.units import count_text
from profrun.reports.charts import memory_chart
from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, table

if TYPE_CHECKING:
    from profrun.analysis.trace.memory import MemoryPeak, MemorySeries


def memory_html(
    peaks: Sequence[MemoryPeak], series: Sequence[MemorySeries], gpus: Mapping[int, str]
) -> Html | None:
    """A chart per series and the table of the peaks; None for a trace without allocator records.

    ``gpus``: device id -> what the GPU is called.
    """
    if not peaks:
        return None
    capacity = {peak.device: peak.capacity_bytes for peak in peaks}
    charts = [
        _chart(one, capacity.get(one.device), _where(one.device, gpus))
        for one in series
        if len(one.times) > 1
    ]
    columns: list[Column[MemoryPeak]] = [
        Column("where", lambda row: _where(row.device, gpus)),
        Column("peak", lambda row: row.peak_bytes, "bytes", "highest total that the allocator handed out"),
        Column("of capacity", lambda row: row.share, "share", "peak over the memory of the device"),
        Column(
            "reserved", lambda row: row.reserved_bytes, "bytes", "highest total the caching allocator held"
        ),
        Column("at start", lambda row: row.first_bytes, "bytes", "total at the first record"),
        Column("at end", lambda row: row.last_bytes, "bytes", "total at the last record"),
        Column("records", lambda row: row.records, "count", "allocations and frees recorded"),
        Column("ops at the peak", lambda row: ", ".join(row.ops) or None),
    ]
    return el("div", charts, table("memory", columns, peaks, caption="peaks, of torch's caching allocators"))


def _chart(one: MemorySeries, capacity: int | None, where: str) -> Html:
    caption = f"{where}: {one.name}, {count_text(len(one.times))} records"
    return el(
        "figure", el("figcaption", caption), memory_chart(one.times, one.values, one.name, capacity=capacity)
    )


def _where(device: int | None, gpus: Mapping[int, str]) -> str:
    return "host" if device is None else gpus[device]
