"""Comparisons, launch-blocking twins, gates and expectations for people: terminal text, Markdown, JUnit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profrun.analysis.compare.model import Comparison, Metric, Reason, SideInfo, VendorView
from profrun.contract.units import (
    ratio_text,
    signed_time_text,
    time_text,
)
from profrun.reports.terminal_layout import Table, fit

if TYPE_CHECKING:
    from profrun.analysis.compare.blocking import Blocking
    from profrun.analysis.compare.gate import Gate

Lines = list[str | Table]
WIDTH = 46
"""Characters of a name in a terminal row; --json has names whole."""


def _cut(text: str, width: int = WIDTH) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def verdict_line(comparison: Comparison) -> str:
    """The answer in one line: verdict, ratio, interval, what it rests on."""
    a, b = comparison.sides
    if comparison.verdict == "incomparable":
        return f"incomparable: {_stops(comparison.reasons)}"
    per = f" per {comparison.per}" if comparison.per else ""
    text = (
        f"{comparison.verdict}: {time_text(b.step_ns)} against {time_text(a.step_ns)} a step{per}, "
        f"ratio {comparison.ratio:.3f}"
    )
    if comparison.ci95 is not None:
        text += f", 95 % interval {comparison.ci95[0]:.3f} to {comparison.ci95[1]:.3f}"
    text += f" ({comparison.trials[0]} and {comparison.trials[1]} trials"
    if comparison.mde is not None and comparison.mde < 1:
        text += f", a change of {100 * comparison.mde:.1f} % would be found"
    elif comparison.mde is not None:
        text += ", too uneven to find even a doubling"
    text += ")"
    if comparison.verdict == "inconclusive" and comparison.trials_needed:
        text += f"; about {comparison.trials_needed} trials a side are needed"
    return text


def _stops(reasons: Sequence[Reason]) -> str:
    return "; ".join(one.message for one in reasons if one.severity == "stop" and not one.allowed)


def comparison_text(comparison: Comparison, *, top: int = 20, width: int | None = None) -> str:
    """The whole answer for a terminal; ``top`` rows of the view, 0 for all; None for no width to keep to."""
    lines: Lines = [verdict_line(comparison)]
    for name, side in zip("ab", comparison.sides, strict=True):
        lines.append(_side_line(name, side))
    lines += [f"{_severity(one)}: {one.message}" for one in comparison.reasons if not _said(comparison, one)]
    if comparison.verdict == "incomparable":
        return fit(lines, width)
    lines += [_metric_line(metric) for metric in comparison.metrics]
    lines += ["", "mean typical step (named outliers left out)"]
    lines.append(
        Table(
            ("part", "a", "b", "b - a"),
            [
                (part.name, time_text(part.a_ns), time_text(part.b_ns), signed_time_text(part.delta_ns))
                for part in comparison.parts
            ],
            right=(1, 2, 3),
        )
    )
    lines += _rows_text(comparison, top)
    if comparison.vendors is not None:
        lines += _vendor_text(comparison.vendors)
    return fit(lines, width)


def _said(comparison: Comparison, reason: Reason) -> bool:
    return comparison.verdict == "incomparable" and reason.severity == "stop" and not reason.allowed


def _severity(reason: Reason) -> str:
    return "allowed" if reason.allowed else reason.severity


def _side_line(name: str, side: SideInfo) -> str:
    what = ", ".join(side.labels[:3]) + (f" and {len(side.labels) - 3} more" if len(side.labels) > 3 else "")
    device = "/".join(side.devices) or "no GPU"
    counts = f"{_count(side.trials, 'trial')}, {_count(side.steps, 'step')}"
    text = f"{name}: {what} ({device}, {side.collector}, {counts})"
    if side.outliers:
        more = f" and {len(side.outliers) - 3} more" if len(side.outliers) > 3 else ""
        text += f"; outlying steps: {', '.join(side.outliers[:3])}{more}"
    return text


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def _metric_line(metric: Metric) -> str:
    sure = (
        f"95 % interval {metric.ci95[0]:.3f} to {metric.ci95[1]:.3f}"
        if metric.ci95
        else "without an interval"
    )
    values = f"{time_text(metric.b)} against {time_text(metric.a)}"
    return f"  {metric.name}: {metric.verdict}, {values}, ratio {metric.ratio:.3f}, {sure}"


def _calls(a: float, b: float) -> str:
    """Calls a step: whole from a hundred on, else three digits that count."""
    left, right = (f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in (a, b))
    return left if a == b else f"{left} -> {right}"


def _rows_text(comparison: Comparison, top: int) -> Lines:
    rows = comparison.rows
    if not rows:
        return []
    shown = rows if not top else rows[:top]
    unit = {"cpu": "self CPU time", "step": "step time"}.get(rows[0].basis, "GPU time")
    table = [
        (
            row.status,
            _cut(row.label or row.name),
            time_text(row.a_ns) if row.a_ns else "-",
            time_text(row.b_ns) if row.b_ns else "-",
            signed_time_text(row.delta_ns),
            ratio_text(row.ratio),
            _calls(row.a_calls, row.b_calls),
        )
        for row in shown
    ]
    by = "op" if rows[0].basis == "cpu" and comparison.by == "kernel" else comparison.by
    lines: Lines = ["", f"by {by}, {unit} a step, largest change first"]
    lines.append(Table(("what", by, "a", "b", "b - a", "ratio", "calls"), table, right=(2, 3, 4, 5)))
    if len(shown) < len(rows):
        rest = sum(row.delta_ns for row in rows[len(shown) :])
        lines.append(
            f"  ... and {len(rows) - len(shown)} more, together {signed_time_text(rest)} (--top 0 shows all)"
        )
    if comparison.total_delta_ns is not None and rows[0].basis != "step":
        explained = sum(row.delta_ns for row in rows)
        lines.append(
            f"  rows {signed_time_text(explained)}, "
            f"unexplained by them {signed_time_text(comparison.unexplained_ns or 0.0)}, "
            f"total {signed_time_text(comparison.total_delta_ns)}"
        )
    for row in shown:
        if row.status == "replaced" and " -> " in row.label:  # the table has no room for what came instead
            lines.append(f"  replaced: {_replacement(row.label)}")
        if row.changes:
            lines.append(f"  {_cut(row.label or row.name)}: {'; '.join(row.changes)}")
    return lines


def _replacement(label: str, width: int = 150) -> str:
    """'a + b -> c' in which both sides can be seen: each gets half of the width."""
    before, _, after = label.partition(" -> ")
    return f"{_cut(before, width // 2)} -> {_cut(after, width // 2)}"


def _vendor_text(vendors: VendorView) -> Lines:
    lines: Lines = ["", "each GPU against its own peak (whole recording)"]
    table = []
    for pair in vendors.rates[:10]:
        cells = []
        for rate in (pair.a, pair.b):
            share = f" ({100 * rate.share:.0f} %)" if rate is not None and rate.share is not None else ""
            known = rate is not None and rate.tflops is not None
            cells.append(f"{rate.tflops:.4g}{share}" if rate is not None and known else "-")
        table.append((pair.op.removeprefix("aten::"), _cut(pair.shapes.replace(",[]", ""), 34), *cells))
    lines.append(Table(("op", "shapes", "a TFLOP/s", "b TFLOP/s"), table, right=(2, 3)))
    for name, values in (
        ("a launch call takes", vendors.launch_us),
        ("a launch to its start", vendors.latency_us),
    ):
        a, b = (None if value is None else value * 1e3 for value in values)
        lines.append(f"  {name}: {time_text(a)} against {time_text(b)}")
    copies = " against ".join(time_text(value) for value in vendors.copies_ns)
    lines.append(f"  copies and fills a step (AMD's copy kernels counted alike): {copies}")
    lines += [f"  {text}" for text in vendors.fusions[:8]]
    return lines


def blocking_text(found: Blocking, *, top: int = 15, width: int | None = None) -> str:
    """Launch-blocking twins for a terminal; None for no width to keep to."""
    lines: Lines = [f"{found.variant}: {found.sentence}" if found.variant else found.sentence]
    lines += [f"{_severity(one)}: {one.message}" for one in found.reasons]
    if found.step_ns is not None:
        a, b = found.step_ns
        timed = f"timed by {found.timed_by}" if found.timed_by != "none" else "unprofiled"
        lines.append(
            f"step {time_text(a)} asynchronous, {time_text(b)} blocking ({timed}, "
            f"{found.trials[0]} and {found.trials[1]} trials)"
        )
    if found.trials_needed:
        lines.append(f"about {found.trials_needed} trials a side are needed for a certain answer")
    lines += _facts_text(found)
    lines += _per_op_text(found, top)
    if found.sync_points:
        lines += ["", "calls that wait for the GPU, a step"]
        lines.append(Table(
            ("call", "async", "blocking", "calls"),
            [
                (one.name, time_text(one.async_ns), time_text(one.blocking_ns),
                 f"{one.async_calls:.3g} -> {one.blocking_calls:.3g}")
                for one in found.sync_points
            ],
            right=(1, 2),
        ))  # fmt: skip
    return fit(lines, width)


def _facts_text(found: Blocking) -> list[str]:
    lines = []
    if found.kernel_multiset_equal is not None:
        word = "the same kernels" if found.kernel_multiset_equal else "NOT the same kernels"
        lines.append(f"{word} in both runs")
        for one in found.kernel_differences[:5]:
            counts = f"{one.async_calls:.3g} a step without blocking, {one.blocking_calls:.3g} with"
            lines.append(f"  {_cut(one.name)}: {counts}")
    if found.kernel_ns is not None and found.kernel_ratio is not None:
        a, b = map(time_text, found.kernel_ns)
        word = "as fast" if found.kernels_same_speed else "not as fast"
        lines.append(f"kernels {word}: {a} -> {b} a step (ratio {found.kernel_ratio:.3f})")
    if found.overlap_ns is not None:
        lines.append(
            f"GPU work while the host went on: {time_text(found.overlap_ns)} a step asynchronous, "
            f"{time_text(found.blocking_overlap_ns)} blocking"
        )
    if found.concurrent_ns is not None and max(found.concurrent_ns) > 0:
        a, b = map(time_text, found.concurrent_ns)
        lines.append(f"concurrency between streams: {a} -> {b} a step")
    if all(value is not None for value in found.launch_ns):
        a, b = map(time_text, found.launch_ns)
        lines.append(f"one launch call: {a} -> {b}")
    if found.graph_share:
        lines.append(
            f"{100 * found.graph_share:.1f} % of GPU time is in graphs, which blocking does not serialise"
        )
    return lines


def _per_op_text(found: Blocking, top: int) -> Lines:
    rows = [row for row in found.per_op if row.kind != "api"]
    if not rows:
        return []
    shown = rows if not top else rows[:top]
    lines: Lines = [
        "",
        "host time a step with children; latency is one call under blocking, its kernels inside",
    ]
    lines.append(Table(
        ("op or range", "calls", "async", "blocking", "hidden", "GPU", "latency"),
        [
            (
                _cut(row.name), f"{row.calls:.3g}",
                time_text(row.async_ns), time_text(row.blocking_ns), time_text(row.hidden_ns),
                time_text(row.device_ns), time_text(row.latency_ns),
            )
            for row in shown
        ],
        right=(1, 2, 3, 4, 5, 6),
    ))  # fmt: skip
    if len(shown) < len(rows):
        lines.append(f"  ... and {len(rows) - len(shown)} more (--top 0 shows all)")
    return lines


def gate_text(found: Gate, *, width: int | None = None) -> str:
    """The gate's rules, a line each."""
    return fit([f"{one.outcome}: {one.rule}: {one.message}" for one in found.results], width)


