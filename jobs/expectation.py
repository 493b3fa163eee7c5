"""The entries of a job's ``expect`` block: claims about the traces of a run, as frozen values.

The fields that are made with ``option`` are the keys of an entry; see ``jobs.model``. Limits are pairs
(lowest, highest), both included; None means that this end is open.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from profrun.contract.options import REQUIRED, option
from profrun.contract.profilers import VENDORS
from profrun.jobs.kinds import Flag, OneOf, Text, Word
from profrun.jobs.number_kinds import Number, has_unit, size
from profrun.jobs.spec_kinds import Collector, Pair, Share, Span
from profrun.jobs.tables import Alone, ListOf, MapOf, Short, is_scalar, table_of

DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
DTYPE_NAMES = (
    ("float64", "fp64"),
    ("double", "fp64"),
    ("float32", "fp32"),
    ("float", "fp32"),
    ("float16", "fp16"),
    ("half", "fp16"),
    ("bfloat16", "bf16"),
)
"""Other names of the types that people use, each with the word that is meant."""

QUANTITIES = ("step_time", "energy", "cpu_time", "kernel_time", "gpu_busy", "launches")
"""What a ``ratio`` may be of."""
GPU_QUANTITIES = frozenset(("kernel_time", "gpu_busy", "launches"))
"""Those of them that only a GPU has."""
COUNT_QUANTITIES = frozenset(("launches",))
"""Those of them that are counted, and not timed."""

Limits = tuple[float | None, float | None]

_GLOBS = ListOf(Text("a name or a glob"), 1, unique=True, example="['*Memcpy*']")
_RULES = ListOf(Text("the id of a rule", r"[a-z0-9]+(-[a-z0-9]+)*"), 1, unique=True, example="[sync-in-step]")
_VARIANT = Text("a variant's name")
_AMOUNT = OneOf[float]((size(0), Number(0)), (has_unit, lambda node: True))
_AFTER = "{gemm: cudaOccupancyMaxActiveBlocksPerMultiprocessor*}"
_SHARES = Pair(Share(zero=True), "[0.7, 1]")


@dataclass(frozen=True, kw_only=True)
class SameKernels:
    """The kernels of another variant, of which the selected ones must have the same.

    Attributes:
        as_: the other variant. only: globs of kernel names, or categories; None for all kernels.
    """

    as_: str = option(_VARIANT, "The variant that must have the same kernels.", value=REQUIRED)
    only: tuple[str, ...] | None = option(
        ListOf(Text("a kernel, a glob or a category"), 1, unique=True, example="[gemm]"),
        "Only kernels of these categories, or whose names match one of these globs.",
        "all kernels",
    )


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """A number with limits, of which a job gives one."""

    between: tuple[float, float] | None = option(
        Pair(Number(0), "[0.9, 1.1]"), "Lowest and highest value, both included."
    )
    below: float | None = option(Number(0), "Highest value, included.")
    above: float | None = option(Number(0), "Lowest value, included.")

    @property
    def limits(self) -> Limits:
        """(lowest, highest), None for an open end."""
        return self.between or (self.above, self.below)


@dataclass(frozen=True, kw_only=True)
class Ratio(Bounded):
    """A quantity of the selected variants over that of another one, with limits."""

    to: str = option(_VARIANT, "The base: the variant whose value is divided by.", value=REQUIRED)
    of: str = option(
        Word(QUANTITIES, "quantities"),
        "Which quantity. `step_time`: time of a step, of trials without a profiler where there are some. "
        "`energy`: energy of the GPUs per steady step, of the same trials. "
        "The others are of profiled trials, per step. `cpu_time`: host time of the step. `kernel_time`: sum "
        "of the times of kernels, without copies. `gpu_busy`: time in which GPU work ran. `launches`: host "
        "calls that launched GPU work.",
        value="step_time",
    )
    per: str | None = option(
        Text("an amount of work"),
        "Divide by an amount of work first, as `profrun compare --per`: `batch*seq`, `token`, `gflop`.",
    )


@dataclass(frozen=True, kw_only=True)
class DramBytes(Bounded):
    """Bytes through the GPU's memory per step, or their ratio to those of another variant, with limits."""

    to: str | None = option(
        _VARIANT, "The limits are about the ratio to this variant's bytes, not about bytes."
    )
    between: tuple[float, float] | None = option(
        Pair(_AMOUNT, "[60MiB, 70MiB]"), "Lowest and highest value, both included."
    )
    below: float | None = option(_AMOUNT, "Highest value, included.")
    above: float | None = option(_AMOUNT, "Lowest value, included.")


@dataclass(frozen=True, kw_only=True)
class Achieved:
    """Shares of what the GPU can do, each with its lowest and highest value."""

    utilization: tuple[float, float] | None = option(
        _SHARES, "Time in which a kernel ran; of the time of the recorded window."
    )
    sm_efficiency: tuple[float, float] | None = option(
        _SHARES, "Estimated share of SMs with a block of a kernel; of the time of the recorded window."
    )
    occupancy: tuple[float, float] | None = option(
        _SHARES,
        "Achieved occupancy, measured by a hardware counter or else estimated; the mean over kernels "
        "weighted by their time; of the warps that fit on an SM.",
    )
    memory: tuple[float, float] | None = option(
        _SHARES,
        "Bytes through the GPU's memory per time of the kernels; of the peak of the GPU's memory.",
    )
    compute: tuple[float, float] | None = option(
        _SHARES,
        "FLOP/s of matrix products, by recorded shapes, per time of their kernels; of the GPU's peak for "
        "their type.",
    )


SAME_KERNELS = table_of(SameKernels, "keys of 'same_kernels'")
RATIO = table_of(Ratio, "keys of 'ratio'")
BYTES = table_of(DramBytes, "keys of 'bytes'")
ACHIEVED = table_of(Achieved, "keys of 'achieved'")


