"""The tables of a trace as HTML: kernels, operators, ranges, runtime calls, copies, collectives, idle time.

Each function returns None for a table without rows, and a sentence for one that is withheld.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from profrun.contract.units import count_text, time_text
from profrun.reports.charts import legend, stacked_bar
from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, table
from profrun.reports.kernel_labels import kernel_labels
from profrun.reports.quality_marks import MarkedColumns, Marks
from profrun.reports.terminal_tables import TORCH_DIFFERS

if TYPE_CHECKING:
    from profrun.analysis.trace.collectives import CollectiveRow
    from profrun.analysis.trace.copies import CopyRow
    from profrun.analysis.trace.idle import IdleRow
    from profrun.analysis.trace.kernels import CategoryRow, KernelRow
    from profrun.analysis.trace.key_averages import KeyAverage, KeyAverages
    from profrun.analysis.trace.ops import OpRow
    from profrun.analysis.trace.ranges import RangeRow
    from profrun.analysis.trace.runtime_calls import ApiRow
    from profrun.analysis.trace.summary import Summary

IDLE_CAUSES = {
    "host_wait_ns": ("host_wait", "the host enqueued too late"),
    "kernel_wait_ns": ("kernel_wait", "usual delay between kernels"),
    "other_ns": ("other", "enqueued in time, held back by something else"),
    "unknown_ns": ("unknown", "the enqueueing call is not in the trace"),
}
"""Field of an ``IdleRow`` -> its colour, and the cause in words."""
WAITING = "; the wait for the slowest rank is in the time, so links may be faster"
TRANSFER = "size / transfer x the factor of nccl-tests"


def kernels(summary: Summary, marks: Marks) -> Html | None:
    """Kernels by name with the distribution of their times, below the time of each category."""
    if not summary.kernels:
        return marks.instead("kernels")
    column = MarkedColumns("kernels", marks)
    source = f"kernel records of {summary.source}"
    labels = {
        row.name: label for row, label in zip(summary.kernels, kernel_labels(summary.kernels), strict=True)
    }
    columns: list[Column[KernelRow]] = [
        Column("kernel", lambda row: labels[row.name], "name", full=lambda row: row.name),
        Column("category", lambda row: row.category, note="read from the name"),
        Column("dtype", lambda row: row.dtype, note="read from the name"),
        column("calls", "calls", "count", source),
        column("share", "share", "share", "total / time of all kernels, concurrent ones counted each"),
        *_per_step(summary),
        column("total_ns", "total", "ns", f"sum of durations; {source}"),
        column("mean_ns", "mean", "ns", "total / calls"),
        column("p50_ns", "p50", "ns", "median duration of a call"),
        column("p99_ns", "p99", "ns", "99th percentile of a call's duration, linear between calls"),
        column("min_ns", "min", "ns", "shortest call"),
        column("max_ns", "max", "ns", "longest call"),
    ]
    shares: list[Column[CategoryRow]] = [
        Column("category", lambda row: row.category),
        Column("kernels", lambda row: row.kernels, "count", "names"),
        Column("calls", lambda row: row.calls, "count"),
        Column("share", lambda row: row.share, "share", "of the time of all kernels"),
        Column("total", lambda row: row.total_ns, "ns", f"sum of durations; {source}"),
    ]
    rows, every = summary.kernels, len(summary.kernels) + summary.omitted.get("kernels", 0)
    time, calls = time_text(sum(row.total_ns for row in rows)), count_text(sum(row.calls for row in rows))
    return el(
        "div",
        el("p", f"{time} in {calls} launches; shares are of this time.", class_="note"),
        table("categories", shares, summary.categories, caption="kernel time by category"),
        table("kernels", columns, rows, caption="kernels by time", filterable=True, total=every),
    )


def _per_step(summary: Summary) -> list[Column[KernelRow]]:
    """The columns of a kernel's calls and time per step; none for a recording without steps."""
    if summary.per_step is None:
        return []
    steps, of = summary.per_step.steps, summary.denominator

    over = " / steps" if of.several else ""

    def calls(row: KernelRow) -> float | None:
        return None if row.in_steps is None else row.in_steps.calls / steps

    def time(row: KernelRow) -> float | None:
        return None if row.in_steps is None else row.in_steps.total_ns / steps

    return [
        Column(f"calls {of.rate}", calls, "number", f"calls that {of.every} launched{over}"),
        Column(of.per, time, "ns", f"time of the kernels that {of.every} launched{over}"),
    ]


