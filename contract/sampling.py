"""The samples of a trial: what is read of GPUs and of the host while the program runs, and its file.

The wrapper starts one sampler on each host. It writes ``samples.<host>.jsonl`` into the trial's folder. The
first line is a ``SamplesHeader``. Each further line is a list ``[time, source, value, ...]``: unix time in
ns, then the index of a source in ``SamplesHeader.sources``, then one value for each of its quantities, in
their order; a value that could not be read is null. The last line may be cut where the sampler was killed.

Times are those of the reading. What the vendor's library returns may be older: on an H200 every value changes
every 100 ms, and the energy that is read is that of 100 to 200 ms before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .steps import Anchor

FORMAT = 1

TRACK = "samples"
"""Name of the counter tracks of a trace on which samples lie: one for each GPU, one for each host."""

DEFAULT_RATE = 10.0
"""Samples per second: the values of an H200 change so often."""
HIGHEST_RATE = 100.0
"""Most samples per second that can be asked for."""

Quantity = Literal[
    "sm_clock",
    "memory_clock",
    "power",
    "power_average",
    "energy",
    "temperature",
    "reasons",
    "memory_used",
    "utilization",
    "processes",
    "cpu_busy",
    "cpu_own",
    "cpu_stolen",
    "cpu_clock",
    "cpu_quota_wait",
]
"""What is read. See ``MEANINGS``."""


@dataclass(frozen=True)
class Meaning:
    """One quantity as a counter of a trace.

    Attributes:
        name: of the counter. unit: of its values in a trace.
        doc: what it is, one sentence.
    """

    name: str
    unit: str
    doc: str


MEANINGS: dict[Quantity, Meaning] = {
    "sm_clock": Meaning("SM clock", "MHz", "Clock of the SMs (NVIDIA) or of the compute units (AMD)."),
    "memory_clock": Meaning("memory clock", "MHz", "Clock of the GPU's memory."),
    "power": Meaning("power", "W", "Power of the whole board at one moment."),
    "power_average": Meaning(
        "power, average", "W", "Power of the board, averaged by the driver (about 1 s)."
    ),
    "energy": Meaning(
        "energy", "J", "Energy that the board has used since the driver was loaded: a counter."
    ),
    "temperature": Meaning("temperature", "C", "Temperature of the GPU's chip."),
    "reasons": Meaning(
        "slowed by", "mask", "Sum of the bits of ``REASONS``: why the clock is not the highest."
    ),
    "memory_used": Meaning(
        "memory used", "byte", "Memory of the GPU that all programs together have allocated."
    ),
    "utilization": Meaning("utilization", "%", "Share of the time in which some kernel ran, by the driver."),
    "processes": Meaning("processes", "1", "Processes that compute on the GPU, of all programs."),
    "cpu_busy": Meaning(
        "CPU cores busy", "cores", "Cores of the host that were busy since the sample before."
    ),
    "cpu_own": Meaning("CPU cores busy, program", "cores", "Cores that the trial's processes kept busy."),
    "cpu_stolen": Meaning("CPU cores stolen", "cores", "Cores that the hypervisor gave to others."),
    "cpu_clock": Meaning("CPU clock", "MHz", "Mean clock of the cores that the program may run on."),
    "cpu_quota_wait": Meaning(
        "CPU quota wait", "cores", "Cores that waited because the container's CPU quota was used up."
    ),
}
"""Every quantity, in the order of the tracks of a timeline."""

Reason = Literal[
    "power cap",
    "thermal",
    "hardware slowdown",
    "power brake",
    "sync boost",
    "set clocks",
    "idle",
    "display clocks",
]
"""Why a GPU's clock is not the highest, in words that both vendors' reasons are told in."""

REASONS: dict[Reason, int] = {name: 1 << place for place, name in enumerate(get_args(Reason))}
"""Reason -> its bit in values of ``reasons``."""

SLOWING: tuple[Reason, ...] = ("power cap", "thermal", "hardware slowdown", "power brake")
"""Reasons that slow a GPU down under load; the others (idle, clocks that somebody has set) do not."""


def reasons_in(mask: int) -> tuple[Reason, ...]:
    """The reasons whose bits are set."""
    return tuple(name for name, bit in REASONS.items() if mask & bit)


@dataclass(frozen=True)
class SampledSource:
    """What one kind of line is about: a GPU, or the host.

    Attributes:
        kind: gpu or host. quantities: what follows the source's index on each line.
        vendor, index, uuid, name: of a GPU; ``index`` as the vendor's tool counts on the host, ``uuid``
            without the vendor's prefix, in lower case.
        power_limit_w: power at which the clock is lowered. max_sm_clock_mhz: the highest clock.
        cores: of the host: how many cores the program may run on.
        library: which library reads the values, with its version.
    """

    kind: Literal["gpu", "host"]
    quantities: tuple[Quantity, ...]
    vendor: str | None = None
    index: int | None = None
    uuid: str | None = None
    name: str | None = None
    power_limit_w: float | None = None
    max_sm_clock_mhz: float | None = None
    cores: int | None = None
    library: str | None = None


@dataclass(frozen=True)
class SamplesHeader:
    """The first line of the file.

    Attributes:
        host: name of the host, as ``StepsFile.host`` has it. pid: of the sampler.
        anchor: the host's clocks when it began. rate: samples per second that were asked for.
    """

    host: str
    pid: int
    anchor: Anchor
    rate: float
    sources: tuple[SampledSource, ...]
    format: int = FORMAT