@dataclass(frozen=True)
class Expectation:
    """One claim about the traces of a run, written down before they are opened.

    ``claim`` and ``source`` are its words. ``variant``, ``vendor``, ``collector`` and ``phase`` select
    traces, and a part of each (None: all). The other fields are the checks: each of them must hold on every
    selected trace, or between the selected variants and the other one that it names.
    """

    claim: str | None = option(Text("a sentence"), "The claim in words, shown with its result.")
    source: str | None = option(
        Text("a page and its address"), "Where it was claimed: the title of a page, or its address."
    )
    variant: tuple[str, ...] | None = option(
        OneOf(
            (Alone(_VARIANT), ListOf(_VARIANT, 1, unique=True, example="[small, 'large_*']")),
            (is_scalar, lambda node: True),
        ),
        "Only these variants: a name, a glob, or a list of them.",
        "all",
    )
    vendor: str | None = option(Word(VENDORS), "Only on this vendor's GPUs (`none`: without GPU).", "all")
    collector: str | None = option(Collector(), "Only this collector's traces.", "all that can tell")
    blocking: str | None = option(
        Word(("off", "on")),
        "Only trials without or with launch blocking. The other variant of a check, which may then be the "
        "same, is without.",
        "both",
    )
    phase: str | None = option(
        Text("a name or a glob"),
        "Only inside ranges of this name (`decode`, the range of a module, a `record_function`). Each of "
        "these ranges then counts as a step: 'per step' means per range.",
        "whole steps",
    )
    kernels_per_step: tuple[int, int] | None = option(Span(), "Kernels launched in a step, by the launch.")
    counts: Mapping[str, tuple[int, int]] | None = option(
        MapOf(Span(), r".+", "a kernel, a glob or a category", "{gemm: 3, 'triton_*': [1, 2]}", low=1),
        "Calls per step of each category of kernels or glob. A glob is of kernels and copies; where it fits "
        "none in the trace, it is of ops, ranges and API calls.",
    )
    present: tuple[str, ...] | None = option(
        _GLOBS, "Names that must occur among kernels, API calls and ops."
    )
    absent: tuple[str, ...] | None = option(_GLOBS, "Names that must not occur there.")
    after: Mapping[str, str] | None = option(
        MapOf(Text("an op or API call, or a glob"), r".+", "a kernel, a glob or a category", _AFTER, low=1),
        "Kernel (glob) or category to the op or API call (glob) that must come right before each of its "
        "launches: on the thread of the launch, since the launch before.",
    )
    fused: tuple[str, ...] | None = option(_GLOBS, "Ops that must not run as kernels of their own.")
    same_kernels: SameKernels | None = option(
        Short(SAME_KERNELS, "as"),
        "The kernels must be those of another variant: the same names, each as often per step. "
        "`{as: VARIANT, only: [gemm]}` asks it of a category, or of names that match a glob.",
    )
    dtype: str | None = option(
        Word(DTYPES, "types", DTYPE_NAMES), "Type that the matrix kernels must work in."
    )
    max_share: Mapping[str, float] | None = option(
        MapOf(Share(), r".+", "a kernel, a glob or a category", "{'*softmax*': 0.2}", low=1),
        "Largest share of GPU time that a kernel (glob) or category may have.",
    )
    no_sync_in_step: bool | None = option(Flag(), "No step may wait for the GPU.")
    step_ms: float | None = option(Number(0), "The median step must take less than this, in ms.")
    bound: str | None = option(Word(("overhead", "compute", "memory")), "What must limit the step.")
    ratio: Ratio | None = option(
        RATIO,
        "A quantity of this variant over that of another one. A ratio of times is that of `profrun compare`: "
        "it holds where its 95 % interval lies inside the limits, and is refuted where it lies outside. A "
        "ratio of `launches` is counted and needs no interval: one trial of each variant is enough.",
    )
    bytes: DramBytes | None = option(
        BYTES,
        "Bytes that kernels moved through the GPU's memory per step: counter `dram__bytes.sum`. With `to` "
        "their ratio to those of another variant.",
    )
    achieved: Achieved | None = option(ACHIEVED, "Shares of what the GPU can do, each as `[low, high]`.")
    finds: tuple[str, ...] | None = option(_RULES, "Rules that `profrun diagnose` must find something by.")
    finds_not: tuple[str, ...] | None = option(_RULES, "Rules that it must find nothing by.")

    @property
    def checks(self) -> dict[str, object]:
        """Key -> value of everything that is checked."""
        values = ((name, getattr(self, name)) for name in CHECKS)
        return {name: value for name, value in values if value is not None}

    @property
    def others(self) -> dict[str, str]:
        """Check -> the variant that the selected ones are compared with."""
        found = {
            "same_kernels": self.same_kernels.as_ if self.same_kernels else None,
            "ratio": self.ratio.to if self.ratio else None,
            "bytes": self.bytes.to if self.bytes else None,
        }
        return {key: name for key, name in found.items() if name is not None}

    @property
    def rules(self) -> tuple[str, ...]:
        """Rules of the diagnosis that it names."""
        return (*(self.finds or ()), *(self.finds_not or ()))

    def selects(self, variant: str | None) -> bool:
        """Is it about this variant? One without a name is only in expectations about all."""
        return self.variant is None or (
            variant is not None and any(fnmatchcase(variant, glob) for glob in self.variant)
        )


_SELECTORS = ("claim", "source", "variant", "vendor", "collector", "blocking", "phase")
CHECKS = tuple(item.name for item in dataclasses.fields(Expectation) if item.name not in _SELECTORS)
"""Names of the checks: all fields but the words and those that select."""

EXPECT = table_of(Expectation, "keys of an expectation")
