"""The job after validation: frozen values that everything downstream takes.

The fields that are made with ``option`` are the keys of a job spec: the table that reads and checks a spec
(``jobs.schema``), the JSON schema and the reference page are made from them. Times are seconds, sizes bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from profrun.contract.command import OUTPUT_BYTES, Ranges
from profrun.contract.options import REQUIRED, option
from profrun.contract.points import NAME
from profrun.contract.profilers import COUNTERS, MAPPING, TIMELINE, candidates
from profrun.contract.results import Results
from profrun.contract.sampling import DEFAULT_RATE, HIGHEST_RATE
from profrun.contract.schedule import Schedule
from profrun.jobs.change_kinds import CHANGE_LIST, RESULTS, SEQUENTIAL, Sequential
from profrun.jobs.cluster import CLUSTER, ClusterSettings
from profrun.jobs.expectation import EXPECT, Expectation
from profrun.jobs.kinds import Flag, OneOf, Text, Variable, Word, is_word
from profrun.jobs.number_kinds import Rate, Whole, seconds, size
from profrun.jobs.spec_kinds import (
    IDENTIFIER,
    IDENTIFIER_WORDS,
    NAME_WORDS,
    POINT,
    Collector,
    Image,
    Mount,
    Point,
)
from profrun.jobs.tables import ListOf, MapOf, table_of

BlockingMode = Literal["off", "on", "both"]


@dataclass(frozen=True)
class Resources:
    """What a trial needs."""

    gpus: int | tuple[int, ...] | Literal["auto"] = option(
        OneOf[object](
            (
                Word(("auto",), "write a number, or one of"),
                ListOf(Whole(0, 1023), 1, unique=True, example="[2, 3]"),
                Whole(0, 1024),
            ),
            (is_word, lambda node: node.kind == "list", lambda node: True),
        ),
        "GPUs per node, free ones first; `auto`: one if the node has any; `[2, 3]`: exactly these of this "
        "machine.",
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
    tmp: int | None = option(
        size(1 << 20),
        "Size of a container's /tmp, which is in memory and counts towards `memory`; null: the engine's.",
        "8GiB",
        value=8 << 30,
        null=True,
    )
    writable_root: bool = option(
        Flag(),
        "The program may write everywhere in its container; else to the trial's folder, /tmp and mounts.",
        value=False,
    )
    timeout: float = option(
        seconds(1), "A trial that runs longer is ended, its profile kept.", "30m", value=1800.0
    )
    output: int = option(
        size(1 << 10),
        "How much of each of stdout and stderr of a rank is kept: of more, the beginning and the end.",
        "1GiB",
        value=OUTPUT_BYTES,
    )
    grace: float = option(seconds(0), "Time a profiler gets to write before it is killed.", "60s", value=60.0)


SCHEDULE = table_of(Schedule, "keys of 'schedule'")
RANGES = table_of(Ranges, "keys of 'ranges'")
RESOURCES = table_of(Resources, "keys of 'resources'")


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
    repeats: int | Mapping[str, int] = option(
        OneOf(
            (Whole(1, 1000), MapOf(Whole(1, 1000), r".+", "a collector", "{none: 5, torch: 1}", low=1)),
            (lambda node: node.kind != "map", lambda node: True),
        ),
        "Trials of each point, interleaved so that drift cancels; `{none: 5}` sets those of one collector.",
        value=1,
    )
    schedule: Schedule = option(
        SCHEDULE, "Which steps are recorded, counted as torch.profiler.schedule does.", value=Schedule()
    )
    ranges: Ranges = option(RANGES, "Ranges made without touching the code.", value=Ranges())
    changes: Mapping[str, tuple[str, ...]] = option(
        MapOf(CHANGE_LIST, NAME, NAME_WORDS, "{faster: [loader-workers=4, tf32]}"),
        "Changes of the program per variant, made without touching its files; see [Changes](changes.md). "
        "Their variables win over those of `env`.",
        "{}",
        value=dict,
    )
    results: Results | None = option(
        RESULTS,
        "Which values that the program computes are kept, so that variants can be compared by them; `{}`: "
        "the first 20 losses.",
        "none",
        null=True,
    )
    sequential: Sequential | None = option(
        SEQUENTIAL,
        "Run the trials without a profiler in rounds, and each variant only until it is decided whether it "
        "is faster than `base`; `repeats` is the most rounds. Profilers record `base` and what is faster.",
        "none",
        null=True,
    )
    sample: float = option(
        Rate(HIGHEST_RATE),
        "Samples per second of clocks, power, energy and load while the program runs; `off`: none.",
        f"{DEFAULT_RATE:g}",
        value=DEFAULT_RATE,
    )
    ranks: tuple[int, ...] | None = option(
        ListOf(Whole(0, 1_000_000), 1, unique=True, example="[0, 8]"),
        "Ranks that the profilers record; the others run with the hook alone, which times their steps.",
        "all",
        null=True,
    )
    resources: Resources = option(RESOURCES, "What a trial needs.", value=Resources())
    expect: tuple[Expectation, ...] = option(
        ListOf(EXPECT, example="[{kernels_per_step: 18}]"),
        "Claims about the traces, checked per step; see [Claims](#claims).",
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

    def repeats_of(self, collector: str) -> int:
        """Trials of each point of a collector; one of a mapping, which measures nothing."""
        if collector == MAPPING:
            return 1
        return self.repeats if isinstance(self.repeats, int) else self.repeats.get(collector, 1)
