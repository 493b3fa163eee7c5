"""The plan: trials as values. A trial is one execution of the workload under one collector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from profrun.jobs.model import Job, Scalar


@dataclass(frozen=True)
class Trial:
    """One execution: variant x collector x blocking x repeat.

    Attributes:
        index: position in the run, from 0; trials of one point are interleaved over variants.
        id: folder name under trials/: ``<index>-<variant>-<collector>[-blocking]-r<repeat>``.
        collector: a concrete one (none, torch, nsys, ncu, rocprof); ``timeline``/``counters`` are resolved
            by vendor in the plan, or inside the job when the vendor is not known yet.
        argv: the user's command after placeholders, split as a shell would.
        env: what the job spec and the blocking mode add; the caller's own environment is not in it.
        options: the collector's options.
        site: which of ``cluster.sites`` it runs at; its variant's name then ends in ``@<site>``.
    """

    index: int
    id: str
    variant: str
    values: Mapping[str, Scalar]
    collector: str
    blocking: bool
    repeat: int
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    site: str | None = None


@dataclass(frozen=True)
class Plan:
    """What a run will do, deterministic for a given job.

    Attributes:
        vendor: auto (found inside the job), nvidia, amd or none.
    """

    job: Job
    trials: tuple[Trial, ...]
    vendor: str = "auto"
