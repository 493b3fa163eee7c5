"""The job after validation: frozen values that everything downstream takes.

Times are seconds, sizes bytes. ``jobs.load`` makes these from YAML; nothing below the cli reads YAML again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from profrun.contract.command import Ranges
from profrun.contract.schedule import Schedule
from profrun.jobs.cluster import ClusterSettings

BlockingMode = Literal["off", "on", "both"]
Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Resources:
    """What a trial needs. ``gpus`` is per node; ``shm`` and ``memory`` are bytes; times are seconds."""

    gpus: int | Literal["auto"] = "auto"
    nodes: int = 1
    ranks_per_node: int = 1
    cpus: int | None = None
    memory: int | None = None
    shm: int | None = 16 << 30
    timeout: float = 1800.0
    grace: float = 60.0


@dataclass(frozen=True)
class Expectation:
    """One written-down guess: ``variant``/``vendor``/``collector`` select (None: all), ``checks`` say what.

    ``checks`` holds the keys that are given, as values: kernels_per_step (low, high); present, absent, fused
    tuples of globs; dtype and bound words; max_share glob or category -> share in (0, 1]; no_sync_in_step
    bool; step_ms the limit that the median step must stay below.
    """

    variant: str | None
    vendor: str | None
    checks: Mapping[str, Any]
    collector: str | None = None


@dataclass(frozen=True)
class Job:
    """A validated job spec with every default filled in.

    Attributes:
        command: shell-like command with ``{placeholders}`` of variant values.
        variants: name -> values, after ``matrix`` and ``exclude``; at least one ('default' with no values).
        env: environment for the workload; ``secrets`` names variables taken from the caller and never kept.
        options: collector name -> its options block, validated: what the spec says and no more, since each
            collector knows its own defaults. Every collector that is used has a block.
        mounts: ``source:/target[:ro|rw]``.
        cluster: the ``cluster`` block.
        source: path of the spec, or None.
        warnings: what runs but is hardly meant, one line each.
    """

    name: str
    command: str
    image: str = "auto"
    variants: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)
    collectors: tuple[str, ...] = ("none", "torch")
    launch_blocking: BlockingMode = "off"
    repeats: int = 1
    schedule: Schedule = field(default_factory=Schedule)
    ranges: Ranges = field(default_factory=Ranges)
    resources: Resources = field(default_factory=Resources)
    expect: tuple[Expectation, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    env_file: str | None = None
    workdir: str | None = None
    mounts: tuple[str, ...] = ()
    network: bool = False
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    source: str | None = field(default=None, compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)
