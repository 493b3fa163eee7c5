"""The summary and the critical path of a trace as text, quality first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from profrun.analysis.trace.variation_text import variation_text
from profrun.contract.denominator import NO_STEPS, RECORDING, RUN
from profrun.contract.profilers import under_text
from profrun.contract.units import bytes_text, counted, percent_text, time_text
from profrun.reports.energy_text import energy_line, state_lines
from profrun.reports.terminal_layout import PLAIN, Part, Prose, Style, Table, lay_out, titled
from profrun.reports.terminal_tables import tables
from profrun.reports.use_text import use_lines

if TYPE_CHECKING:
    from profrun.analysis.rules.step_cost import StepCost
    from profrun.analysis.rules.step_use import StepUse
    from profrun.analysis.trace.critical_path import CriticalPath
    from profrun.analysis.trace.gpu import DeviceMetrics
    from profrun.analysis.trace.idle import IdleRow
    from profrun.analysis.trace.quality import QualityFinding
    from profrun.analysis.trace.summary import Summary

NOTED = 0.01
"""Share from which a harmless note is worth a line."""
NOTES = 3
"""Harmless notes that are shown."""


def summary_text(
    summary: Summary,
    style: Style = PLAIN,
    *,
    cost: StepCost | None = None,
    use: StepUse | None = None,
    energy_per_work: Mapping[str, float] | None = None,
    verbose: bool = False,
) -> str:
    """The summary: what was recorded, doubtful numbers, the step and the GPUs, tables per step, notes.

    Args:
        summary: the summary.
        style: how text is laid out.
        cost: what a step costs, with the step time without a profiler where that is known.
        use: its FLOPs, and the share of the GPUs' peak that they are.
        energy_per_work: unit of work ('token', 'gflop') -> energy per unit, J.
        verbose: with totals, every step, and notes that matter little.
    """
    version = f" {summary.tool_version}" if summary.tool_version else ""
    parts: list[Part] = [
        Prose(f"{summary.collector} by {summary.source}{version}, span {time_text(summary.span_ns)}")
    ]
    doubts = [finding for finding in summary.quality if finding.severity != "info"]
    parts += [Prose(str(finding), finding.severity) for finding in doubts]
    if summary.withheld:
        parts.append(f"not shown because of this: {', '.join(summary.withheld)}")
    parts += _step(cost, summary)
    if summary.window is not None:
        parts.append(Prose(summary.window.text))
    if use is not None and cost is not None:
        parts += [Prose(line) for line in use_lines(use, cost)]
    energy = energy_line(summary.energy, energy_per_work)
    parts += [Prose(energy)] if energy else []
    parts += [Prose(line) for line in state_lines(summary.gpu_states, summary.gpus)]
    parts += _variation(summary, verbose=verbose)
    for device in summary.devices:
        parts += _device(device, summary, cost)
    for peak in summary.memory:
        where = "host" if peak.device is None else summary.gpus[peak.device]
        share = f", {percent_text(peak.share)} of {bytes_text(peak.capacity_bytes)}" if peak.share else ""
        parts.append(f"{where} memory peak {bytes_text(peak.peak_bytes)}{share}")
    parts += tables(summary, style.width, verbose=verbose)
    notes = [finding for finding in summary.quality if finding.severity == "info"]
    told = [finding for finding in notes if verbose or finding.share is None or finding.share >= NOTED]
    if told:
        shown = told if verbose else told[:NOTES]
        parts += ["", *(Prose(_note(finding), "note") for finding in shown)]
        if len(told) > len(shown):
            parts.append(f"... and {counted(len(told) - len(shown), 'note')} more (-v shows all)")
    return lay_out(parts, style)


def _note(finding: QualityFinding) -> str:
    times = f" ({counted(finding.count, 'time')})" if finding.code.startswith("reader:") else ""
    return f"{finding}{times}"


def _step(cost: StepCost | None, summary: Summary) -> list[Part]:
    """The step time under the profiler and without it."""
    if cost is None or cost.denominator == RECORDING:
        return []
    under = f"{cost.denominator.title} {time_text(cost.recorded_ns)} {under_text(summary.collector)}"
    bare = cost.unprofiled
    if bare is None and cost.denominator == RUN:
        under += f"; {NO_STEPS}"
    return [under if bare is None else f"{under}; {time_text(bare.ns)} without a profiler"]


def _variation(summary: Summary, *, verbose: bool) -> list[Part]:
    """Why step times vary, where they vary so much that somebody would ask."""
    found = summary.variation
    if found is None or not (verbose or found.run.worth_a_line):
        return []
    text = variation_text(found.run)
    return [Prose(text if found.run.shares is None else f"step times vary by {text}")]


def _device(device: DeviceMetrics, summary: Summary, cost: StepCost | None) -> list[Part]:
    """A GPU: its shares, and what they are of, in one line each."""
    withheld = summary.withheld
    timed = any(step.process == device.process for step in summary.steps)

    def share(name: str) -> str:
        value = getattr(device, name)
        if value is None:
            return "not shown, see above" if f"devices.{name}" in withheld else "not known"
        return percent_text(value)

    whole = "all steps" if summary.denominator.several else summary.denominator.the
    window = f"{time_text(device.window_ns)} ({whole if timed else 'recorded host work'})"
    under = f" under {summary.collector}" if cost is not None and cost.unprofiled else ""
    occupied = time_text(device.occupancy_ns)
    lines = [
        f"{summary.gpus[device.device]}: {device.name}",
        f"  kernels run {share('utilization')} of {window}{under}",
        *_unprofiled(summary, cost),
        f"  est. SM efficiency {share('est_sm_efficiency')} of the same",
        f"  est. achieved occupancy {share('est_achieved_occupancy')} of {occupied} of kernel time",
    ]
    for row in summary.idle:
        if row.track is None and row.device == device.device and row.idle_ns:
            lines.append(f"  {_idle(row)}")
    return list(lines)


def _unprofiled(summary: Summary, cost: StepCost | None) -> list[str]:
    """The GPU's share of the step without a profiler, for a recording of one GPU."""
    if cost is None or cost.unprofiled is None or cost.denominator == RECORDING or len(summary.devices) != 1:
        return []
    of = cost.denominator
    whole = f"the unprofiled {time_text(cost.step_ns)} {of.of}"
    longer = cost.work_ns > cost.step_ns
    about = f"longer than {whole}" if longer else f"about {percent_text(cost.busy_share)} of {whole}"
    if longer and of.several and cost.unprofiled.mean_ns > cost.step_ns:
        about += f" (a median; {time_text(cost.unprofiled.mean_ns)} on average)"
    return [f"  GPU work {time_text(cost.work_ns)} {of.per}: {about}"]