def ops(summary: Summary, shapes: KeyAverages | None, marks: Marks) -> Html | None:
    """Operators and calls as torch's own table shows them, and by the shapes of their inputs."""
    if not summary.ops:
        return marks.instead("ops")
    column = MarkedColumns("ops", marks)
    device = (
        column("self_device_ns", "self device", "ns", "GPU time of what it launched itself"),
        column("device_ns", "device", "ns", "GPU time of what it and its children launched"),
    )
    columns: list[Column[OpRow]] = [
        Column("operator", lambda row: row.name, "name"),
        Column("kind", lambda row: row.kind),
        column("calls", "calls", "count", "as torch's key_averages counts them"),
        column("self_cpu_ns", "self CPU", "ns", "host time without children, summed over calls"),
        column("cpu_ns", "CPU", "ns", "host time with children, summed over calls"),
        *(device if summary.devices else ()),
        column("flops", "FLOP", "amount", "by torch's counting, all calls; '-' where it counts none"),
    ]
    if any(row.torch for row in summary.ops):
        note = f"where key_averages() has another number: {TORCH_DIFFERS}"
        columns.append(Column("torch's own", _torchs_own, note=note))
    if any(row.device_memory_bytes is not None for row in summary.ops):
        columns.append(
            column("device_memory_bytes", "device memory", "bytes", "allocated minus freed inside the calls")
        )
    every = len(summary.ops) + summary.omitted.get("ops", 0)
    caption = "operators, ranges and calls"
    by_name = table("ops", columns, summary.ops, caption=caption, filterable=True, total=every)
    return el("div", by_name, None if shapes is None else _by_shapes(shapes, on_gpu=bool(summary.devices)))


def _by_shapes(found: KeyAverages, *, on_gpu: bool) -> Html | None:
    """Operators by the shapes of their inputs, most time first."""

    def weight(row: KeyAverage) -> int:
        return (row.self_device_ns or 0) if on_gpu else row.self_cpu_ns

    rows = sorted((row for row in found.rows if row.shapes not in ("", "[]")), key=lambda row: -weight(row))
    if not rows:
        return None
    whole = found.self_device_total_ns if on_gpu else found.self_cpu_total_ns
    of = (
        "self device time over the time of all kernels and copies"
        if on_gpu
        else "self CPU time over that of all"
    )
    device: list[Column[KeyAverage]] = [
        Column("self device", lambda row: row.self_device_ns, "ns", "GPU time of what it launched itself"),
        Column("device", lambda row: row.device_ns, "ns", "GPU time of what it and its children launched"),
    ]
    memory: list[Column[KeyAverage]] = [
        Column("self memory", lambda row: row.self_device_bytes, "bytes", "allocated minus freed"),
    ]
    columns: list[Column[KeyAverage]] = [
        Column("operator", lambda row: row.name, "name"),
        Column("input shapes", lambda row: row.shapes, "name"),
        Column("calls", lambda row: row.calls, "count"),
        Column("share", lambda row: weight(row) / whole if whole else None, "share", of),
        *(device if on_gpu else ()),
        Column("self CPU", lambda row: row.self_cpu_ns, "ns", "host time without children, of all calls"),
        Column("CPU", lambda row: row.cpu_ns, "ns", "host time with children, of all calls"),
        *(memory if found.memory and on_gpu else ()),
    ]
    caption = "operators by the shapes of their inputs"
    return table("shapes", columns, rows, caption=caption, filterable=True)


def _torchs_own(row: OpRow) -> str | None:
    """What torch's own table has instead, in words."""
    words = {
        "self_cpu_ns": "self CPU",
        "cpu_ns": "CPU",
        "self_device_ns": "self device",
        "device_ns": "device",
    }
    found = []
    for name, value in row.torch.items():
        shown = "not known" if value is None else count_text(value) if name == "calls" else time_text(value)
        found.append(f"{words.get(name, name)} {shown}")
    return ", ".join(found) or None


def ranges(summary: Summary, marks: Marks) -> Html | None:
    """Named regions of the program; the call tree has the modules."""
    if not summary.ranges:
        return marks.instead("ranges")
    column = MarkedColumns("ranges", marks)
    numbers = [
        column("calls", "calls", "count"),
        column("host_ns", "host", "ns", "host time, a range inside one of the same name counted once"),
    ]
    if summary.devices:
        numbers += [
            column("gpu_ns", "GPU", "ns", "GPU time launched inside it on its own thread"),
            column("gpu_slices", "GPU slices", "count", "kernels, copies and fills launched inside it"),
        ]
    if any(row.adopted_slices for row in summary.ranges):
        numbers.append(
            column("adopted_ns", "backward GPU", "ns", "GPU time that autograd's threads launched meanwhile")
        )
    rows = [row for row in summary.ranges if row.module is None]
    if not rows:
        return None
    named: Column[RangeRow] = Column("range", lambda row: row.name, "name")
    return table(
        "ranges",
        [named, *numbers],
        rows,
        caption=f"ranges and {'steps' if summary.denominator.several else summary.denominator.the}",
        filterable=True,
    )


