"""A comparison of launch-blocking twins as text for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.units import percent_text, rate_text, signed_change_text, time_text
from profrun.reports.compare_sentence import change_sentence
from profrun.reports.compare_text import NAME_WIDTH, notes_of, reason_line
from profrun.reports.terminal_layout import PLAIN, Part, Style, Table, cut, lay_out

if TYPE_CHECKING:
    from profrun.analysis.compare.blocking_model import Blocking


def blocking_text(found: Blocking, style: Style = PLAIN, *, top: int = 15) -> str:
    """The whole answer for a terminal.

    Args:
        found: the comparison of the twins.
        style: width and colours.
        top: rows of the table by op or range; 0 for all.
    """
    parts: list[Part] = [*_answer(found), *filter(None, [found.sentence])]
    parts += [reason_line(one) for one in found.reasons if one.severity != "info"]
    parts += [f"  {one}" for one in found.next_steps]
    parts += [*_kernels(found), *_overlap(found), *_per_op(found, top), *_syncs(found)]
    return lay_out([*parts, *notes_of(found.reasons)], style)


def _answer(found: Blocking) -> list[str]:
    """The step time without and with blocking in one line; nothing where they were not compared."""
    if found.step_ns is None:
        return []
    variant = f"{found.variant} " if found.variant else ""
    line = change_sentence(
        (f"{variant}async", f"{variant}blocking"),
        found.step_ns,
        found.verdict,
        found.ci95,
        found.trials,
        per=found.denominator.per,
    )
    return [line if found.timed_by in (None, "none") else f"{line} (timed under {found.timed_by})"]


def _kernels(found: Blocking) -> list[Part]:
    """Whether both runs launched the same kernels, and whether these were as fast."""
    parts: list[Part] = []
    rate = found.denominator.rate
    if found.kernel_multiset_equal is not None:
        parts.append(f"{'the same' if found.kernel_multiset_equal else 'NOT the same'} kernels in both runs")
        for one in found.kernel_differences[:5]:
            plain, blocking = rate_text(one.async_calls), rate_text(one.blocking_calls)
            parts.append(f"  {cut(one.name, NAME_WIDTH)}: {plain} {rate} without blocking, {blocking} with")
    if found.kernel_ns is not None and found.kernel_ratio is not None:
        a, b = map(time_text, found.kernel_ns)
        parts.append(
            f"kernels: {a} -> {b} {found.denominator.per} ({signed_change_text(found.kernel_ratio)})"
        )
    return parts


def _overlap(found: Blocking) -> list[Part]:
    """What ran at the same time, what a launch costs, and what blocking cannot reach."""
    parts: list[Part] = []
    per = found.denominator.per
    if found.overlap_ns is not None:
        a, b = time_text(found.overlap_ns), time_text(found.blocking_overlap_ns)
        parts.append(f"GPU work while the host went on: {a} {per} asynchronous, {b} blocking")
    if found.concurrent_ns is not None and max(found.concurrent_ns) > 0:
        a, b = map(time_text, found.concurrent_ns)
        parts.append(f"concurrency between streams: {a} -> {b} {per}")
    if all(value is not None for value in found.launch_ns):
        a, b = map(time_text, found.launch_ns)
        parts.append(f"one launch call: {a} -> {b}")
    if found.graph_share:
        share = percent_text(found.graph_share)
        parts.append(f"{share} of GPU time is in graphs, which blocking does not serialise")
    return parts


def _per_op(found: Blocking, top: int) -> list[Part]:
    rows = [row for row in found.per_op if row.kind != "api"]
    if not rows:
        return []
    shown = rows[:top] if top else rows
    title = (
        f"host time {found.denominator.per} with children; latency is the time of one blocking call with its "
        "kernels"
    )
    header = ("op or range", "calls", "async", "blocking", "hidden", "GPU", "latency")
    cells = [
        (
            cut(row.name, NAME_WIDTH),
            rate_text(row.calls),
            *map(time_text, (row.async_ns, row.blocking_ns, row.hidden_ns, row.device_ns, row.latency_ns)),
        )
        for row in shown
    ]
    parts: list[Part] = ["", title, Table(header, cells, right=range(1, len(header)))]
    if len(shown) < len(rows):
        parts.append(f"  ... and {len(rows) - len(shown)} more (--top 0 shows all)")
    return parts


def _syncs(found: Blocking) -> list[Part]:
    if not found.sync_points:
        return []
    rows = [
        (
            one.name,
            time_text(one.async_ns),
            time_text(one.blocking_ns),
            f"{rate_text(one.async_calls)} -> {rate_text(one.blocking_calls)}",
        )
        for one in found.sync_points
    ]
    table = Table(("call", "async", "blocking", "calls"), rows, right=(1, 2))
    return ["", f"calls that wait for the GPU, {found.denominator.per}", table]