def _idle(row: IdleRow) -> str:
    """Why a GPU was idle between its first and its last work."""
    waits = {
        "waited for the CPU": row.host_wait_ns,
        "other waits": row.kernel_wait_ns + row.other_ns,
        "waits of unknown cause": row.unknown_ns,
    }
    parts = [f"{text} {time_text(ns)}" for text, ns in waits.items() if ns]
    return f"{', '.join(parts)}, of {time_text(row.span_ns)} from its first to its last work"


def critical_path_text(path: CriticalPath, style: Style = PLAIN, *, top: int = 15) -> str:
    """The critical path by kind of work, then by what the work was; ``top``: most rows of the latter."""
    share = path.total_ns or 1
    kinds = sorted(((ns, kind) for kind, ns in path.by_kind.items() if ns), reverse=True)
    names = [(name, kind, time_text(ns), percent_text(ns / share)) for kind, name, ns in path.by_name[:top]]
    head = f"critical path of process {path.process}: {time_text(path.total_ns)}"
    kind_rows = [(kind, time_text(ns), percent_text(ns / share)) for ns, kind in kinds]
    by_kind = titled("by kind", Table(("kind", "time", "share"), kind_rows, right=(1, 2)))
    by_name = titled("by name", Table(("name", "kind", "time", "share"), names, right=(2, 3)))
    return lay_out([head, *by_kind, *by_name], style)
