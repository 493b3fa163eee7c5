"""The section on the roofline of a trace as HTML: a chart per GPU and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from profrun.contract.units import percent_text, rate_text, time_text
from profrun.reports.charts import roofline_chart
from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, table

if TYPE_CHECKING:
    from profrun.analysis.trace.roofline import Roofline, RooflineRow

POINTS = 80
"""Most dots of a chart."""


def roofline_html(found: Roofline, gpus: Mapping[int, str]) -> Html | None:
    """Charts where a rate and an intensity are known, and the table; None when no op has FLOPs or bytes.

    ``gpus``: device id -> what the GPU is called.
    """
    rows = [row for row in found.rows if row.flops is not None or row.bytes is not None]
    if not rows:
        return None
    covered = percent_text(found.covered_ns / found.total_ns if found.total_ns else None)
    note = (
        f"Ops whose FLOPs or bytes follow from recorded shapes: {time_text(found.covered_ns)}, {covered} of "
        f"{time_text(found.total_ns)} of GPU time. Bytes are those of inputs and outputs, each counted once: "
        "caches are not seen. Where that is faster than the memory can be, the data came from caches, and no "
        "share is given."
        f"{_clock_note(rows)}"
    )
    charts = [_chart(found, device, rows, gpus[device]) for device in sorted({row.device for row in rows})]
    return el("div", el("p", note, class_="note"), charts, _table(rows))


def _clock_note(rows: list[RooflineRow]) -> str:
    """What the clock that ran is; empty without samples of it."""
    read = [row for row in rows if row.clock_mhz is not None]
    if not read:
        return ""
    return (
        " The clock is the mean of what the sampler read while the op's kernels ran; a reading may be 200 ms "
        "old. The peak at that clock can be higher than the datasheet's, which holds at a stated clock. No "
        "share at the clock is given where it would be over 100 %: the reading is then of another moment."
    )


def _chart(found: Roofline, device: int, rows: list[RooflineRow], gpu: str) -> Html | None:
    mine = [row for row in rows if row.device == device and row.intensity and row.tflops][:POINTS]
    if not mine:
        return None
    peaks = found.peaks.get(device)
    roofs = {row.dtype: row.peak_tflops for row in mine if row.dtype and row.peak_tflops}
    points = [
        (
            row.intensity or 0.0,
            row.tflops or 0.0,
            row.gpu_ns / max(found.total_ns, 1),
            f"{row.op} {row.shapes}: {rate_text(row.tflops, 'TFLOP/s')}, {time_text(row.gpu_ns)}",
        )
        for row in mine
    ]
    known = (
        f": {peaks.name}, peaks from {peaks.source}"
        if peaks
        else ": its peak rates are not known, so there is no roof"
    )
    caption = f"{gpu}{known}; a dot's area is its share of GPU time"
    chart = roofline_chart(points, list(roofs.items()), peaks.memory_gb_s / 1e3 if peaks else None)
    return el("figure", el("figcaption", caption), chart)


_AT_CLOCK: tuple[Column[RooflineRow], ...] = (
    Column("clock", lambda row: row.clock_mhz, "number", "mean while its kernels ran", unit="MHz"),
    Column(
        "at clock",
        lambda row: row.compute_share_at_clock,
        "share",
        "rate / (dense peak x clock / the clock at which the peak holds)",
    ),
)


def _table(rows: list[RooflineRow]) -> Html:
    columns: list[Column[RooflineRow]] = [
        Column("op", lambda row: row.op, "name", full=lambda row: f"{row.op} {row.shapes}"),
        Column("shapes", lambda row: row.shapes, "name"),
        Column("dtype", lambda row: row.dtype, note="what the kernel multiplied"),
        Column("calls", lambda row: row.calls, "count"),
        Column("GPU time", lambda row: row.gpu_ns, "ns", "of all calls"),
        Column("rate", lambda row: row.tflops, "number", "FLOPs of all calls / GPU time", unit="TFLOP/s"),
        Column("of peak", lambda row: row.compute_share, "share", "rate / dense datasheet peak of the dtype"),
        *(_AT_CLOCK if any(row.clock_mhz is not None for row in rows) else ()),
        Column("bandwidth", lambda row: row.tb_s, "number", "bytes of all calls / GPU time", unit="TB/s"),
        Column("of peak", lambda row: row.memory_share, "share", "bandwidth / peak of device memory"),
        Column("intensity", lambda row: row.intensity, "number", "FLOPs / bytes", unit="FLOP/B"),
        Column("bound by", lambda row: row.bound, note="intensity against the ridge of the peaks"),
        Column(
            "of the roof",
            lambda row: row.limit_share,
            "share",
            "achieved / roofline at this intensity, at the clock that ran where it is known",
        ),
    ]
    return table("roofline", columns, rows, caption="ops by shape", limit=40)
