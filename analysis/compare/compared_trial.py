"""A trial as a comparison takes it: a trace reduced to frozen values that go to JSON and back.

``reading.read_trial`` makes a ``ComparedTrial`` from a trace; ``trial_from_json`` reads one that a baseline
keeps. All times are ns. A sample is one step of one rank. Typical samples are whole and no outliers; kernel
groups and host operations are sums over the typical samples, so that two sides with different numbers of
recorded steps can be compared after a division by their numbers of samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from profrun.analysis.counted_steps import Phase
from profrun.analysis.json import to_json
from profrun.contract.denominator import STEP, Denominator
from profrun.contract.git_state import GitState
from profrun.contract.window_phase import WindowPhase

TRIAL_FORMAT = 3
"""Format 2 (profrun 0.2) has no ``phase``: its samples are of the schedule's window. Format 1 (profrun 0.1)
has no ``conditions.tool`` either, and three keys with other names."""
_NAMES_OF_FORMAT_1 = {"units": "samples", "atoms": "kernel_groups", "host": "host_ops"}


@dataclass(frozen=True)
class RecordingConditions:
    """Under which conditions a trial was recorded; None where nothing tells.

    Attributes:
        label: the name of the trial in messages.
        fingerprint: equal for two copies of one recording, so that a trace is never compared with itself.
        source: the format that was read.
        collector: the collector as the job names it, or the tool where no job is known.
        tool: the profiler that recorded the trace, or ``none``.
        measure: what the time of a step is: 'span' (host range extended to the end of its GPU work), 'host'
            (the host range alone, because nothing ran on a GPU), 'event' (two GPU events), 'wall' (the clock
            of the host, without a profiler) or 'recording' (no steps: the whole recording counts as one).
        blocking: launch blocking as the job or the tool states it. blocking_seen: did launches
            wait for their kernels, by their timing (``trace.runtime_calls.launch_waits``).
        devices: product names, sorted, each once. arch: their architectures. ranks: processes with steps.
        values: declared work: the values of the variant, as the job states them.
        inputs: shapes of the root module's inputs, as the hook saw them.
        program: script and arguments of the program, without the folder of the script. steps_made: steps
            that the program made in all, recorded or not.
        began_ns: unix time at which the first step of the trial began, ns.
        nodes: names of the nodes of a cluster on which the trial ran; empty where no cluster ran it.
        throttled: throttle reasons that slow a GPU down, of the GPUs that the trial used, before or after it.
        sm_mhz: SM clock after the trial, the lowest of the GPUs that it used, in MHz.
        software: versions of what changes numbers, by name. git: more of the commit than ``software`` has.
        denominator: whether a sample is a step, the run or its recorded part, or the whole recording.
        doubts: (code, text) of what makes the numbers of steps or kernels of the trace wrong.
        outside_ns: GPU time that no whole step launched. total_gpu_ns: GPU time of the recording.
        window: in which of several phases of the run the window lies; None where there is one, or no window.
    """

    label: str
    fingerprint: str
    source: str
    collector: str
    tool: str
    vendor: str
    measure: str
    profiled: bool
    blocking: bool | None
    blocking_seen: bool | None
    replayed: bool
    ranks: int
    devices: tuple[str, ...] = ()
    arch: tuple[str, ...] = ()
    tool_version: str | None = None
    job: str | None = None
    variant: str | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    inputs: str | None = None
    program: tuple[str, ...] = ()
    steps_made: int | None = None
    began_ns: int | None = None
    nodes: tuple[str, ...] = ()
    throttled: tuple[str, ...] = ()
    sm_mhz: float | None = None
    software: Mapping[str, str] = field(default_factory=dict)
    git: GitState = field(default_factory=GitState)
    denominator: Denominator = STEP
    doubts: tuple[tuple[str, str], ...] = ()
    outside_ns: int = 0
    total_gpu_ns: int = 0
    window: WindowPhase | None = None

    @property
    def launches_block(self) -> bool | None:
        """Did launches block: as stated, else by their timing; None when neither tells."""
        return self.blocking if self.blocking is not None else self.blocking_seen


@dataclass(frozen=True)
class StepSample:
    """One step of one rank.

    Attributes:
        time_ns: its time by ``RecordingConditions.measure``. host_ns: its host range.
        gpu_ns: sum of the GPU work that it launched. busy_ns: union of that work.
        kernels: kernels that it launched. launches: host calls that launched GPU work.
        overlap_ns: GPU work that ran while the host was in the step and did not wait for it.
        edge: the step is at the end of the window and work is missing: it is in no number.
        outlier: its time is far above the others. It is in the statistics of step time, and it is left out
            of the table of what changed.
        rank_guessed: nothing in the recording states the rank.
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
    rank_guessed: bool = False