def markdown(comparison: Comparison, gate: Gate | None = None, *, top: int = 10) -> str:
    """A table for a pull request."""
    mark = {"faster": "faster", "slower": "**slower**"}.get(comparison.verdict, comparison.verdict)
    lines = [f"### profrun compare: {mark}", "", verdict_line(comparison), ""]
    if gate is not None:
        lines += ["| rule | outcome | |", "|---|---|---|"]
        lines += [f"| `{_cell(one.rule)}` | {one.outcome} | {_cell(one.message)} |" for one in gate.results]
        lines.append("")
    stops = [one for one in comparison.reasons if one.severity != "note"]
    lines += [f"- {_severity(one)}: {one.message}" for one in stops]
    if stops:
        lines.append("")
    if comparison.rows:
        lines += [f"| {comparison.by} | | a | b | b - a | ratio |", "|---|---|---:|---:|---:|---:|"]
        for row in comparison.rows[:top]:
            a, b = (time_text(value) if value else "-" for value in (row.a_ns, row.b_ns))
            name = _cell(_cut(row.label or row.name, 70))
            change = f"{signed_time_text(row.delta_ns)} | {ratio_text(row.ratio)}"
            lines.append(f"| {name} | {row.status} | {a} | {b} | {change} |")
        rest = comparison.rows[top:]
        if rest:
            lines.append(
                f"| {len(rest)} more | | | | {signed_time_text(sum(row.delta_ns for row in rest))} | |"
            )
        lines.append(f"| not in these rows | | | | {signed_time_text(comparison.unexplained_ns or 0.0)} | |")
        lines.append(f"| **total** | | | | {signed_time_text(comparison.total_delta_ns or 0.0)} | |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def junit(comparison: Comparison, gate: Gate) -> str:
    """JUnit XML: one test case a rule; inconclusive ones are errors, not failures."""
    from xml.etree import ElementTree

    failed = sum(one.outcome == "failed" for one in gate.results)
    errors = sum(one.outcome == "inconclusive" for one in gate.results)
    suite = ElementTree.Element(
        "testsuite",
        name="profrun compare",
        tests=str(len(gate.results)),
        failures=str(failed),
        errors=str(errors),
    )
    for one in gate.results:
        case = ElementTree.SubElement(suite, "testcase", classname="profrun.compare", name=one.rule)
        if one.outcome != "passed":
            tag = "failure" if one.outcome == "failed" else "error"
            ElementTree.SubElement(case, tag, message=one.message, type=one.outcome)
    out = ElementTree.SubElement(suite, "system-out")
    out.text = verdict_line(comparison)
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def largest_changes(comparison: Comparison, count: int = 3) -> list[str]:
    """The rows that changed most, in words."""
    changed = [row for row in comparison.kernels if row.status != "same"][:count]
    return [
        f"{row.status}: {_cut(row.label or row.name, 80)} ({signed_time_text(row.delta_ns)} a step)"
        for row in changed
    ]
