"""A trial as comparing needs it: a trace reduced to frozen values that go to JSON and back.

All times are ns. A unit is one step of one rank; sums are over typical units, so that two sides with other
numbers of recorded steps can stand beside each other once divided by theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from profrun.analysis.json import to_json

TRIAL_FORMAT = 1


@dataclass(frozen=True)
class Conditions:
    """Under which conditions a trial was recorded; None where nothing tells.

    Attributes:
        measure: what a step's time is: 'span' (host range extended to the end of its GPU work), 'host' (the
            host range alone: nothing ran on a GPU), 'event' (two GPU events), 'wall' (the host's clock,
            unprofiled) or 'recording' (no steps: the whole recording counts as one).
        fingerprint: tells one recording from another, so that a trace is never compared with itself.
        devices: product names, sorted, one entry a kind; ranks: processes with steps.
        throttled: throttle reasons of the GPUs before or after, those that slow a GPU down only.
        sm_mhz: SM clock after the trial, lowest of its GPUs.
        values: declared work: values of the variant, as the job says.
        inputs: shapes of the root module's inputs, as the hook saw them.
        doubts: (code, message) of what makes the trace's step or kernel numbers wrong.
    """

    label: str
    fingerprint: str
    source: str
    collector: str
    vendor: str
    measure: str
    profiled: bool
    blocking: bool | None
    blocking_seen: float | None
    replayed: bool
    ranks: int
    devices: tuple[str, ...] = ()
    arch: tuple[str, ...] = ()
    tool_version: str | None = None
    job: str | None = None
    variant: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    inputs: str | None = None
    throttled: tuple[str, ...] = ()
    sm_mhz: float | None = None
    software: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[tuple[str, str], ...] = ()
    outside_ns: int = 0
    total_gpu_ns: int = 0


@dataclass(frozen=True)
class Unit:
    """One step of one rank.

    Attributes:
        time_ns: its time by ``Conditions.measure``; host_ns: its host range.
        gpu_ns: sum of the GPU work that it launched; busy_ns: union of that work.
        edge: at the window's end, with work missing: in no number. outlier: named, in the statistics of step
            time, and left out of the table of what changed.
        overlap_ns: GPU work running while the host was in the step and not waiting for it.
    """

    step: int
    rank: int
    time_ns: int
    host_ns: int
    gpu_ns: int
    busy_ns: int
    kernels: int
    launches: int
    overlap_ns: int = 0
    edge: bool = False
    outlier: bool = False


@dataclass(frozen=True)
class Atom:
    """GPU work of one kernel name (or copy) launched from one place in the op tree, summed over typical
    units.

    Attributes:
        name: normalised name. role: compute, comm, memcpy or memset (AMD's copy kernels are memcpy).
        path: ops and ranges round the launch, outermost first, normalised. kinds: 'o' or 'r' of each.
        module: qualified name of the nn.Module, None outside of any.
        backward: launched by autograd's backward of that module.
    """

    name: str
    category: str
    role: str
    path: tuple[str, ...]
    kinds: str
    module: str | None
    backward: bool
    calls: int
    ns: int


@dataclass(frozen=True)
class Facts:
    """What a kernel's name and launches tell, by normalised name.

    ``shapes``: (grid x block, launches) of each launch shape over typical units, most first; empty for none.
    """

    raw: str
    short: str
    category: str
    layout: str | None = None
    dtype: str | None = None
    tile: tuple[int, ...] | None = None
    arch: str | None = None
    epilogue: tuple[str, ...] = ()
    fused_ops: tuple[str, ...] = ()
    shapes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class HostOp:
    """Host slices of one name inside typical units (an op, a range, a runtime call).

    Attributes:
        kind: op, range, step or api.
        calls: nested repeats of the same call count once; cpu_ns: with children; self_cpu_ns: without.
        device_ns, self_device_ns: GPU time of what it launched, with and without its children.
        main_ns: self_cpu_ns on the thread of the steps: these add up to the steps' host time.
        waits: a call that waits for the GPU; launches: GPU slices enqueued.
    """

    name: str
    kind: str
    calls: int
    cpu_ns: int
    self_cpu_ns: int
    device_ns: int
    self_device_ns: int
    main_ns: int = 0
    waits: bool = False
    launches: int = 0


@dataclass(frozen=True)
class Rate:
    """Achieved rate of one op with one set of shapes, over the whole recording.

    ``flops`` is per call; ``share`` is tflops / peak_tflops of this GPU for ``dtype``.
    """

    op: str
    shapes: str
    dtype: str | None
    calls: int
    gpu_ns: int
    flops: int | None
    tflops: float | None
    peak_tflops: float | None
    share: float | None


@dataclass(frozen=True)
class Work:
    """What is known of the amount of work in a step.

    Attributes:
        matrix_flops: FLOPs of matrix multiplies and attention a step and rank, from recorded shapes; None
            without shapes, or where an op's work cannot be told from them.
        unknown_ops: matrix-like ops whose shapes did not tell.
        tokens: rows of the step's first matrix multiply (``first`` says which); None where there is none.
        steady: every typical unit launched the same kernels.
        kernels: kernel launches a unit, of the most common recipe.
    """

    matrix_flops: float | None = None
    unknown_ops: tuple[str, ...] = ()
    tokens: int | None = None
    first: str | None = None
    steady: bool = True
    kernels: int = 0


@dataclass(frozen=True)
class Trial:
    """A trace reduced to what comparing needs; small enough to keep as a baseline.

    Attributes:
        series: GPU ns of each typical unit by normalised kernel name (the 400 with most time).
        overlap_ns: kernels running beside kernels inside typical units: sum - union of GPU work.
        launch_ns: time in launch calls and their number, in typical units; latency_ns: median from a call's
            start to the start of its GPU work.
        graph_ns: GPU time launched by graphs, in typical units. streams: GPU streams used.
        memory_peak: highest allocated bytes of any device, None without records.
        outside: GPU ns by category of what no whole step launched.
    """

    conditions: Conditions
    units: tuple[Unit, ...]
    atoms: tuple[Atom, ...]
    facts: Mapping[str, Facts]
    series: Mapping[str, tuple[int, ...]]
    host: tuple[HostOp, ...]
    work: Work
    rates: tuple[Rate, ...] = ()
    launch_calls: int = 0
    launch_ns: int = 0
    latency_ns: float | None = None
    graph_launches: int = 0
    graph_ns: int = 0
    streams: int = 0
    memory_peak: int | None = None
    outside: Mapping[str, int] = field(default_factory=dict)
    format: int = TRIAL_FORMAT

    @property
    def times(self) -> list[int]:
        """Step time of every step that is whole: of several ranks the slowest, because the others wait."""
        slowest: dict[int, int] = {}
        for unit in self.units:
            if not unit.edge and unit.time_ns > 0:
                slowest[unit.step] = max(unit.time_ns, slowest.get(unit.step, 0))
        return list(slowest.values())

    @property
    def typical(self) -> tuple[Unit, ...]:
        """Units in the table of what changed: whole, and no named outliers."""
        return tuple(unit for unit in self.units if not unit.edge and not unit.outlier)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; ``trial_from_json`` reads them back."""
        found: dict[str, Any] = to_json(self)
        return found


def trial_from_json(value: Mapping[str, Any]) -> Trial:
    """Read back what ``Trial.to_json`` wrote.

    Raises:
        ValueError: it is not such a value, or of another format.
    """
    import msgspec

    if value.get("format") != TRIAL_FORMAT:
        raise ValueError(f"trial format {value.get('format')!r}, this profrun reads {TRIAL_FORMAT}")
    try:
        return msgspec.convert(dict(value), Trial)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
