"""``profrun summary TRACE``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from profrun.runner.cli.options import JsonOption, RunsOption, runs_root
from profrun.runner.cli.output import columns, emit, ns_text, say, terminal_width
from profrun.runner.cli.traces import TraceArgument, opened

if TYPE_CHECKING:
    from profrun.analysis.summary import Summary


def command(
    trace: TraceArgument,
    top: Annotated[int, typer.Option(help="Rows of each table; 0 for all.", min=0)] = 15,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """GPU utilization, steps, kernels and operators of a trace."""
    from profrun.analysis.summary import summarize

    with opened(trace, runs_root(runs)) as found:
        summary = summarize(found, top=None if json_ and not top else top or None)
    if json_:
        emit(summary.to_json())
        return
    _show(summary)


def _show(summary: Summary) -> None:
    """Doubts first, then where the time went."""
    version = f" {summary.tool_version}" if summary.tool_version else ""
    say(f"{summary.collector} by {summary.source}{version}, span {ns_text(summary.span_ns)}")
    for doubt in summary.doubts:
        say(f"{doubt.severity}: {doubt.message}")
    for device in summary.devices:
        say(f"device {device.device} {device.name}")
        say(f"  busy {ns_text(device.busy_ns)} of {ns_text(device.span_ns)} from its first to its last work")
        say(f"  utilization {_share(device.utilization)} of {ns_text(device.window_ns)} (steps)")
        say(f"  est. SM efficiency {_share(device.est_sm_efficiency)}")
        say(f"  est. achieved occupancy {_share(device.est_achieved_occupancy)}")
    _steps(summary)
    _table(
        "kernels",
        ("kernel", "category", "calls", "total", "mean", "p99"),
        [
            (_cut(row.name), row.category, row.calls, *map(ns_text, (row.total_ns, row.mean_ns, row.p99_ns)))
            for row in summary.kernels
        ],
        summary.omitted.get("kernels", 0),
    )
    _table(
        "operators",
        ("operator", "calls", "self CPU", "CPU", "self device", "device"),
        [
            (
                _cut(row.name),
                row.calls,
                *map(ns_text, (row.self_cpu_ns, row.cpu_ns, row.self_device_ns, row.device_ns)),
            )
            for row in summary.ops
        ],
        summary.omitted.get("ops", 0),
    )


def _steps(summary: Summary) -> None:
    ranks = {step.rank for step in summary.steps}
    _table(
        "steps",
        ("step", "time", "kernels", "kernel time", "copies", "comm", "no GPU work"),
        [
            (
                f"{step.step}" if len(ranks) == 1 else f"{step.step} r{step.rank}",
                ns_text(step.dur_ns),
                step.kernels,
                *map(ns_text, (step.kernel_ns, step.memcpy_ns, step.comm_ns, step.idle_ns)),
            )
            for step in summary.steps
        ],
        0,
    )


def _table(title: str, header: tuple[str, ...], rows: list[tuple[object, ...]], omitted: int) -> None:
    if not rows:
        return
    say()
    say(title)
    say(columns(header, rows, right=range(1, len(header)), indent="  "))
    if omitted:
        say(f"  ... and {omitted} more (--top 0 shows all)")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _cut(name: str) -> str:
    """Kernel names run to hundreds of characters: cut to what a row leaves of the line; --json has them."""
    width = max(24, terminal_width() - 56)
    return name if len(name) <= width else name[: width - 3] + "..."
