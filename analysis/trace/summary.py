"""The summary of a trace: the quality of the recording first, then where the time went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np

from profrun.analysis.json import to_json
from profrun.analysis.trace.collectives import CollectiveRow, collectives
from profrun.analysis.trace.copies import CopyRow, copies
from profrun.analysis.trace.data_quality import data_quality, withheld
from profrun.analysis.trace.frame import KIND, Frame, frame
from profrun.analysis.trace.gpu import DeviceMetrics, devices
from profrun.analysis.trace.idle import IdleRow, idle
from profrun.analysis.trace.kernels import CategoryRow, KernelRow, categories
from profrun.analysis.trace.memory import MemoryPeak, memory
from profrun.analysis.trace.modules import ModuleTree, module_tree
from profrun.analysis.trace.ops import OpRow
from profrun.analysis.trace.peaks import Peaks
from profrun.analysis.trace.per_step import PerStep, per_step
from profrun.analysis.trace.quality import QualityFinding
from profrun.analysis.trace.queue import LaunchStats, QueueRow, launch_stats, queues
from profrun.analysis.trace.ranges import RangeRow, ranges
from profrun.analysis.trace.ranks import RankReport, compare_ranks
from profrun.analysis.trace.roofline import Roofline, device_peaks, roofline
from profrun.analysis.trace.runtime_calls import ApiRow, apis
from profrun.analysis.trace.steadiness import RunPhase, steadiness, window_phase
from profrun.analysis.trace.steps import Step, denominator, steps
from profrun.contract.denominator import Denominator
from profrun.contract.window_phase import WindowPhase
from profrun.traces.labels import labels

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


class Dataclass(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Row = TypeVar("Row", bound=Dataclass)


@dataclass(frozen=True)
class Summary:
    """Everything a summary shows; ``to_json()`` is what ``profrun summary --json`` prints.

    Attributes:
        source, collector, vendor, tool_version: of the recording.
        span_ns: first start to last end of everything recorded.
        quality: findings about the quality of the recording, gravest first.
        withheld: names of the numbers that are None or empty for them.
        devices, steps, categories, kernels, ops, ranges, apis, copies, collectives, idle, queues, launches,
            memory: see their modules. Tables are sorted by time.
        per_step: sums over all steps, by which the parts of rows that lie in steps are divided; None without
            steps.
        modules: the tree of nn.Modules; None where none is recorded, or its GPU times are withheld.
        denominator: what times "per step" are of: a step, the run, or the recording.
        omitted: how many rows ``top`` cut from each table.
        ranks: what several ranks in this trace show together; None for a single one.
        counts: slices by kind.
        gpus: device id -> what the GPU is called (``traces.labels``).
        guessed_ranks: ranks that nothing in the recording states: guesses.
        peaks: by device id, None for a GPU that is not in the table.
        roofline: rates of ops whose shapes give their work; None where its GPU times are withheld.
        phases: of the run, recorded or not, where its steps were timed; one where it is steady.
        window: in which of several phases the recorded steps lie; None where there is one or no window.
    """

    source: str
    collector: str
    vendor: str
    tool_version: str | None
    span_ns: int
    launch_blocking: bool | None
    quality: list[QualityFinding]
    withheld: tuple[str, ...]
    devices: list[DeviceMetrics]
    steps: list[Step]
    categories: list[CategoryRow]
    kernels: list[KernelRow]
    ops: list[OpRow]
    ranges: list[RangeRow]
    per_step: PerStep | None
    denominator: Denominator
    modules: ModuleTree | None
    apis: list[ApiRow]
    copies: list[CopyRow]
    collectives: list[CollectiveRow]
    idle: list[IdleRow]
    queues: list[QueueRow]
    launches: LaunchStats | None
    memory: list[MemoryPeak]
    ranks: RankReport | None
    gpus: dict[int, str]
    guessed_ranks: tuple[int, ...]
    peaks: dict[int, Peaks | None]
    roofline: Roofline | None
    phases: list[RunPhase]
    window: WindowPhase | None
    counts: dict[str, int]
    omitted: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; keys as in the attributes."""
        found: dict[str, Any] = to_json(self)
        return found


