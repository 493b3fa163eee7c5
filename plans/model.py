"""The plan of a run as values: its trials (``Trial``), the whole (``Plan``), and what a run folder keeps of
it (``PlanFile``, ``plan.json``).

A trial is one execution of the user's command under one collector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from profrun.contract.codec import DocumentError, from_json
from profrun.contract.profilers import NEUTRAL, all_serial
from profrun.jobs.model import Job
from profrun.jobs.nodes import Scalar

FORMAT = 2


@dataclass(frozen=True)
class Trial:
    """One execution: variant x collector x blocking x repeat.

    Attributes:
        index: position in the run, from 0; trials of one point are interleaved over variants.
        id: folder name under trials/: ``<index>-<variant>-<collector>[-blocking]-r<repeat>``.
        collector: as the job names it: ``timeline`` stays ``timeline``. Points, comparisons and expectations
            go by it.
        profiler: the profiler that the collector becomes; None where only the job can tell, because the
            vendor of the GPUs is not known yet or nothing on this vendor's GPUs can do it.
        argv: the user's command after placeholders, split as a shell would.
        env: what the job spec and the blocking mode add; the caller's own environment is not in it.
        options: profiler -> its options as JSON values; of ``profiler`` alone, or while that is None of each
            profiler that the collector may become.
        changes: what is changed in the program, as jobs write it; their variables are in ``env``.
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
    profiler: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    site: str | None = None
    changes: tuple[str, ...] = ()

    @property
    def serial(self) -> bool:
        """Whether kernels run one at a time under it, whatever it becomes."""
        return all_serial(self.options)


@dataclass(frozen=True)
class Plan:
    """What a run will do, deterministic for a given job.

    Attributes:
        vendor: auto (found inside the job), nvidia, amd or none.
        left_out: trials of the job that are not planned, one sentence for each kind.
    """

    job: Job
    trials: tuple[Trial, ...]
    vendor: str = "auto"
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlanFile:
    """``plan.json``: what ``--dry-run --json`` prints and a run folder keeps of a plan.

    Attributes:
        job: name of the job.
        warnings: what the job's spec gave reason to say, one line each.
        left_out: trials of the job that are not planned, one sentence for each kind.
    """

    job: str
    vendor: str
    warnings: tuple[str, ...]
    trials: tuple[Trial, ...]
    left_out: tuple[str, ...] = ()
    format: int = FORMAT


def read_plan_file(document: object) -> PlanFile:
    """``plan.json`` as profrun 0.2 and 0.1 (format 1) write it.

    In format 1 a trial has no ``profiler``, its ``collector`` is what it became where the vendor was known,
    and its options are then those of that profiler alone.

    Raises:
        DocumentError: it is no plan.
    """
    if not isinstance(document, Mapping) or document.get("format") != 1:
        return from_json(PlanFile, document)
    trials = document.get("trials")
    if not isinstance(trials, list):
        raise DocumentError("trials is no list")
    return from_json(PlanFile, {**document, "trials": [_of_format_1(item) for item in trials]})


def _of_format_1(item: object) -> object:
    name = item.get("collector") if isinstance(item, Mapping) else None
    if not isinstance(item, Mapping) or not isinstance(name, str) or name in NEUTRAL:
        return item
    return {**item, "profiler": name, "options": {name: item.get("options") or {}}}