def runtime(summary: Summary, marks: Marks) -> Html | None:
    """Runtime and driver calls, with how long launched work waits."""
    if not summary.apis:
        return marks.instead("apis")
    column = MarkedColumns("apis", marks)
    columns: list[Column[ApiRow]] = [
        Column("call", lambda row: row.name, "name"),
        column("calls", "calls", "count"),
        column("total_ns", "total", "ns", "host time of all calls"),
        column("mean_ns", "mean", "ns", "total / calls"),
        column("p50_ns", "p50", "ns", "median"),
        column("p99_ns", "p99", "ns", "99th percentile"),
        column("max_ns", "max", "ns", "longest call"),
        column("gpu_slices", "GPU slices", "count", "GPU work that its calls enqueued"),
    ]
    waits = None
    if summary.launches is not None and summary.launches.latency is not None:
        latency = summary.launches.latency
        waits = (
            f"Launch latency (start of the GPU work - start of its call): p50 {time_text(latency.p50)}, p99 "
            f"{time_text(latency.p99)}, over {count_text(latency.count)} GPU slices with a known call; "
            f"{count_text(summary.launches.unplaced)} without one."
        )
    return el(
        "div",
        el("p", waits, marks.of("launches"), class_="note") if waits else marks.instead("launches"),
        table("apis", columns, summary.apis, caption="runtime and driver calls", limit=40),
    )


def copies(summary: Summary, marks: Marks) -> Html | None:
    """Copies and fills by direction and memory kind."""
    if not summary.copies:
        return marks.instead("copies")
    column = MarkedColumns("copies", marks)
    columns: list[Column[CopyRow]] = [
        Column("direction", lambda row: row.direction),
        Column("from", lambda row: row.src_kind, note="kind of source memory"),
        Column("to", lambda row: row.dst_kind, note="kind of destination memory"),
        column("calls", "calls", "count"),
        column("total_ns", "total", "ns", "sum of durations"),
        column("bytes", "moved", "bytes", "bytes of all calls that have a size"),
        column("gb_s", "rate", "number", "bytes / time of the calls that have a size", "GB/s"),
    ]
    return table("copies", columns, summary.copies, caption="copies and fills")


def collectives(summary: Summary, marks: Marks) -> Html | None:
    """Collectives by kind and size, and who waited for whom."""
    if not summary.collectives:
        return marks.instead("collectives")
    column = MarkedColumns("collectives", marks)
    columns: list[Column[CollectiveRow]] = [
        Column("operation", lambda row: row.op),
        Column("dtype", lambda row: row.dtype),
        Column("group", lambda row: row.group),
        column("group_size", "ranks", "count"),
        column.rank(summary.guessed_ranks, "whose time"),
        column("bytes", "size", "bytes", "the larger of input and output of one rank"),
        column("calls", "calls", "count"),
        column("total_ns", "total", "ns", "time on the GPU, on the host where there is no GPU part"),
        column("mean_ns", "mean", "ns", "total / calls"),
        column("min_ns", "min", "ns"),
        column("max_ns", "max", "ns"),
        column("alg_gb_s", "algorithm", "number", f"size / mean time{WAITING}", "GB/s"),
        column("bus_gb_s", "bus", "number", f"algorithm rate x the factor of nccl-tests{WAITING}", "GB/s"),
    ]
    if any(row.matched for row in summary.collectives):
        columns += [
            column("matched", "matched", "count", "calls that all ranks of the group have in this trace"),
            column("transfer_ns", "transfer", "ns", "mean time from the last rank's start to its end"),
            column("transfer_bus_gb_s", "bus, no wait", "number", TRANSFER, "GB/s"),
        ]
    return table("collectives", columns, summary.collectives, caption="collectives")


def idle_table(summary: Summary, marks: Marks) -> Html | None:
    """Idle time by its cause, of each stream and of whole GPUs."""
    if not summary.idle:
        return marks.instead("idle")
    column = MarkedColumns("idle", marks)
    columns: list[Column[IdleRow]] = [
        Column(
            "GPU or stream",
            lambda row: summary.gpus[row.device] + ("" if row.track is None else f" stream {row.stream}"),
        ),
        column("span_ns", "span", "ns", "first start to last end of its work"),
        column("busy_ns", "busy", "ns", "union of its work"),
        column("idle_ns", "idle", "ns", "span - busy"),
        *(
            column(key, role.replace("_", " "), "ns", f"{text}; part of idle")
            for key, (role, text) in IDLE_CAUSES.items()
        ),
    ]
    return el(
        "div",
        legend([("kernel", "busy"), *((f"idle-{role}", text) for role, text in IDLE_CAUSES.values())]),
        [_idle_bar(row, summary.gpus[row.device]) for row in summary.idle if row.track is None],
        table("idle", columns, summary.idle, caption="idle time of GPUs and streams"),
    )


def _idle_bar(row: IdleRow, gpu: str) -> Html:
    """Busy and idle time of a whole GPU as a bar, with the causes in words."""
    parts = {"kernel": row.busy_ns}
    causes = []
    for key, (role, text) in IDLE_CAUSES.items():
        parts[f"idle-{role}"] = getattr(row, key)
        if getattr(row, key):
            causes.append(f"{text} {time_text(getattr(row, key))}")
    caption = f"{gpu}: idle {time_text(row.idle_ns)} of {time_text(row.span_ns)}, {', '.join(causes)}"
    bar = stacked_bar(parts, row.span_ns, f"{gpu}: busy and idle time by cause")
    return el("figure", el("figcaption", caption), bar)