def summarize(trace: Trace, *, top: int | None = None, peaks: Mapping[str, float] | None = None) -> Summary:
    """Summarise a trace.

    Args:
        trace: any trace, of any collector.
        top: rows of each table to keep, None for all; ``omitted`` counts the others.
        peaks: overrides of the GPU's peaks (dtype -> TFLOP/s, 'memory_gb_s').

    Raises:
        UsageError: an override that is no positive number.
    """
    source, meta = frame(trace), trace.meta
    quality = data_quality(trace)
    hidden = withheld(quality)
    low, high = source.extent
    omitted: dict[str, int] = {}

    def cut(name: str, rows: list[Row]) -> list[Row]:
        if name in hidden:
            return []
        if top is not None and len(rows) > top:
            omitted[name] = len(rows) - top
            return rows[:top]
        return rows

    def roofs() -> Roofline | None:
        if meta.get("replayed") or "ops.self_device_ns" in hidden:
            return None
        found = roofline(trace, peaks=peaks)
        return replace(found, rows=cut("roofline", found.rows))

    sums, table, ops = per_step(trace)
    return Summary(
        source=meta["source"],
        collector=meta["collector"],
        vendor=meta["vendor"],
        tool_version=meta.get("tool_version"),
        span_ns=high - low,
        launch_blocking=meta.get("launch_blocking"),
        quality=quality,
        withheld=tuple(sorted(hidden)),
        devices=_hide(devices(trace), "devices", hidden),
        steps=_hide(steps(trace), "steps", hidden),
        categories=[] if "categories" in hidden else categories(table),
        kernels=cut("kernels", table),
        ops=cut("ops", _hide(ops, "ops", hidden)),
        ranges=cut("ranges", _hide(ranges(trace), "ranges", hidden)),
        per_step=sums,
        denominator=denominator(trace),
        modules=None if "modules.gpu_ns" in hidden else module_tree(trace),
        apis=cut("apis", apis(trace)),
        copies=cut("copies", copies(trace)),
        collectives=cut("collectives", collectives(trace)),
        idle=cut("idle", idle(trace)),
        queues=cut("queues", queues(trace)),
        launches=None if "launches" in hidden else launch_stats(trace),
        memory=memory(trace),
        ranks=compare_ranks([trace]) if len(source.processes) > 1 and "collectives" not in hidden else None,
        gpus=dict(labels(trace).gpus),
        guessed_ranks=tuple(sorted(labels(trace).guessed)),
        peaks=device_peaks(source, peaks),
        roofline=roofs(),
        phases=list(steady.phases) if (steady := steadiness(trace)) else [],
        window=window_phase(trace),
        counts=_counts(source),
        omitted=omitted,
    )


def _counts(source: Frame) -> dict[str, int]:
    """Slices by kind, those that are there."""
    count = np.bincount(source.kind, minlength=256)
    return {kind: int(count[code]) for kind, code in sorted(KIND.items()) if count[code]}


def _hide(rows: list[Row], table: str, hidden: frozenset[str]) -> list[Row]:
    """The rows with their withheld numbers None, whatever the declared type: no number beats a wrong one."""
    names = {name.split(".", 1)[1] for name in hidden if name.startswith(f"{table}.")}
    return [_without(row, names) for row in rows] if names else rows


def _without(row: Row, names: set[str]) -> Row:
    """The row, and its part that lies in steps, with None in these columns."""
    gone = {name: None for name in names if hasattr(row, name)}
    part = getattr(row, "in_steps", None)
    if part is not None:
        row = replace(row, in_steps=_without(part, names))
    return replace(row, **gone)