@dataclass(frozen=True)
class KernelGroup:
    """GPU work of one kernel name (or copy) launched from one call path, summed over typical samples.

    Attributes:
        name: normalised name. category: a key of ``kernel_names.CATEGORIES``, or the role of a copy or fill.
        role: compute, comm, memcpy or memset (copy kernels of AMD's runtime are memcpy).
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

    @property
    def is_kernel_work(self) -> bool:
        """False for copies and fills: each tool and runtime has its own names for them."""
        return self.role in ("compute", "comm")

    @property
    def ops(self) -> list[str]:
        """Ops round the launch, innermost first."""
        return [
            name for name, kind in zip(reversed(self.path), reversed(self.kinds), strict=True) if kind == "o"
        ]

    @property
    def op(self) -> str | None:
        """The innermost op."""
        return next(iter(self.ops), None)

    @property
    def ranges(self) -> tuple[str, ...]:
        """Ranges round the launch, outermost first; the backward of a module counts as a range."""
        found = tuple(name for name, kind in zip(self.path, self.kinds, strict=True) if kind == "r")
        return (*found, f"backward of {self.module}") if self.backward and self.module else found


@dataclass(frozen=True)
class PlaceWork:
    """GPU work of a line or a module of the program, in the typical samples.

    Attributes:
        by: what it is the work of; a row of work without an address is of both.
        name: function of the line, qualified name of the module, or why the work has no address.
        file, line: of a line; None else.
        ns: in each typical sample, in their order; of work that it shares with other lines its part.
        calls: kernels, copies and memsets over all typical samples; shared ones count whole.
        kernels: normalised names, most time first.
    """

    by: Literal["line", "module", "unresolved"]
    name: str
    file: str | None
    line: int | None
    ns: tuple[float, ...]
    calls: int
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class Places:
    """GPU work of a trial by line and by module of the program.

    Attributes:
        works: the parts of the work; those by line and the unresolved ones add up to all of it, likewise
            those by module.
        digests: file -> digest of each line, from line 1, of the files whose lines are in ``works``; without
            a file whose lines are not known.
    """

    works: tuple[PlaceWork, ...]
    digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelFacts:
    """What the name and the launches of a kernel tell, by normalised name.

    Attributes:
        raw: the name as the tool wrote it. short: what a person calls it.
        layout, dtype, tile, arch, epilogue, fused_ops: as in ``kernel_names.KernelName``.
        shapes: (grid x block, launches) of each launch shape over typical samples, most launches first.
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
    """Host slices of one name inside typical samples (an op, a range, a runtime call).

    Attributes:
        kind: op, range, step or api.
        calls: nested repeats of the same call count once.
        cpu_ns: host time with children. self_cpu_ns: without.
        device_ns, self_device_ns: GPU time of what it launched, with and without its children.
        main_ns: self_cpu_ns on the thread of the steps; these times add up to the host time of the steps.
        waits: the call waits for the GPU. launches: GPU slices that it enqueued.
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
class StepWork:
    """What is known of the amount of work per step.

    Attributes:
        matrix_flops: FLOPs of matrix multiplies and attention per step and rank, from recorded shapes; None
            without shapes, or where the shapes of an op do not tell its work.
        unknown_ops: matrix-like ops whose shapes do not tell their work.
        tokens: rows of the first matrix multiply of the step (``first`` says which); None where there is
            none.
        steady: every typical sample launched the same kernels.
        kernels: kernel launches per sample, of the most common sequence of kernels.
        uploaded_bytes: copied from the host to GPUs. collective_bytes: payload of collectives. Both per
            sample, None where the trace does not tell.
    """

    matrix_flops: float | None = None
    unknown_ops: tuple[str, ...] = ()
    tokens: int | None = None
    first: str | None = None
    steady: bool = True
    kernels: int = 0
    uploaded_bytes: float | None = None
    collective_bytes: float | None = None


@dataclass(frozen=True)
class ComparedTrial:
    """A trace reduced to what a comparison needs; small enough to keep as a baseline.

    Attributes:
        facts: what kernel names and launches tell, by normalised name.
        series: GPU ns of each typical sample by normalised kernel name (the 400 names with most time).
        launch_calls, launch_ns: launch calls in typical samples: their number and their time.
        latency_ns: median from the start of a launch call to the start of its GPU work.
        graph_ns: GPU time launched by graphs, in typical samples. streams: number of GPU streams used.
        memory_peak: highest allocated bytes of any device, None without records.
        energy_j: energy per step of the GPUs that the trial used, J; see ``trace.energy.step_energy``. None
            where it was not measured, and ``energy_note`` says why (None: no GPU was sampled).
        outside: GPU ns by category of what no whole step launched.
        phase: which steps of the run the samples are; 'window' under a profiler, and always before
            format 3.
        state: what kept the GPU or the host in the state of these steps (codes of the causes of a phase).
    """

    conditions: RecordingConditions
    samples: tuple[StepSample, ...]
    kernel_groups: tuple[KernelGroup, ...]
    facts: Mapping[str, KernelFacts]
    series: Mapping[str, tuple[int, ...]]
    host_ops: tuple[HostOp, ...]
    work: StepWork
    rates: tuple[Rate, ...] = ()
    launch_calls: int = 0
    launch_ns: int = 0
    latency_ns: float | None = None
    graph_launches: int = 0
    graph_ns: int = 0
    streams: int = 0
    memory_peak: int | None = None
    energy_j: float | None = None
    energy_note: str | None = None
    outside: Mapping[str, int] = field(default_factory=dict)
    phase: Phase = "window"
    state: tuple[str, ...] = ()
    places: Places | None = None
    format: int = TRIAL_FORMAT

    @property
    def times(self) -> list[int]:
        """ns of every step that is whole: of several ranks the slowest, because the others wait for it."""
        slowest: dict[int, int] = {}
        for sample in self.samples:
            if not sample.edge and sample.time_ns > 0:
                slowest[sample.step] = max(sample.time_ns, slowest.get(sample.step, 0))
        return list(slowest.values())

    @property
    def typical(self) -> tuple[StepSample, ...]:
        """Samples in the table of what changed: whole, and no outliers."""
        return tuple(sample for sample in self.samples if not sample.edge and not sample.outlier)

    @property
    def typical_count(self) -> int:
        """Number of typical samples, at least 1: sums over them are divided by it."""
        return max(1, len(self.typical))

    def to_json(self) -> dict[str, object]:
        """Plain JSON values; ``trial_from_json`` reads them back."""
        found: dict[str, object] = to_json(self)
        return found


def trial_from_json(value: Mapping[str, object]) -> ComparedTrial:
    """Read back what ``ComparedTrial.to_json`` wrote, also that of profrun 0.1 and 0.2 (formats 1 and 2).

    Older files have a share of launches as ``blocking_seen``, which does not tell whether they blocked.

    Raises:
        ValueError: it is not such a value, or of another format.
    """
    import msgspec

    found = dict(value)
    conditions = found.get("conditions")
    if found.get("format") == 1:
        found = {_NAMES_OF_FORMAT_1.get(name, name): part for name, part in found.items()}
        found["format"] = 2
        if isinstance(conditions, Mapping):
            conditions = {"tool": conditions.get("collector"), **conditions}
    if isinstance(conditions, Mapping):
        if conditions.get("measure") == "recording":  # before 0.2 nothing else said so
            conditions = {"denominator": {"of": "recording"}, **conditions}
        seen = conditions.get("blocking_seen")
        found["conditions"] = {**conditions, "blocking_seen": seen if isinstance(seen, bool) else None}
    if found.get("format") == 2:
        found = {**found, "format": TRIAL_FORMAT, "phase": "window"}
    if found.get("format") != TRIAL_FORMAT:
        raise ValueError(f"trial format {found.get('format')!r}, this profrun reads 1 to {TRIAL_FORMAT}")
    try:
        return msgspec.convert(found, ComparedTrial)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
