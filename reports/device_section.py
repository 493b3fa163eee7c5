"""The section on the GPUs of a trace as HTML: a few large numbers per GPU, each with its denominator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profrun.contract.units import percent_text, time_text
from profrun.reports.energy_text import energy_line, state_lines
from profrun.reports.html import Html, el
from profrun.reports.quality_marks import Marks

if TYPE_CHECKING:
    from profrun.analysis.trace.gpu import DeviceMetrics
    from profrun.analysis.trace.summary import Summary

SOURCES = {
    None: "no kernel has one",
    "tool": "the profiler's figures",
    "estimated": "estimated from registers and shared memory",
}
"""``DeviceMetrics.occupancy_source`` in words."""


@dataclass(frozen=True)
class _Tile:
    """One large number: its field of ``DeviceMetrics``, title, formatter, and what it is of, in words."""

    name: str
    title: str
    show: Callable[[float | None], str]
    of: str


def devices_html(summary: Summary, marks: Marks) -> Html | None:
    """The numbers of each GPU, and what was sampled of them; None for a trace without either."""
    sampled = [energy_line(summary.energy), *state_lines(summary.gpu_states, summary.gpus)]
    lines = [el("li", line) for line in sampled if line]
    if not summary.devices and not lines:
        return None
    return el(
        "div",
        el("ul", lines, class_="plain") if lines else None,
        (_device(device, summary, marks) for device in summary.devices),
    )


def _device(device: DeviceMetrics, summary: Summary, marks: Marks) -> Html:
    peaks = summary.peaks.get(device.device)
    peak = f"peaks: {peaks.source}" if peaks else "its peak rates are not in the table"
    streams = f"{device.streams} stream{'s' * (device.streams != 1)}"
    return el(
        "article",
        el("h4", f"{summary.gpus[device.device]}: {device.name}"),
        el("p", f"{device.vendor}, {streams}; {peak}", class_="note"),
        el("dl", (_tile(tile, device, marks) for tile in _tiles(device, summary)), class_="tiles"),
    )


def _tiles(device: DeviceMetrics, summary: Summary) -> list[_Tile]:
    timed = any(step.process == device.process for step in summary.steps)
    of = summary.denominator
    whole = "first to last step with their GPU work" if of.several else f"{of.the} with its GPU work"
    what = whole if timed else "the recorded host work (no steps)"
    window = f"of {time_text(device.window_ns)}, {what}"
    source = SOURCES.get(device.occupancy_source, device.occupancy_source)
    with_occupancy = f"{source}; of {time_text(device.occupancy_ns)} of kernel time"
    span = f"kernels, copies and fills; of {time_text(device.span_ns)}, first to last GPU work"
    by_name = f"by kernel names; of {time_text(device.total_kernel_ns)} of kernel time"
    exposed = f"not under computation; of {time_text(device.comm_ns)} of communication"
    tiles = [
        _Tile("utilization", "utilization", percent_text, f"any kernel running; {window}"),
        _Tile(
            "est_sm_efficiency", "est. SM efficiency", percent_text, f"blocks over SMs, at most 1; {window}"
        ),
        _Tile("est_achieved_occupancy", "est. achieved occupancy", percent_text, with_occupancy),
        _Tile("busy_ns", "busy", time_text, span),
        _Tile("matrix_core_share", "on tensor / matrix cores", percent_text, by_name),
    ]
    if device.comm_ns:
        tiles.append(_Tile("exposed_comm_ns", "exposed communication", time_text, exposed))
    return tiles


def _tile(tile: _Tile, device: DeviceMetrics, marks: Marks) -> Html:
    name, value = f"devices.{tile.name}", getattr(device, tile.name)
    hidden = marks.hidden(name)
    shown, exact = marks.value(name, value, tile.show), "" if value is None else value
    return el(
        "div",
        el("dt", tile.title, None if hidden else marks.of(name)),
        el("dd", shown, class_="big", data_v=exact, data_number=name),
        el("dd", tile.of.split(";")[0] if hidden else tile.of, class_="of"),
        class_="tile",
    )
