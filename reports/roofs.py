"""The roofline as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.units import percent_text, time_text
from profrun.reports.charts import roofline_chart
from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, table

if TYPE_CHECKING:
    from profrun.analysis.trace.roofline import Roofline, RooflineRow

POINTS = 80


def roofline_html(found: Roofline) -> Html | None:
    """Chart (where a rate and an intensity are known) and table; None when no op has FLOPs or bytes."""
    rows = [row for row in found.rows if row.flops is not None or row.bytes is not None]
    if not rows:
        return None
    covered = percent_text(found.covered_ns / found.total_ns if found.total_ns else None)
    said = (
        f"Ops whose FLOPs or bytes follow from recorded shapes: {time_text(found.covered_ns)}, {covered} of "
        f"{time_text(found.total_ns)} of GPU time. Bytes are those of inputs and outputs, each counted once: "
        "caches are not seen. Where that is faster than the memory can be, the data came from caches, and no "
        "share is given."
    )
    return el("div", el("p", said, class_="note"), _charts(found, rows), _table(rows))


def _charts(found: Roofline, rows: list[RooflineRow]) -> list[Html]:
    charts = []
    for device in sorted({row.device for row in rows}):
        mine = [row for row in rows if row.device == device and row.intensity and row.tflops][:POINTS]
        if not mine:
            continue
        peaks = found.peaks.get(device)
        used = {row.dtype: row.peak_tflops for row in mine if row.dtype and row.peak_tflops}
        points = [
            (row.intensity or 0.0, row.tflops or 0.0, row.gpu_ns / max(found.total_ns, 1),
             f"{row.op} {row.shapes}: {row.tflops:.3g} TFLOP/s, {time_text(row.gpu_ns)}")
            for row in mine
        ]  # fmt: skip
        said = f"GPU {device}: {peaks.name}, peaks from {peaks.source}" if peaks else f"GPU {device}"
        note = "" if peaks else ": its peak rates are not known, so there is no roof"
        size = "; a dot's area is its share of GPU time"
        chart = roofline_chart(points, list(used.items()), peaks.memory_gb_s / 1e3 if peaks else None)
        charts.append(el("figure", el("figcaption", said + note + size), chart))
    return charts


def _table(rows: list[RooflineRow]) -> Html:
    columns = [
        Column("op", lambda row: row.op, "name", full=lambda row: f"{row.op} {row.shapes}"),
        Column("shapes", lambda row: row.shapes, "name"),
        Column("dtype", lambda row: row.dtype, note="what the kernel multiplied"),
        Column("calls", lambda row: row.calls, "count"),
        Column("GPU time", lambda row: row.gpu_ns, "ns", "of all calls"),
        Column("rate", lambda row: row.tflops, "number", "FLOPs of all calls / GPU time", unit="TFLOP/s"),
        Column("of peak", lambda row: row.compute_share, "share", "rate / dense peak of the dtype"),
        Column("bandwidth", lambda row: row.tb_s, "number", "bytes of all calls / GPU time", unit="TB/s"),
        Column("of peak", lambda row: row.memory_share, "share", "bandwidth / peak of device memory"),
        Column("intensity", lambda row: row.intensity, "number", "FLOPs / bytes", unit="FLOP/B"),
        Column("bound by", lambda row: row.bound, note="intensity against the ridge of the peaks"),
        Column("of the roof", lambda row: row.limit_share, "share", "achieved / roofline at this intensity"),
    ]
    return table("roofline", columns, rows, caption="ops by shape", limit=40)
