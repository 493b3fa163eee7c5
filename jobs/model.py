"""The job after validation: frozen values that everything downstream takes.

The fields that are made with ``option`` are the keys of a job spec: the table that reads and checks a spec
(``jobs.schema``), the JSON schema and the reference page are made from them. Times are seconds, sizes bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from profrun.contract.command import Ranges
from profrun.contract.options import REQUIRED, option
from profrun.contract.profilers import COUNTERS, TIMELINE, VENDORS, candidates
from profrun.contract.schedule import Schedule
from profrun.jobs.cluster import CLUSTER, ClusterSettings
from profrun.jobs.kinds import Flag, OneOf, Text, Variable, Word, is_word
from profrun.jobs.number_kinds import Number, Whole, seconds, size
from profrun.jobs.spec_kinds import (
    IDENTIFIER,
    IDENTIFIER_WORDS,
    NAME,
    NAME_WORDS,
    POINT,
    Collector,
    Image,
    Mount,
    Point,
    Share,
    Span,
)
from profrun.jobs.tables import ListOf, MapOf, table_of

BlockingMode = Literal["off", "on", "both"]

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

_GLOBS = ListOf(Text("a name or a glob"), 1, unique=True, example="['*Memcpy*']")

CheckValue = tuple[int, int] | tuple[str, ...] | Mapping[str, float] | str | float | bool


@dataclass(frozen=True)
class Resources:
    """What a trial needs."""

    gpus: int | Literal["auto"] = option(
        OneOf[object](
            (Word(("auto",), "write a number, or one of"), Whole(0, 1024)), (is_word, lambda node: True)
        ),
        "GPUs per node; `auto`: one if the node has any.",
        value="auto",
    )
    nodes: int = option(Whole(1, 10_000), "Nodes per trial.", value=1)
    ranks_per_node: int = option(Whole(1, 1024), "Processes per node.", value=1)
    cpus: int | None = option(Whole(1, 4096), "CPU cores per node.", "the engine's", null=True)
    memory: int | None = option(size(1 << 20), "Memory per node.", "the engine's", null=True)
    shm: int | None = option(
        size(1 << 20),
        "Size of /dev/shm in a container; null: the engine's.",
        "16GiB",
        value=16 << 30,
        null=True,
    )
    timeout: float = option(
        seconds(1), "A trial that runs longer is ended, its profile kept.", "30m", value=1800.0
    )
    grace: float = option(seconds(0), "Time a profiler gets to write before it is killed.", "60s", value=60.0)


@dataclass(frozen=True)
class Expectation:
    """One written-down guess.

    ``variant``, ``vendor`` and ``collector`` select traces (None: all), the rest is checked on each of them:
    ``kernels_per_step`` is the lowest and the highest number, ``max_share`` maps a glob or a category to a
    share in (0, 1], and ``step_ms`` is the limit that the median step must stay below.
    """

    variant: str | None = option(Text("a variant's name"), "Only this variant.", "all")
    vendor: str | None = option(Word(VENDORS), "Only on this vendor's GPUs (`none`: without GPU).", "all")
    collector: str | None = option(Collector(), "Only this collector's traces.", "all that can tell")
    kernels_per_step: tuple[int, int] | None = option(Span(), "Kernels launched in a step, by the launch.")
    present: tuple[str, ...] | None = option(
        _GLOBS, "Names that must occur among kernels, API calls and ops."
    )
    absent: tuple[str, ...] | None = option(_GLOBS, "Names that must not occur there.")
    fused: tuple[str, ...] | None = option(_GLOBS, "Ops that must not run as kernels of their own.")
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

    @property
    def checks(self) -> dict[str, CheckValue]:
        """Key -> value of everything that is checked."""
        values = ((name, getattr(self, name)) for name in CHECKS)
        return {name: value for name, value in values if value is not None}


CHECKS = tuple(item.name for item in dataclasses.fields(Expectation))[3:]
"""Names of the checks: all fields but the three that select."""

SCHEDULE = table_of(Schedule, "keys of 'schedule'")
RANGES = table_of(Ranges, "keys of 'ranges'")
RESOURCES = table_of(Resources, "keys of 'resources'")
EXPECT = table_of(Expectation, "keys of an expectation")


def _names(neutral: str) -> str:
    return " or ".join(found.name for found in candidates(neutral))


@dataclass(frozen=True)
class Job:
    """A validated job spec with every default filled in.

    Attributes:
        command: shell-like command with ``{placeholders}`` of variant values.
        variants: name -> values, after ``matrix`` and ``exclude``; at least one ('default' with no values).
        env: environment for the workload; ``secrets`` names variables taken from the caller and never kept.
        mounts: ``source:/target[:ro|rw]``.
        options: profiler -> its options dataclass. Every profiler that a collector may become is in it.
        overlays: vendor-neutral collector -> profiler -> its options dataclass, laid over the one of
            ``options`` for trials of that collector.
        source: path of the spec, or None.
        warnings: what runs but is hardly meant, one line each.
    """

    name: str = option(Text(NAME_WORDS, NAME), "Name of the job; run folders start with it.", value=REQUIRED)
    command: str = option(
        Text("the command to run"),
        "What to run, split into arguments as a shell would; `{placeholder}` is filled from the variant. "
        "No shell runs it: for pipes and variables use `bash -c '...'`.",
        value=REQUIRED,
    )
    image: str = option(Image(), "`auto` follows the GPU found; `none` uses no container.", value="auto")
    variants: Mapping[str, Point] = option(
        MapOf(POINT, NAME, NAME_WORDS, "{baseline: {batch: 16}}", low=1),
        "Named points; each fills the placeholders of `command` and `env`.",
        "one, `default`, without values",
        value=dict,
    )
    collectors: tuple[str, ...] = option(
        ListOf(Collector(), 1, unique=True, example="[none, torch]"),
        f"Profilers; each has trials of its own. `timeline`: {_names(TIMELINE)}, `counters`: "
        f"{_names(COUNTERS)}, by vendor.",
        "[none, torch]",
        value=("none", "torch"),
    )
    launch_blocking: BlockingMode = option(
        Word(("off", "on", "both")),
        "Launches that wait for their kernel: not, always, or twins.",
        value="off",
    )
    repeats: int = option(Whole(1, 1000), "Trials of each point, interleaved so that drift cancels.", value=1)
    schedule: Schedule = option(
        SCHEDULE, "Which steps are recorded, counted as torch.profiler.schedule does.", value=Schedule()
    )
    ranges: Ranges = option(RANGES, "Ranges made without touching the code.", value=Ranges())
    resources: Resources = option(RESOURCES, "What a trial needs.", value=Resources())
    expect: tuple[Expectation, ...] = option(
        ListOf(EXPECT, example="[{kernels_per_step: 18}]"),
        "Guesses, checked per step on each trace.",
        "[]",
        value=(),
    )
    env: Mapping[str, str] = option(
        MapOf(Variable(), IDENTIFIER, IDENTIFIER_WORDS, "{OMP_NUM_THREADS: 4}"),
        "Environment of the workload; `{placeholder}` works here too.",
        "{}",
        value=dict,
    )
    secrets: tuple[str, ...] = option(
        ListOf(Text("a variable's name", IDENTIFIER), unique=True, example="[HF_TOKEN]"),
        "Variables taken from the caller's environment and never written down.",
        "[]",
        value=(),
    )
    env_file: str | None = option(
        Text("a path"), "File of `NAME=value` lines, read at submission.", null=True
    )
    workdir: str | None = option(
        Text("a path"), "Folder the command runs in.", "the folder of the job file", null=True
    )
    mounts: tuple[str, ...] = option(
        ListOf(Mount(), unique=True, example="[./data:/data:ro]"),
        "Folders a container sees too.",
        "[]",
        value=(),
    )
    network: bool = option(Flag(), "Give the container a network.", value=False)
    options: Mapping[str, object] = dataclasses.field(default_factory=dict)
    overlays: Mapping[str, Mapping[str, object]] = dataclasses.field(default_factory=dict)
    cluster: ClusterSettings = option(
        CLUSTER,
        "Slurm and Kubernetes; a backend takes the keys that it knows.",
        value=ClusterSettings(),
    )
    source: str | None = dataclasses.field(default=None, compare=False)
    warnings: tuple[str, ...] = dataclasses.field(default=(), compare=False)
